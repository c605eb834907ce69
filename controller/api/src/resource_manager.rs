//! Types of milo's resource manager, group `resourcemanager.miloapis.com`.

use kube::core::object::{NotUsed, Object};

use crate::observed::ConditionsOnly;

/// API group. Claims name their project by it.
pub const GROUP: &str = "resourcemanager.miloapis.com";
/// Version.
pub const VERSION: &str = "v1alpha1";
/// Kind of projects. Claims name their project by it.
pub const PROJECT_KIND: &str = "Project";

/// A project; its name is the project id, and its own API server is at
/// `/apis/resourcemanager.miloapis.com/v1alpha1/projects/<name>/control-plane`. It is engaged while its condition
/// `Ready` is True.
pub type Project = Object<Option<NotUsed>, ConditionsOnly>;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_project_is_read_by_name_and_conditions() {
        let project: Project = serde_json::from_value(json!({
            "apiVersion": "resourcemanager.miloapis.com/v1alpha1",
            "kind": "Project",
            "metadata": { "name": "p1", "uid": "u1" },
            "spec": { "ownerRef": { "kind": "Organization", "name": "o1" } },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }))
        .unwrap();
        assert_eq!(project.status.unwrap().conditions[0].status, "True");
        let bare: Project = serde_json::from_value(json!({ "metadata": { "name": "p1" } })).unwrap();
        assert!(bare.status.is_none());
    }
}
