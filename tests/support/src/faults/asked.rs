//! What a request asks an API server for.

use std::fmt;

use axum::http::{Method, Uri};

use crate::gateway::of_project;

/// A request as RBAC would name it. What is not about objects has no `plural`, such as `/version`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// `get`, `list`, `probe` (a list of one object, which only asks whether the server works and how far it is), `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'static str,
    /// The project below whose prefix it is.
    pub project: Option<String>,
    /// Namespace of the object; `None` for objects of the cluster and for lists over all namespaces.
    pub namespace: Option<String>,
    /// Such as `workloaddeployments`.
    pub plural: String,
    /// The object; `None` for lists and where one is created.
    pub name: Option<String>,
    /// Such as `status`.
    pub subresource: Option<String>,
}

impl Asked {
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        let (project, path) = match of_project(uri.path()) {
            Some((project, rest)) => (Some(project.to_owned()), rest),
            None => (None, uri.path()),
        };
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let below = match segments.as_slice() {
            ["api", _, below @ ..] | ["apis", _, _, below @ ..] => below,
            _ => &[],
        };
        let (namespace, below) = match below {
            ["namespaces", namespace, below @ ..] if !below.is_empty() => (Some(*namespace), below),
            below => (None, below),
        };
        let text = |index: usize| below.get(index).map(|text| (*text).to_owned());
        let one = below.get(1).is_some();
        let query = uri.query().unwrap_or_default();
        let watches = query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1");
        let verb = match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if one => "delete",
            Method::DELETE => "deletecollection",
            _ if watches => "watch",
            _ if one => "get",
            _ if query.split('&').any(|pair| pair == "limit=1") => "probe",
            _ => "list",
        };
        Self {
            verb,
            project,
            namespace: namespace.map(str::to_owned),
            plural: text(0).unwrap_or_default(),
            name: text(1),
            subresource: text(2),
        }
    }

    /// Whether it would change something.
    #[must_use]
    pub fn writes(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "probe" | "watch")
    }

    /// Whether it is about objects of a namespace.
    #[must_use]
    pub fn is_within(&self, namespace: &str) -> bool {
        self.namespace.as_deref() == Some(namespace)
    }

    /// Whether it is for a project.
    #[must_use]
    pub fn is_of(&self, project: &str) -> bool {
        self.project.as_deref() == Some(project)
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verb)?;
        let parts = [self.project.as_ref(), self.namespace.as_ref(), Some(&self.plural)];
        let parts = parts.into_iter().chain([self.name.as_ref(), self.subresource.as_ref()]);
        for (index, part) in parts.flatten().enumerate() {
            write!(f, "{}{part}", if index == 0 { ' ' } else { '/' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &Method, uri: &str) -> String {
        Asked::of(method, &uri.parse().unwrap()).to_string()
    }

    #[test]
    fn requests_are_named_as_rbac_names_them() {
        let compute = "/apis/compute.datumapis.com/v1alpha";
        let below = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/p1/control-plane";
        for (method, uri, named) in [
            (Method::GET, format!("{compute}/workloads?limit=5"), "list workloads"),
            (
                Method::GET,
                format!("{compute}/workloads?x=y&watch=true"),
                "watch workloads",
            ),
            (Method::GET, "/api/v1/namespaces/n".to_owned(), "get namespaces/n"),
            (Method::POST, "/api/v1/namespaces".to_owned(), "create namespaces"),
            (
                Method::POST,
                format!("{compute}/namespaces/n/workloads"),
                "create n/workloads",
            ),
            (
                Method::PATCH,
                format!("{compute}/namespaces/n/workloads/w/status"),
                "patch n/workloads/w/status",
            ),
            (
                Method::DELETE,
                format!("{compute}/namespaces/n/workloads/w"),
                "delete n/workloads/w",
            ),
            (
                Method::DELETE,
                format!("{compute}/namespaces/n/workloads"),
                "deletecollection n/workloads",
            ),
            (
                Method::PUT,
                format!("{below}{compute}/namespaces/n/workloads/w"),
                "update p1/n/workloads/w",
            ),
            (Method::GET, "/version".to_owned(), "list "),
        ] {
            assert_eq!(asked(&method, &uri), named, "{uri}");
        }
    }

    #[test]
    fn what_changes_nothing_does_not_write() {
        for verb in ["get", "list", "watch"] {
            assert!(
                !Asked {
                    verb,
                    ..Asked::default()
                }
                .writes()
            );
        }
        assert!(
            Asked {
                verb: "create",
                ..Asked::default()
            }
            .writes()
        );
    }
}
