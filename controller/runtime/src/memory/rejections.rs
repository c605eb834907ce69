//! What servers rejected of the last reconcile of each key, for its decisions.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use popcell_core::rejection::Rejection;
use tokio::time::Instant;

use super::{Subject, subject};
use crate::queue::Key;
use crate::sync::lock;

/// Servers may word one refusal in another way each time: that is shown, and written, once in this time at most.
const REWORDED: Duration = Duration::from_mins(1);

/// A status that is rejected too is written again after this time, or when something else is rejected.
const UNSHOWN: Duration = Duration::from_mins(10);

#[derive(Debug)]
struct Entry {
    rejected: Vec<Rejection>,
    at: Instant,
    /// The status was rejected, too.
    unshown: Option<Instant>,
}

/// Keys of a plane with something that was rejected: there are as many as there is trouble.
#[derive(Debug, Default)]
pub struct Rejections(Mutex<BTreeMap<Subject, Entry>>);

impl Rejections {
    /// What was rejected of the last reconcile of a key.
    pub fn of(&self, reconciler: &'static str, key: &Key) -> Vec<Rejection> {
        let known = self.lock();
        if known.is_empty() {
            return Vec::new();
        }
        let found = known.get(&subject(reconciler, key));
        found.map(|entry| entry.rejected.clone()).unwrap_or_default()
    }

    /// The first key in a namespace, with what was rejected of it, whose name begins so and is meant.
    pub fn first_of(
        &self,
        reconciler: &'static str,
        namespace: &str,
        prefix: &str,
        is_meant: impl Fn(&str) -> bool,
    ) -> Option<(String, Rejection)> {
        let known = self.lock();
        if known.is_empty() {
            return None;
        }
        let all = known.range((reconciler, namespace.to_owned(), prefix.to_owned())..);
        let within = all
            .take_while(|((of, within, name), _)| *of == reconciler && within == namespace && name.starts_with(prefix));
        let mut meant = within.filter(|((_, _, name), _)| is_meant(name));
        meant.find_map(|((_, _, name), entry)| Some((name.clone(), entry.rejected.first()?.clone())))
    }

    /// Takes in what a reconcile met; whether that is something new to show.
    pub fn put(&self, reconciler: &'static str, key: &Key, rejected: &[Rejection]) -> bool {
        let (subject, now) = (subject(reconciler, key), Instant::now());
        let mut known = self.lock();
        if let Some(Entry {
            rejected: before, at, ..
        }) = known.get(&subject)
        {
            let alike =
                before.len() == rejected.len() && before.iter().zip(rejected).all(|(one, other)| one.is_like(other));
            if before == rejected || alike && at.elapsed() < REWORDED {
                return false;
            }
        }
        let entry = Entry {
            rejected: rejected.to_vec(),
            at: now,
            unshown: None,
        };
        known.insert(subject, entry);
        true
    }

    /// The status that should show what was rejected of a key is rejected, too.
    pub fn unshown(&self, reconciler: &'static str, key: &Key) {
        if let Some(entry) = self.lock().get_mut(&subject(reconciler, key)) {
            entry.unshown = Some(Instant::now());
        }
    }

    /// Whether that is so, and was so lately.
    pub fn is_unshown(&self, reconciler: &'static str, key: &Key) -> bool {
        let known = self.lock();
        let since = known.get(&subject(reconciler, key)).and_then(|entry| entry.unshown);
        since.is_some_and(|since| since.elapsed() < UNSHOWN)
    }

    /// Nothing is rejected any more; whether something was.
    pub fn clear(&self, reconciler: &'static str, key: &Key) -> bool {
        let mut known = self.lock();
        !known.is_empty() && known.remove(&subject(reconciler, key)).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Subject, Entry>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::INSTANCE;
    use popcell_core::plan::{Plane, Target};
    use tokio::time::advance;

    use super::*;

    fn rejected(name: &str, words: &str) -> [Rejection; 1] {
        let target = Target::namespaced(&Plane::Cell, INSTANCE, "n", name);
        [Rejection::new(&target, "create", words)]
    }

    #[tokio::test(start_paused = true)]
    async fn other_words_for_the_same_are_new_once_a_minute_and_another_object_at_once() {
        let (known, key) = (Rejections::default(), Key::new(&Plane::Cell, "n", "web"));
        assert!(known.put("r", &key, &rejected("web-0", "at 1")));
        assert!(!known.put("r", &key, &rejected("web-0", "at 1")));
        assert!(!known.put("r", &key, &rejected("web-0", "at 2")));
        assert_eq!(known.of("r", &key), rejected("web-0", "at 1"));
        assert!(known.put("r", &key, &rejected("web-1", "at 2")));
        advance(REWORDED).await;
        assert!(known.put("r", &key, &rejected("web-1", "at 3")));
        assert!(known.of("other", &key).is_empty());
        assert!(!known.is_unshown("r", &key));
        known.unshown("r", &key);
        assert!(known.is_unshown("r", &key) && !known.is_unshown("other", &key));
        advance(UNSHOWN).await;
        assert!(!known.is_unshown("r", &key));
        assert!(known.clear("r", &key) && !known.clear("r", &key));
    }

    #[tokio::test]
    async fn those_of_one_workload_deployment_are_found() {
        let known = Rejections::default();
        let first = |prefix: &str| {
            let found = known.first_of("r", "n", prefix, |name| name != "web-9");
            found.map(|(name, _)| name)
        };
        for (reconciler, namespace, name) in [
            ("r", "n", "web-1"),
            ("r", "n", "web-0"),
            ("q", "n", "web-0"),
            ("r", "m", "web-0"),
            ("r", "n", "web-9"),
        ] {
            known.put(
                reconciler,
                &Key::new(&Plane::Hub, namespace, name),
                &rejected(name, "no"),
            );
        }
        assert_eq!(first("web-").as_deref(), Some("web-0"));
        assert_eq!((first("we-"), first("web-00")), (None, None));
    }
}
