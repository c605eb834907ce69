//! What an operation changed, as a small JSON patch (RFC 6902).
//!
//! Only `add`, `replace` and `remove`, each below a parent that exists. Arrays are replaced whole: their items have no
//! names by which two of them could be told to be one. Parts whose text was not touched are never looked at.

use crate::json::push_token;
use crate::types::PatchOp;
use crate::{Json, Object};

/// The patch that makes `after` of `before`; empty when both mean the same.
pub fn diff(before: &Object, after: &Object) -> Vec<PatchOp> {
    let mut walk = Walk {
        path: String::new(),
        patch: Vec::new(),
    };
    walk.values(before, after);
    walk.patch
}

/// Maps that Karmada and others write keys into: they are changed key by key, never as a whole, unless they are absent.
fn is_shared_map(path: &str) -> bool {
    path == "/metadata/labels" || path == "/metadata/annotations"
}

struct Walk {
    path: String,
    patch: Vec<PatchOp>,
}

impl Walk {
    fn values(&mut self, before: &Json, after: &Json) {
        if before.is_same_text(after) {
            return;
        }
        match (before.as_fields(), after.as_fields()) {
            (Some(_), Some(_)) => self.fields(before, after),
            (Some(_), None) if after.is_null() && is_shared_map(&self.path) => {
                self.fields(before, &Json::object::<&str, Json>([]));
            }
            _ if before == after => {}
            _ if before.is_null() && is_shared_map(&self.path) => self.add(after),
            _ => self.patch.push(PatchOp::Replace {
                path: self.path.clone(),
                value: after.clone(),
            }),
        }
    }

    fn fields(&mut self, before: &Json, after: &Json) {
        for (key, old) in before.as_fields().into_iter().flatten() {
            self.below(key, |walk| match after.member(key) {
                Some(new) => walk.values(old, new),
                None => walk.remove(old),
            });
        }
        for (key, new) in after.as_fields().into_iter().flatten() {
            if before.member(key).is_none() {
                self.below(key, |walk| walk.add(new));
            }
        }
    }

    fn add(&mut self, value: &Json) {
        self.patch.push(PatchOp::Add {
            path: self.path.clone(),
            value: value.clone(),
        });
    }

    fn remove(&mut self, old: &Json) {
        match old.as_fields() {
            Some(fields) if is_shared_map(&self.path) => {
                for (key, _) in fields {
                    self.below(key, |walk| {
                        walk.patch.push(PatchOp::Remove {
                            path: walk.path.clone(),
                        });
                    });
                }
            }
            _ => self.patch.push(PatchOp::Remove {
                path: self.path.clone(),
            }),
        }
    }

    fn below(&mut self, key: &str, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        push_token(&mut self.path, key);
        visit(self);
        self.path.truncate(length);
    }
}

#[cfg(test)]
mod tests;
