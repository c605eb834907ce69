//! What the copies of ConfigMaps and Secrets on the hub take, for each project: so that one cannot fill the hub.
//!
//! Invariants: what counts of a hub namespace is what its last reconcile listed, and what it took since. What a project takes is
//! taken at once, by whichever of its namespaces: two that write at the same time do not both get the last room.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::sync::lock;

/// Bytes of all projects.
#[derive(Debug, Default)]
pub struct DataBudget(Mutex<Budget>);

#[derive(Debug, Default)]
struct Budget {
    /// Of each hub namespace, its project and what it has.
    namespaces: HashMap<String, (String, usize)>,
    projects: HashMap<String, Usage>,
}

/// What one project has.
#[derive(Debug, Default)]
struct Usage {
    bytes: usize,
    namespaces: usize,
    /// Whether all namespaces that had copies when the process started were listed since.
    is_counted: bool,
}

impl Budget {
    fn put(&mut self, namespace: &str, now: Option<(&str, usize)>) {
        if let Some((project, bytes)) = self.namespaces.remove(namespace)
            && let Some(usage) = self.projects.get_mut(&project)
        {
            usage.bytes = usage.bytes.saturating_sub(bytes);
            usage.namespaces -= 1;
            if usage.namespaces == 0 && now.is_none_or(|(now, _)| now != project) {
                self.projects.remove(&project);
            }
        }
        if let Some((project, bytes)) = now {
            self.namespaces
                .insert(namespace.to_owned(), (project.to_owned(), bytes));
            let usage = self.projects.entry(project.to_owned()).or_default();
            usage.bytes = usage.bytes.saturating_add(bytes);
            usage.namespaces += 1;
        }
    }
}

impl DataBudget {
    /// What a hub namespace has, by a list, and of which project; `None` where it has no copies and needs none.
    pub(crate) fn put(&self, namespace: &str, now: Option<(&str, usize)>) {
        lock(&self.0).put(namespace, now);
    }

    /// Whether all that a project has is counted: each of its hub namespaces with copies was listed since the process started. They
    /// are not looked through again once it is.
    pub(crate) fn is_counted(&self, project: &str, with_copies: impl IntoIterator<Item = String>) -> bool {
        let mut all = lock(&self.0);
        let Budget { namespaces, projects } = &mut *all;
        let is_listed = |name: &String| namespaces.get(name).is_some_and(|(of, _)| of == project);
        projects.get_mut(project).is_some_and(|usage| {
            usage.is_counted = usage.is_counted || with_copies.into_iter().all(|name| is_listed(&name));
            usage.is_counted
        })
    }

    /// Takes so many bytes more for a hub namespace that was listed, if its project may have `most`; whether it does.
    pub(crate) fn take(&self, namespace: &str, more: usize, most: usize) -> bool {
        let mut all = lock(&self.0);
        let Budget { namespaces, projects } = &mut *all;
        let Some((project, bytes)) = namespaces.get_mut(namespace) else {
            return false;
        };
        let Some(usage) = projects.get_mut(project) else {
            return false;
        };
        let fits = usage.bytes.saturating_add(more) <= most;
        if fits {
            usage.bytes = usage.bytes.saturating_add(more);
            *bytes = bytes.saturating_add(more);
        }
        fits
    }

    /// Whether a project has no more than `most` bytes.
    pub(crate) fn is_within(&self, project: &str, most: usize) -> bool {
        let all = lock(&self.0);
        all.projects.get(project).is_none_or(|usage| usage.bytes <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_project_has_is_the_sum_of_what_was_listed_and_taken() {
        let budget = DataBudget::default();
        budget.put("a", Some(("p", 6)));
        budget.put("b", Some(("p", 3)));
        budget.put("c", Some(("other", 100)));
        assert!(!budget.take("b", 2, 10) && budget.take("b", 1, 10));
        assert!(!budget.take("a", 1, 10) && budget.is_within("p", 10) && !budget.is_within("p", 9));
        // What is listed counts in place of what was taken.
        budget.put("b", Some(("p", 0)));
        assert!(budget.take("a", 4, 10));
        // What is the project's no more makes room, and where nothing is left nothing is kept.
        budget.put("a", Some(("other", 10)));
        assert!(budget.take("b", 10, 10) && budget.is_within("other", 110) && !budget.is_within("other", 109));
        for namespace in ["a", "b", "c"] {
            budget.put(namespace, None);
        }
        let all = lock(&budget.0);
        assert!(all.projects.is_empty() && all.namespaces.is_empty());
    }

    #[test]
    fn what_a_client_says_is_larger_than_all_memory_is_no_overflow() {
        let budget = DataBudget::default();
        for namespace in ["a", "b"] {
            budget.put(namespace, Some(("p", usize::MAX)));
        }
        assert!(!budget.take("a", 1, usize::MAX - 1) && budget.take("a", 1, usize::MAX));
        budget.put("a", Some(("p", 1)));
        budget.put("b", Some(("p", 1)));
        assert!(budget.is_within("p", 2));
    }

    #[test]
    fn all_is_counted_once_each_namespace_with_copies_was_listed() {
        let budget = DataBudget::default();
        let both = || ["a".to_owned(), "b".to_owned()];
        assert!(!budget.is_counted("p", []) && !budget.take("a", 1, 10));
        budget.put("a", Some(("p", 0)));
        budget.put("b", Some(("other", 0)));
        assert!(!budget.is_counted("p", both()));
        budget.put("b", Some(("p", 0)));
        assert!(budget.is_counted("p", both()));
        // One that comes later begins with nothing.
        assert!(budget.is_counted("p", ["c".to_owned()]));
    }
}
