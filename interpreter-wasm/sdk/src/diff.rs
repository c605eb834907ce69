//! What an operation changed, as a small JSON patch (RFC 6902).
//!
//! Only `add`, `replace` and `remove`, each below a parent that exists. Arrays are replaced whole: their items have no
//! names by which two of them could be recognised as one. So is an object for which the single steps would be longer than
//! itself, or more than a patch may have. Parts whose text was not touched are never looked at.
//!
//! No path leads through an empty key: Karmada's patch library (evanphx/json-patch v5) takes an empty name on the way for
//! the object that it is in, and would change something else. What lies below such a key is replaced with it.

use crate::json::push_token;
use crate::types::PatchOp;
use crate::{Json, Object};

/// Steps below one object, beyond which it is replaced whole. The host accepts 10,000 in all.
const MAX_STEPS: usize = 1000;

/// The patch that makes `after` of `before`; empty when both mean the same.
pub fn diff(before: &Object, after: &Object) -> Vec<PatchOp> {
    let mut walk = Walk {
        path: String::new(),
        patch: Vec::new(),
        bytes: 0,
        // Comparing texts is cheap and saves most walks, but at every level of a deep object it would not be.
        comparable: after.text_length().saturating_mul(4),
    };
    walk.values(before, after);
    walk.patch
}

/// Maps that Karmada and others write keys into: they are changed key by key, never as a whole, unless they are absent.
fn is_shared_map(path: &str) -> bool {
    path == "/metadata/labels" || path == "/metadata/annotations"
}

/// Objects that no operation may replace: the root, and what holds the maps that others write into.
fn is_never_replaced(path: &str) -> bool {
    path.is_empty() || path == "/metadata" || is_shared_map(path)
}

/// Whether the last name of a path is the empty one.
fn ends_in_empty_key(path: &str) -> bool {
    // A slash in a name is written ~1.
    path.ends_with('/')
}

struct Walk {
    path: String,
    patch: Vec<PatchOp>,
    /// Length of the patch's paths and values.
    bytes: usize,
    /// Bytes of text that may still be compared before a walk.
    comparable: usize,
}

impl Walk {
    fn values(&mut self, before: &Json, after: &Json) {
        if before.is_same(after) || self.is_same_text(before, after) {
            return;
        }
        match (before.as_fields(), after.as_fields()) {
            (Some(_), Some(_)) if ends_in_empty_key(&self.path) => {
                if before != after {
                    self.replace(after);
                }
            }
            (Some(_), Some(_)) => self.object(before, after),
            (Some(_), None) if after.is_null() && is_shared_map(&self.path) => {
                self.fields(before, &Json::object::<&str, Json>([]));
            }
            _ if before == after => {}
            _ if before.is_null() && is_shared_map(&self.path) => self.add(after),
            _ => self.replace(after),
        }
    }

    fn is_same_text(&mut self, before: &Json, after: &Json) -> bool {
        let (Some(one), Some(other)) = (before.raw(), after.raw()) else {
            return false;
        };
        if one.len() != other.len() || one.len() > self.comparable {
            return false;
        }
        self.comparable -= one.len();
        one == other
    }

    fn object(&mut self, before: &Json, after: &Json) {
        let (steps, bytes) = (self.patch.len(), self.bytes);
        self.fields(before, after);
        if is_never_replaced(&self.path) || self.patch.len() - steps < 2 {
            return;
        }
        let added = self.bytes - bytes;
        if self.patch.len() - steps > MAX_STEPS || added > self.path.len() + after.text_length() {
            self.patch.truncate(steps);
            self.bytes = bytes;
            self.replace(after);
        }
    }

    fn fields(&mut self, before: &Json, after: &Json) {
        let (Some(old_fields), Some(new_fields)) = (before.as_map(), after.as_map()) else {
            return;
        };
        let mut next = 0;
        for (key, old) in old_fields.iter() {
            let new = new_fields.get_near(key, &mut next);
            self.below(key, |walk| match new {
                Some(new) => walk.values(old, new),
                None => walk.remove(old),
            });
        }
        let mut next = 0;
        for (key, new) in new_fields.iter() {
            if old_fields.get_near(key, &mut next).is_none() {
                self.below(key, |walk| walk.add(new));
            }
        }
    }

    fn push(&mut self, step: PatchOp) {
        let value = match &step {
            PatchOp::Add { value, .. } | PatchOp::Replace { value, .. } => value.text_length(),
            PatchOp::Remove { .. } => 0,
        };
        self.bytes += step.path().len() + value;
        self.patch.push(step);
    }

    fn add(&mut self, value: &Json) {
        self.push(PatchOp::Add {
            path: self.path.clone(),
            value: value.clone(),
        });
    }

    fn replace(&mut self, value: &Json) {
        self.push(PatchOp::Replace {
            path: self.path.clone(),
            value: value.clone(),
        });
    }

    fn remove(&mut self, old: &Json) {
        match old.as_fields() {
            Some(fields) if is_shared_map(&self.path) => {
                for (key, _) in fields {
                    self.below(key, |walk| {
                        let path = walk.path.clone();
                        walk.push(PatchOp::Remove { path });
                    });
                }
            }
            _ => self.push(PatchOp::Remove {
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
