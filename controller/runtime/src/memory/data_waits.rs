//! Why Instances wait for ConfigMaps and Secrets: found by the reconcile of their WorkloadDeployment, shown by their own.

use std::collections::BTreeMap;
use std::sync::Mutex;

use popcell_core::observed::Observed;

use crate::sync::lock;

/// For users, by namespace and name of the WorkloadDeployment; `None` within = all are there.
#[derive(Debug, Default)]
pub struct DataWaits(Mutex<BTreeMap<(String, String), Option<String>>>);

impl DataWaits {
    /// What was found last while Instances waited; unknown where nothing was.
    pub fn of(&self, namespace: &str, name: &str) -> Observed<Option<String>> {
        let found = lock(&self.0).get(&key(namespace, name)).cloned();
        found.map_or(Observed::Unknown, Observed::Known)
    }

    /// Takes in what was found; whether Instances show something else.
    pub(crate) fn put(&self, namespace: &str, name: &str, why: Option<&str>) -> bool {
        let why = why.map(str::to_owned);
        let before = lock(&self.0).insert(key(namespace, name), why.clone());
        before.flatten() != why
    }

    /// Nothing waits any more.
    pub(crate) fn forget(&self, namespace: &str, name: &str) {
        lock(&self.0).remove(&key(namespace, name));
    }
}

fn key(namespace: &str, name: &str) -> (String, String) {
    (namespace.to_owned(), name.to_owned())
}
