//! What a server made of the specs that it was sent.
//!
//! A server whose CRD is older or newer prunes or defaults a spec. Comparing desired with stored would then find a
//! difference forever. The runtime records each answer here; after that, "stored is still what became of desired" is no
//! difference, but a skew to report. It is memory of the process: after a restart one write is sent again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use popcell_api::kind::Kind;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::plan::Target;

/// Kind, namespace and name.
type Address = (&'static str, Option<String>, String);
type Hash = [u8; 32];

/// Knows what the servers of all planes made of the specs that they were sent.
pub trait ExplainSpec: fmt::Debug + Send + Sync {
    /// Whether `stored` is what the server made of `desired` when it was last sent.
    fn explains(&self, target: &Target, desired: &Value, stored: Option<&Value>) -> bool;
}

/// Specs of one plane as sent and as stored, by object. With a CRD of another version that is each of them, so of a spec the
/// hash is kept. Its lock is held for one look or note.
#[derive(Debug, Default)]
pub struct SpecEchoes {
    written: Mutex<HashMap<Address, Written>>,
}

#[derive(Debug)]
struct Written {
    sent: Hash,
    stored: Hash,
}

impl SpecEchoes {
    /// Notes what a server answered to a create or patch. Equal specs are forgotten: nothing was changed on the way.
    pub fn record(&self, target: &Target, sent: &Value, stored: &Value) {
        if sent == stored {
            self.forget(target);
        } else {
            let [sent, stored] = [sent, stored].map(hash);
            self.written().insert(address(target), Written { sent, stored });
        }
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, target: &Target) {
        self.written().remove(&address(target));
    }

    /// Forgets all objects of a kind.
    pub fn forget_kind(&self, kind: Kind) {
        self.written().retain(|(name, ..), _| *name != kind.kind);
    }

    // Each hold is one step of a map: there is no half-done state that a panic could leave.
    fn written(&self) -> MutexGuard<'_, HashMap<Address, Written>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExplainSpec for SpecEchoes {
    fn explains(&self, target: &Target, desired: &Value, stored: Option<&Value>) -> bool {
        let written = self.written().get(&address(target)).map(|one| (one.sent, one.stored));
        let (Some((sent, became)), Some(stored)) = (written, stored) else {
            return false;
        };
        became == hash(stored) && sent == hash(desired)
    }
}

/// Of the text of a value, whose keys are sorted.
fn hash(value: &Value) -> Hash {
    Sha256::digest(value.to_string()).into()
}

fn address(target: &Target) -> Address {
    (target.kind.kind, target.namespace.clone(), target.name.clone())
}

#[cfg(test)]
mod tests {
    use popcell_api::kind;
    use serde_json::json;

    use super::*;
    use crate::plan::Plane;

    #[test]
    fn a_pruned_spec_is_explained_until_either_side_changes() {
        let target = Target::namespaced(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-1", "a");
        let (sent, stored) = (json!({ "a": 1, "new": 2 }), json!({ "a": 1 }));
        let spec_echoes = SpecEchoes::default();
        assert!(!spec_echoes.explains(&target, &sent, Some(&stored)));
        spec_echoes.record(&target, &sent, &stored);
        assert!(spec_echoes.explains(&target, &sent, Some(&stored)));
        assert!(!spec_echoes.explains(&target, &json!({ "a": 2 }), Some(&stored)));
        assert!(!spec_echoes.explains(&target, &sent, Some(&json!({ "a": 3 }))));
        spec_echoes.record(&target, &sent, &sent);
        assert!(spec_echoes.written().is_empty());
        spec_echoes.record(&target, &sent, &stored);
        spec_echoes.forget_kind(kind::INSTANCE);
        assert!(spec_echoes.explains(&target, &sent, Some(&stored)));
        spec_echoes.forget_kind(kind::WORKLOAD_DEPLOYMENT);
        assert!(spec_echoes.written().is_empty());
        spec_echoes.record(&target, &sent, &stored);
        spec_echoes.forget(&target);
        assert!(spec_echoes.written().is_empty());
    }
}
