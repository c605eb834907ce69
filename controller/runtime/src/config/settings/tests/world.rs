//! A machine as tests want it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::Surroundings;

/// A machine with files (by path, with their text) and variables (by name).
#[derive(Clone, Default)]
pub(super) struct World {
    pub(super) files: BTreeMap<String, String>,
    pub(super) variables: BTreeMap<String, String>,
}

impl World {
    /// Files `/h`, `/l`, `/d`, `/p`, `/q` for kubeconfigs, and certificates where they are by default.
    pub(super) fn whole() -> Self {
        let ports = ["webhook", "metrics"];
        let certificates = ports.map(|port| format!("/tmp/k8s-{port}-server/serving-certs/tls"));
        let certificates = certificates
            .iter()
            .flat_map(|base| [format!("{base}.crt"), format!("{base}.key")]);
        let kubeconfigs = ["/h", "/l", "/d", "/p", "/q"].map(str::to_owned);
        Self {
            files: kubeconfigs
                .into_iter()
                .chain(certificates)
                .map(|path| (path, String::new()))
                .collect(),
            variables: [("KUBECONFIG".to_owned(), "/l".to_owned())].into(),
        }
    }

    pub(super) fn in_pod(mut self) -> Self {
        let account = "/var/run/secrets/kubernetes.io/serviceaccount";
        self.variables
            .insert("KUBERNETES_SERVICE_HOST".to_owned(), "10.0.0.1".to_owned());
        self.files.insert(format!("{account}/token"), "t".to_owned());
        self.files.insert(format!("{account}/namespace"), "own".to_owned());
        self
    }

    pub(super) fn without(mut self, file: &str) -> Self {
        assert!(self.files.remove(file).is_some(), "{file}");
        self
    }
}

impl Surroundings for World {
    fn has(&self, file: &Path) -> bool {
        file.to_str().is_some_and(|path| self.files.contains_key(path))
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn text(&self, file: &Path) -> Option<String> {
        self.files.get(file.to_str()?).cloned()
    }
}
