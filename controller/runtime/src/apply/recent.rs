//! What servers answered to our own writes, until the watches bring it: a pass that is woken by one write must not decide
//! on what was before it.
//!
//! Invariants: an answer counts only while it is newer than the store, and for [`KEPT`] at most, so that a watch which never
//! brings it is believed in the end; what is gone, by an answer or by the watch, does not come back by an answer that is late.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use popcell_api::kind::Kind;
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{Plane, Target};
use tokio::time::Instant;

/// Watches are behind for milliseconds; what is later is not late but lost.
const KEPT: Duration = Duration::from_secs(5);

type Address = (Plane, &'static str, String, String);

#[derive(Clone, Debug)]
enum Answer {
    Is(Arc<Object>),
    /// The object of this uid was deleted.
    Gone(String),
}

/// Answers to writes.
#[derive(Debug, Default)]
pub struct Recent {
    answers: Mutex<BTreeMap<Address, (Instant, Answer)>>,
}

impl Recent {
    /// A server answered that an object is so now.
    pub(super) fn is(&self, target: &Target, object: Arc<Object>) {
        let address = address(target);
        let gone = match self.answers().get(&address) {
            Some((at, Answer::Gone(uid))) => is_fresh(*at) && uid == object.uid(),
            _ => false,
        };
        if !gone {
            self.put(target, Answer::Is(object));
        }
    }

    /// The object of this uid is not there any more.
    pub(super) fn is_gone(&self, target: &Target, uid: &str) {
        self.put(target, Answer::Gone(uid.to_owned()));
    }

    /// The watch brings an object: one that had left a filter and is back is not gone.
    pub fn comes(&self, target: &Target, uid: &str) {
        let (mut answers, address) = (self.answers(), address(target));
        if matches!(answers.get(&address), Some((_, Answer::Gone(gone))) if gone == uid) {
            answers.remove(&address);
        }
    }

    pub(super) fn retire(&self, plane: &Plane) {
        self.answers().retain(|(one, ..), _| one != plane);
    }

    /// An object as it is, given what its store holds.
    pub fn over(
        &self,
        plane: &Plane,
        kind: Kind,
        (namespace, name): (&str, &str),
        stored: Option<Arc<Object>>,
    ) -> Option<Arc<Object>> {
        let address = (plane.clone(), kind.kind, namespace.to_owned(), name.to_owned());
        let answer = self.answers().get(&address).filter(|(at, _)| is_fresh(*at)).cloned();
        match answer {
            Some((_, answer)) => newest(stored, answer),
            None => stored,
        }
    }

    /// Objects of a namespace (`None`: of all) as they are, given what their store holds.
    pub fn over_all(&self, plane: &Plane, kind: Kind, namespace: Option<&str>, stored: &mut Vec<Arc<Object>>) {
        let answers = self.answers();
        let meant = answers.iter().filter(|((one, name, within, _), (at, _))| {
            one == plane && *name == kind.kind && namespace.is_none_or(|namespace| namespace == within) && is_fresh(*at)
        });
        for ((.., within, name), (_, answer)) in meant {
            let at = stored
                .iter()
                .position(|one| one.namespace() == within && one.name() == name);
            let before = at.map(|at| stored.swap_remove(at));
            stored.extend(newest(before, answer.clone()));
        }
    }

    fn put(&self, target: &Target, answer: Answer) {
        let mut answers = self.answers();
        answers.retain(|_, (at, _)| is_fresh(*at));
        answers.insert(address(target), (Instant::now(), answer));
    }

    fn answers(&self) -> MutexGuard<'_, BTreeMap<Address, (Instant, Answer)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn address(target: &Target) -> Address {
    let namespace = target.namespace.clone().unwrap_or_default();
    (target.plane.clone(), target.kind.kind, namespace, target.name.clone())
}

fn is_fresh(at: Instant) -> bool {
    at.elapsed() < KEPT
}

fn newest(stored: Option<Arc<Object>>, answer: Answer) -> Option<Arc<Object>> {
    match (stored, answer) {
        (None, Answer::Is(answer)) => Some(answer),
        (Some(stored), Answer::Is(answer)) => Some(if is_older(&stored, &answer) { answer } else { stored }),
        (Some(stored), Answer::Gone(uid)) if stored.uid() == uid => None,
        (stored, Answer::Gone(_)) => stored,
    }
}

/// API servers promise that resourceVersions of one kind are ordered numbers (KEP-5504). Others are not compared: what the
/// watch brings counts then.
fn is_older(stored: &Object, answer: &Object) -> bool {
    let version = |object: &Object| object.resource_version().parse::<u64>().ok();
    version(stored)
        .zip(version(answer))
        .is_some_and(|(stored, answer)| stored < answer)
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::WORKLOAD;
    use serde_json::json;

    use super::*;

    fn object(uid: &str, version: &str) -> Arc<Object> {
        let metadata = json!({ "namespace": "n", "name": "a", "uid": uid, "resourceVersion": version });
        Arc::new(serde_json::from_value(json!({ "metadata": metadata })).unwrap())
    }

    fn seen(recent: &Recent, stored: Option<&Arc<Object>>) -> Option<String> {
        let one = recent.over(&Plane::Hub, WORKLOAD, ("n", "a"), stored.cloned());
        let mut all: Vec<_> = stored.cloned().into_iter().collect();
        recent.over_all(&Plane::Hub, WORKLOAD, None, &mut all);
        assert_eq!(all.first(), one.as_ref());
        one.map(|one| one.resource_version().to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_until_the_watch_has_caught_up() {
        let recent = Recent::default();
        let target = Target::namespaced(&Plane::Hub, WORKLOAD, "n", "a");
        recent.is(&target, object("u", "10"));
        for (stored, expected) in [
            (None, "10"),
            (Some(object("u", "9")), "10"),
            (Some(object("u", "11")), "11"),
            (Some(object("u", "x")), "x"),
        ] {
            assert_eq!(seen(&recent, stored.as_ref()).as_deref(), Some(expected));
        }
        tokio::time::advance(KEPT).await;
        assert_eq!(seen(&recent, None), None);
        recent.is(&target, object("u", "10"));
        recent.is_gone(&target, "u");
        assert_eq!(seen(&recent, None), None);
        recent.is(&target, object("u", "11"));
        assert_eq!(seen(&recent, None), None, "an answer that came after the watch");
        recent.is(&target, object("v", "12"));
        assert_eq!(seen(&recent, None).as_deref(), Some("12"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_deleted_is_gone_but_its_successor_is_not() {
        let recent = Recent::default();
        let target = Target::namespaced(&Plane::Hub, WORKLOAD, "n", "a");
        recent.is_gone(&target, "u");
        recent.comes(&target, "v");
        assert_eq!(seen(&recent, Some(&object("u", "9"))), None);
        recent.comes(&target, "u");
        assert_eq!(seen(&recent, Some(&object("u", "9"))).as_deref(), Some("9"));
        recent.is_gone(&target, "u");
        assert_eq!(seen(&recent, Some(&object("v", "12"))).as_deref(), Some("12"));
        recent.retire(&Plane::Hub);
        assert_eq!(seen(&recent, Some(&object("u", "9"))).as_deref(), Some("9"));
    }
}
