//! The book of a project's claims: which there are, which are granted, and what is reported to each next.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use popcell_api::conditions::reasons;
use popcell_api::quota::GRANTED;
use serde_json::{Value, json};

use super::super::FAIL;
use super::super::draft::Draft;
use super::budget::{Amounts, Budget};
use super::{Audit, claim};

/// Namespace and name.
type Key = (String, String);

/// The claims of a project as its API server tells of them, and what was granted.
#[derive(Default)]
pub(super) struct Book {
    claims: BTreeMap<Key, DynamicObject>,
    /// What a list that is under way has told so far.
    listing: BTreeMap<Key, DynamicObject>,
    listed: bool,
    /// By uid of the claim. A grant is entered before it is written, so that nothing is granted twice meanwhile.
    granted: HashMap<String, Amounts>,
    /// By what the server has told, apart from the entries above: an audit by one's own book would find nothing.
    shown: BTreeMap<Key, Amounts>,
    most: Amounts,
}

impl Book {
    /// Enters what the server tells.
    pub(super) fn take(&mut self, event: Event<DynamicObject>) {
        match event {
            Event::Apply(claim) => {
                let key = key(&claim);
                self.show(&key, Some(&claim));
                if self.claims.get(&key).is_some_and(|known| known.uid() != claim.uid()) {
                    self.release(&key);
                }
                self.enter(key, claim);
            }
            Event::Delete(claim) => {
                let key = key(&claim);
                self.show(&key, None);
                self.release(&key);
            }
            Event::Init => self.listing.clear(),
            Event::InitApply(claim) => {
                self.listing.insert(key(&claim), claim);
            }
            Event::InitDone => {
                let listing = std::mem::take(&mut self.listing);
                self.claims.clear();
                self.shown.clear();
                for (key, claim) in &listing {
                    self.shown
                        .extend(claim::granted(claim).map(|amounts| (key.clone(), amounts)));
                }
                let there: Vec<String> = listing.values().filter_map(ResourceExt::uid).collect();
                self.granted.retain(|uid, _| there.contains(uid));
                for (key, claim) in listing {
                    self.enter(key, claim);
                }
                self.count();
                self.listed = true;
            }
        }
    }

    /// Enters what the server has answered to a write; its event comes later.
    pub(super) fn wrote(&mut self, claim: DynamicObject) {
        self.claims.insert(key(&claim), claim);
    }

    /// What was granted at once, by what the server has told.
    pub(super) fn audit(&self) -> Audit {
        Audit {
            claims: self.shown.len(),
            granted: total(self.shown.values()),
            most: self.most,
        }
    }

    /// Begins to look for the most that is granted at once from what is granted now.
    pub(super) fn audit_anew(&mut self) {
        self.most = total(self.shown.values());
    }

    /// Judges every claim against the budget, those that came first before others, and answers the claims that are to be
    /// told something, with the patch of their status.
    pub(super) fn judge(&mut self, budget: &Budget, now: Timestamp) -> Vec<(DynamicObject, Value)> {
        if !self.listed {
            return Vec::new();
        }
        let mut claims: Vec<DynamicObject> = self.claims.values().cloned().collect();
        claims.sort_by_key(|claim| claim.metadata.creation_timestamp.as_ref().map(|time| time.0));
        let patches = claims.into_iter().filter_map(|claim| {
            let mut draft = Draft::of(&claim, now);
            let (status, reason, message) = self.verdict(&claim, budget)?;
            draft.condition(GRANTED, status, reason, &message);
            draft.set("observedGeneration", json!(claim.metadata.generation));
            let since = draft.since(GRANTED);
            draft.set("allocations", self.allocations(&claim, status, reason, &since));
            let patch = draft.patch()?;
            Some((claim, patch))
        });
        patches.collect()
    }

    fn verdict(&mut self, claim: &DynamicObject, budget: &Budget) -> Option<(&'static str, &'static str, String)> {
        let uid = claim.uid()?;
        if let Some(wanted) = claim.annotations().get(FAIL) {
            self.granted.remove(&uid);
            return Some(match wanted.as_str() {
                "denied" => (
                    "False",
                    reasons::QUOTA_EXCEEDED,
                    format!("Refused by annotation {FAIL}"),
                ),
                "pending" => (
                    "False",
                    reasons::PENDING_EVALUATION,
                    "Awaiting capacity evaluation".to_owned(),
                ),
                other => (
                    "False",
                    reasons::VALIDATION_FAILED,
                    format!("Annotation {FAIL} says {other}"),
                ),
            });
        }
        let granted = ("True", reasons::QUOTA_AVAILABLE, "Quota is available".to_owned());
        if self.granted.contains_key(&uid) {
            return Some(granted);
        }
        if claim.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let asked = match claim::asked(claim) {
            Ok(asked) => asked,
            Err(wrong) => return Some(("False", reasons::VALIDATION_FAILED, wrong)),
        };
        let lacking = budget.lacks(total(self.granted.values()), asked);
        if lacking.is_empty() {
            self.granted.insert(uid, asked);
            return Some(granted);
        }
        // Without what is left: the message would change with every grant of others.
        let lacking = lacking
            .iter()
            .map(|(name, limit)| format!("{name}, of which the project may use {limit}"));
        let message = format!("Not enough left of {}", lacking.collect::<Vec<_>>().join("; "));
        Some(("False", reasons::QUOTA_EXCEEDED, message))
    }

    /// The part of the status that notes each resource.
    fn allocations(&self, claim: &DynamicObject, status: &str, reason: &str, since: &Value) -> Value {
        let granted = claim.uid().and_then(|uid| self.granted.get(&uid).copied());
        let amounts = granted.or_else(|| claim::asked(claim).ok()).unwrap_or_default();
        let amounts = amounts.each().into_iter().filter(|(_, amount)| *amount > 0);
        let outcome = match (status, reason) {
            ("True", _) => "Granted",
            (_, reasons::PENDING_EVALUATION) => "Pending",
            _ => "Denied",
        };
        let note = |(resource_type, amount): (&str, i64)| {
            json!({
                "resourceType": resource_type,
                "status": outcome,
                "reason": reason,
                "allocatedAmount": if granted.is_some() { amount } else { 0 },
                "lastTransitionTime": since,
            })
        };
        amounts.map(note).collect()
    }

    fn enter(&mut self, key: Key, claim: DynamicObject) {
        // What was granted before this process began.
        if let (Some(uid), Some(amounts)) = (claim.uid(), claim::granted(&claim)) {
            self.granted.entry(uid).or_insert(amounts);
        }
        self.claims.insert(key, claim);
    }

    fn release(&mut self, key: &Key) {
        if let Some(uid) = self.claims.remove(key).and_then(|claim| claim.uid()) {
            self.granted.remove(&uid);
        }
    }

    fn show(&mut self, key: &Key, claim: Option<&DynamicObject>) {
        match claim.and_then(claim::granted) {
            Some(amounts) => self.shown.insert(key.clone(), amounts),
            None => self.shown.remove(key),
        };
        self.count();
    }

    fn count(&mut self) {
        self.most = self.most.or_more(total(self.shown.values()));
    }
}

fn total<'a>(all: impl Iterator<Item = &'a Amounts>) -> Amounts {
    all.fold(Amounts::default(), |sum, one| sum.plus(*one))
}

fn key(claim: &DynamicObject) -> Key {
    (claim.namespace().unwrap_or_default(), claim.name_any())
}
