//! What the copies of ConfigMaps and Secrets on the hub take, for each project: so that one cannot fill the hub.
//!
//! Invariants: what counts of a hub namespace is what its last reconcile listed, and what it took since. What a project takes is
//! taken at once, by whichever of its namespaces: two that write at the same time do not both get the last room. A copy that is
//! deleted to be made again keeps its room until it is there, so that no other copy takes it meanwhile.

use std::collections::HashMap;
use std::sync::Mutex;

use popcell_core::limits::Excess;
use popcell_core::references::Reference;

use crate::sync::lock;

/// Bytes of all projects.
#[derive(Debug, Default)]
pub struct DataBudget(Mutex<Budget>);

#[derive(Debug, Default)]
struct Budget {
    namespaces: HashMap<String, Namespace>,
    projects: HashMap<String, Usage>,
    /// Namespaces whose last list failed, and whether the hub gave no right to it.
    failing: HashMap<String, bool>,
}

/// What a hub namespace has.
#[derive(Debug, Default)]
struct Namespace {
    project: String,
    copies: HashMap<Reference, Room>,
}

/// What one copy takes.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    bytes: usize,
    /// Whether it is kept while the copy is not there.
    is_reserved: bool,
}

/// What one project has.
#[derive(Debug, Default)]
struct Usage {
    bytes: usize,
    namespaces: usize,
    /// Whether all namespaces that had copies when the process started were listed since.
    is_counted: bool,
}

impl Namespace {
    fn bytes(&self) -> usize {
        self.copies.values().map(|room| room.bytes).sum()
    }
}

impl Budget {
    fn put(&mut self, name: &str, now: Option<Namespace>) {
        self.failing.remove(name);
        if let Some(before) = self.namespaces.remove(name)
            && let Some(usage) = self.projects.get_mut(&before.project)
        {
            usage.bytes -= before.bytes();
            usage.namespaces -= 1;
            if usage.namespaces == 0 && now.as_ref().is_none_or(|now| now.project != before.project) {
                self.projects.remove(&before.project);
            }
        }
        if let Some(now) = now {
            let usage = self.projects.entry(now.project.clone()).or_default();
            usage.bytes += now.bytes();
            usage.namespaces += 1;
            self.namespaces.insert(name.to_owned(), now);
        }
    }
}

impl DataBudget {
    /// What a hub namespace has, by a list: of which project, what each copy takes, and whether it is going. Of reserved room that is
    /// kept which `is_needed`, of what is gone or going.
    pub(crate) fn put(
        &self,
        namespace: &str,
        project: &str,
        listed: impl IntoIterator<Item = (Reference, usize, bool)>,
        is_needed: impl Fn(&Reference) -> bool,
    ) {
        let mut all = lock(&self.0);
        let before = all.namespaces.get(namespace).filter(|before| before.project == project);
        let rooms = before.into_iter().flat_map(|before| &before.copies);
        let reserved = rooms.filter(|(one, room)| room.is_reserved && is_needed(one));
        let mut copies: HashMap<Reference, Room> = reserved.map(|(one, room)| (one.clone(), *room)).collect();
        for (one, bytes, is_going) in listed {
            let room = copies.entry(one).or_default();
            room.bytes = if is_going { room.bytes.max(bytes) } else { bytes };
        }
        let project = project.to_owned();
        all.put(namespace, Some(Namespace { project, copies }));
    }

    /// A hub namespace has no copies and needs none, or is no project's.
    pub(crate) fn forget(&self, namespace: &str) {
        lock(&self.0).put(namespace, None);
    }

    /// A hub namespace was not listed; whether it is news that the hub gives no right to.
    pub(crate) fn fail(&self, namespace: &str, is_denied: bool) -> bool {
        let before = lock(&self.0).failing.insert(namespace.to_owned(), is_denied);
        is_denied && before != Some(true)
    }

    /// What of a hub namespace has reserved room.
    pub(crate) fn reserved(&self, namespace: &str) -> Vec<Reference> {
        let all = lock(&self.0);
        let copies = all.namespaces.get(namespace).into_iter().flat_map(|one| &one.copies);
        let reserved = copies.filter(|(_, room)| room.is_reserved);
        reserved.map(|(one, _)| one.clone()).collect()
    }

    /// Whether all that a project has is counted.
    pub(crate) fn is_counted(&self, project: &str) -> bool {
        lock(&self.0)
            .projects
            .get(project)
            .is_some_and(|usage| usage.is_counted)
    }

    /// Whether all that a project has is counted now, where these are its hub namespaces with copies: each has been listed since
    /// the process started. They are not looked through again once it is.
    pub(crate) fn count(&self, project: &str, with_copies: &[String]) -> Result<(), Excess> {
        let mut all = lock(&self.0);
        let Budget {
            namespaces,
            projects,
            failing,
        } = &mut *all;
        let is_listed = |name: &String| namespaces.get(name).is_some_and(|one| one.project == project);
        let mut missing = with_copies.iter().filter(|name| !is_listed(name)).peekable();
        match projects.get_mut(project) {
            Some(usage) if missing.peek().is_none() => {
                usage.is_counted = true;
                Ok(())
            }
            _ => Err(Excess::DataUncounted {
                is_denied: missing.any(|name| failing.get(name) == Some(&true)),
            }),
        }
    }

    /// Whether a copy has room for so many bytes.
    pub(crate) fn holds(&self, namespace: &str, copy: &Reference, bytes: usize) -> bool {
        let all = lock(&self.0);
        let namespace = all.namespaces.get(namespace);
        namespace.is_some_and(|one| one.copies.get(copy).is_some_and(|room| bytes <= room.bytes))
    }

    /// Gives a copy room for so many bytes, in a hub namespace that was listed, if it has that or its project has no more than `most`
    /// then; whether it does.
    pub(crate) fn take(&self, namespace: &str, copy: &Reference, bytes: usize, most: usize) -> bool {
        let mut all = lock(&self.0);
        let Budget {
            namespaces, projects, ..
        } = &mut *all;
        let Some(namespace) = namespaces.get_mut(namespace) else {
            return false;
        };
        let Some(usage) = projects.get_mut(&namespace.project) else {
            return false;
        };
        let had = namespace.copies.get(copy).copied().unwrap_or_default();
        let more = bytes.saturating_sub(had.bytes);
        let fits = more == 0 || usage.bytes.saturating_add(more) <= most;
        if fits {
            usage.bytes += more;
            namespace.copies.entry(copy.clone()).or_default().bytes += more;
        }
        fits
    }

    /// Whether a copy keeps its room while it is not there. What had none gets none.
    pub(crate) fn reserve(&self, namespace: &str, copy: &Reference, is_reserved: bool) {
        let mut all = lock(&self.0);
        let room = all
            .namespaces
            .get_mut(namespace)
            .and_then(|one| one.copies.get_mut(copy));
        if let Some(room) = room {
            room.is_reserved = is_reserved;
        }
    }
}

#[cfg(test)]
mod tests {
    use popcell_core::plan::SECRET;

    use super::*;

    fn secret(name: &str) -> Reference {
        Reference {
            kind: SECRET,
            name: name.to_owned(),
        }
    }

    /// A list of a namespace: its copies, and what each has.
    fn put(budget: &DataBudget, namespace: &str, project: &str, listed: &[(&str, usize)]) {
        let listed = listed.iter().map(|(name, bytes)| (secret(name), *bytes, false));
        budget.put(namespace, project, listed, |one| one.name != "unnamed");
    }

    #[test]
    fn what_a_project_has_is_the_sum_of_what_was_listed_and_taken() {
        let budget = DataBudget::default();
        put(&budget, "a", "p", &[("one", 4), ("two", 2)]);
        put(&budget, "b", "p", &[("one", 3)]);
        put(&budget, "c", "other", &[("one", 100)]);
        let take = |namespace: &str, name: &str, bytes| budget.take(namespace, &secret(name), bytes, 10);
        assert!(!take("b", "one", 5) && take("b", "one", 4) && !take("a", "new", 1));
        assert!(budget.holds("b", &secret("one"), 4) && !budget.holds("b", &secret("one"), 5));
        // What shrinks has room, also where there is too much.
        put(&budget, "b", "p", &[("one", 30)]);
        assert!(take("a", "one", 3) && !take("a", "one", 5));
        // What is listed counts in place of what was taken.
        put(&budget, "b", "p", &[]);
        assert!(take("a", "one", 8) && !take("b", "one", 1));
        // What is the project's no more makes room, and where nothing is left nothing is kept.
        put(&budget, "a", "other", &[]);
        assert!(take("b", "one", 10) && !take("a", "one", 1));
        for namespace in ["a", "b", "c"] {
            budget.forget(namespace);
        }
        let all = lock(&budget.0);
        assert!(all.projects.is_empty() && all.namespaces.is_empty());
    }

    #[test]
    fn a_copy_that_is_made_again_keeps_its_room_while_it_is_gone() {
        let budget = DataBudget::default();
        let take = |namespace: &str, name: &str, bytes| budget.take(namespace, &secret(name), bytes, 10);
        let copies = [("one", 6), ("unnamed", 3)];
        put(&budget, "a", "p", &copies);
        put(&budget, "b", "p", &[]);
        assert!(take("a", "one", 7));
        for (name, _) in copies {
            budget.reserve("a", &secret(name), true);
        }
        budget.reserve("a", &secret("none"), true);
        // It goes; of what nobody names any more the room is free.
        let going = copies.map(|(name, bytes)| (secret(name), bytes, true));
        for listed in [&going[..], &[], &[]] {
            budget.put("a", "p", listed.iter().cloned(), |one| one.name != "unnamed");
            assert!(!take("b", "one", 4), "{listed:?}");
            assert_eq!(budget.reserved("a"), [secret("one")]);
        }
        assert!(take("b", "one", 3) && take("a", "one", 7) && !take("a", "one", 8));
        // What is there, again or because it was not deleted, counts as it is.
        put(&budget, "a", "p", &[("one", 5)]);
        assert!(take("b", "two", 2) && !take("b", "two", 3));
    }

    #[test]
    fn all_is_counted_once_each_namespace_with_copies_was_listed() {
        let budget = DataBudget::default();
        let both = ["a".to_owned(), "b".to_owned()];
        let uncounted = |is_denied| Err(Excess::DataUncounted { is_denied });
        assert_eq!(budget.count("p", &[]), uncounted(false));
        put(&budget, "a", "p", &[]);
        put(&budget, "b", "other", &[]);
        assert_eq!(budget.count("p", &both), uncounted(false));
        // Whoever waits for what the hub denies is told that, and the log has it once.
        assert!(!budget.fail("b", false));
        assert_eq!(budget.count("p", &both), uncounted(false));
        assert!(budget.fail("b", true) && !budget.fail("b", true));
        assert_eq!(budget.count("p", &both), uncounted(true));
        assert!(!budget.is_counted("p"));
        put(&budget, "b", "p", &[]);
        assert_eq!(budget.count("p", &both), Ok(()));
        assert!(budget.is_counted("p") && budget.fail("b", true));
    }
}
