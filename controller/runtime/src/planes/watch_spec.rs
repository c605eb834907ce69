//! What is watched on a plane, and when.

use std::borrow::Cow;
use std::sync::Arc;

use popcell_api::kind::{self, Kind};
use popcell_api::labels;
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{NAMESPACE, Plane, RESOURCE_QUOTA};

/// What is watched on a plane.
pub type WatchSpecs = Box<dyn Fn(&Plane) -> Arc<[WatchSpec]> + Send + Sync>;

/// How much of an object is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All of it, but managedFields.
    Whole,
    /// Address, uid, versions and these fields, by JSON pointer; the rest is read and thrown away.
    Fields(&'static [&'static str]),
    /// Its metadata only; nothing else of it can be read from the store.
    Metadata,
}

/// When a kind is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchCondition {
    /// While the plane is engaged.
    Engaged,
    /// The same, but the plane is known without it: what rests on it waits for it, and nothing else does.
    Optional,
    /// While the plane has any object of these kinds, which are themselves watched.
    Any(&'static [Kind]),
}

/// One watch of a plane, over all namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSpec {
    /// The kind.
    pub kind: Kind,
    /// A label selector: empty = all, a label = with it, `label=value`.
    pub selector: Cow<'static, str>,
    /// How much of each object.
    pub view: View,
    /// When it is watched.
    pub when: WatchCondition,
}

impl WatchSpec {
    const fn new(kind: Kind, when: WatchCondition) -> Self {
        Self::of(kind, when, "", View::Whole)
    }

    /// Objects that have a label.
    const fn labelled(kind: Kind, label: &'static str) -> Self {
        Self::of(kind, WatchCondition::Engaged, label, View::Whole)
    }

    /// Whether the selector lets an object through.
    pub fn sees(&self, object: &Object) -> bool {
        match self.selector.split_once('=') {
            _ if self.selector.is_empty() => true,
            Some((label, value)) => object.label(label) == Some(value),
            None => object.label(&self.selector).is_some(),
        }
    }

    const fn of(kind: Kind, when: WatchCondition, selector: &'static str, view: View) -> Self {
        Self {
            kind,
            selector: Cow::Borrowed(selector),
            view,
            when,
        }
    }
}

/// What management controllers watch in a project. One that is idle costs two streams.
pub const PROJECT: [WatchSpec; 5] = [
    WatchSpec::new(kind::WORKLOAD, WatchCondition::Engaged),
    WatchSpec::new(kind::WORKLOAD_DEPLOYMENT, WatchCondition::Engaged),
    // A WorkloadDeployment that is made directly needs these too.
    WatchSpec::new(
        kind::NETWORK,
        WatchCondition::Any(&[kind::WORKLOAD, kind::WORKLOAD_DEPLOYMENT]),
    ),
    WatchSpec::new(
        kind::LOCATION_BINDING,
        WatchCondition::Any(&[kind::WORKLOAD, kind::WORKLOAD_DEPLOYMENT]),
    ),
    WatchSpec::of(
        kind::INSTANCE,
        WatchCondition::Any(&[kind::WORKLOAD_DEPLOYMENT]),
        "",
        View::Metadata,
    ),
];

/// What is read of a ResourceBinding. The rest, such as requirements and the status of every member, is most of it.
const BINDING: [&str; 6] = [
    "/spec/resource/kind",
    "/spec/resource/name",
    "/spec/resource/uid",
    "/spec/clusters",
    "/status/conditions",
    "/status/schedulerObservedGeneration",
];

/// What management controllers watch on the hub.
pub const HUB: [WatchSpec; 8] = [
    WatchSpec::labelled(NAMESPACE, labels::UPSTREAM_CLUSTER_NAME),
    WatchSpec::new(kind::WORKLOAD_DEPLOYMENT, WatchCondition::Engaged),
    WatchSpec::new(kind::PROPAGATION_POLICY, WatchCondition::Engaged),
    // Karmada labels bindings with ids only, so no selector tells ours from others.
    WatchSpec::of(
        kind::RESOURCE_BINDING,
        WatchCondition::Engaged,
        "",
        View::Fields(&BINDING),
    ),
    WatchSpec::new(kind::CLUSTER, WatchCondition::Engaged),
    WatchSpec::new(kind::INSTANCE, WatchCondition::Engaged),
    // A hub that was set up before quotas were kept gives no right to them.
    WatchSpec::of(
        RESOURCE_QUOTA,
        WatchCondition::Optional,
        labels::MANAGED_BY,
        View::Whole,
    ),
    // Copies, and what other clients have at their names. A hub without this kind, or without a right to it, carries none.
    WatchSpec::new(kind::NETWORK, WatchCondition::Optional),
];

/// What cell controllers watch in the cell.
pub const CELL: [WatchSpec; 4] = [
    WatchSpec::labelled(NAMESPACE, labels::UPSTREAM_CLUSTER_NAME),
    WatchSpec::new(kind::WORKLOAD_DEPLOYMENT, WatchCondition::Engaged),
    WatchSpec::new(kind::INSTANCE, WatchCondition::Engaged),
    // All of them, so that one of another owner is found. A cell may lack the kind.
    WatchSpec::new(kind::HORIZONTAL_POD_AUTOSCALER, WatchCondition::Optional),
];

/// What they watch in the cell beside that, where Instances wait for networks.
pub const CELL_NETWORKS: [WatchSpec; 5] = [
    WatchSpec::new(kind::LOCATION, WatchCondition::Engaged),
    WatchSpec::new(kind::NETWORK_BINDING, WatchCondition::Engaged),
    WatchSpec::new(kind::NETWORK_CONTEXT, WatchCondition::Engaged),
    WatchSpec::new(kind::SUBNET_CLAIM, WatchCondition::Engaged),
    WatchSpec::new(kind::SUBNET, WatchCondition::Engaged),
];

/// What management controllers watch on a plane.
pub fn management(plane: &Plane) -> Arc<[WatchSpec]> {
    match plane {
        Plane::Project(_) => Arc::from(PROJECT),
        Plane::Hub => Arc::from(HUB),
        Plane::Cell | Plane::Discovery => Arc::from([]),
    }
}

/// What a cell watches of its own in another plane: objects of a kind that carry its name.
pub fn of_source(kind: Kind, cluster: &str) -> WatchSpec {
    WatchSpec {
        selector: Cow::Owned(format!("{}={cluster}", labels::SOURCE_CLUSTER)),
        ..WatchSpec::new(kind, WatchCondition::Engaged)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// As Karmada v1.18 keeps it for one WorkloadDeployment in one member.
    fn binding() -> Value {
        let conditions = json!([{ "type": "Scheduled", "status": "True", "reason": "Success", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
        json!({ "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": {
            "name": "web-workloaddeployment", "namespace": "ns-1", "uid": "u", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["karmada.io/binding-controller"],
            "labels": { "resourcebinding.karmada.io/permanent-id": "0b7a" }, "annotations": {
            "policy.karmada.io/applied-placement": "{\"clusterAffinity\":{\"labelSelector\":{}}}" },
            "ownerReferences": [{ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
                "name": "web", "uid": "h", "controller": true, "blockOwnerDeletion": true }] },
            "spec": { "clusters": [{ "name": "dfw-01", "replicas": 2 }], "conflictResolution": "Abort", "replicas": 2,
                "placement": { "clusterAffinity": { "labelSelector": { "matchLabels": { "city": "DFW" } } },
                    "clusterTolerations": [{ "operator": "Exists", "effect": "NoExecute" }] },
                "replicaRequirements": { "resourceRequest": { "cpu": "1", "memory": "2Gi" } },
                "resource": { "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
                    "name": "web", "namespace": "ns-1", "uid": "h", "resourceVersion": "9" },
                "schedulerName": "default-scheduler" },
            "status": { "conditions": conditions, "schedulerObservedGeneration": 3,
                "lastScheduledTime": "2026-01-01T00:00:00Z", "aggregatedStatus": [{ "clusterName": "dfw-01",
                    "applied": true, "health": "Healthy", "status": { "replicas": 2, "readyReplicas": 2,
                    "currentReplicas": 2, "updatedReplicas": 2, "desiredReplicas": 2, "conditions": conditions } }] } })
    }

    #[test]
    fn of_a_binding_only_what_is_read_is_kept() {
        let whole = binding();
        let mut object = Object::read(&whole.to_string()).unwrap();
        object.keep(&BINDING);
        let kept = serde_json::to_value(&object).unwrap();
        for pointer in BINDING.iter().chain(
            [
                "/metadata/name",
                "/metadata/namespace",
                "/metadata/uid",
                "/metadata/resourceVersion",
                "/metadata/generation",
                "/metadata/creationTimestamp",
            ]
            .iter(),
        ) {
            assert!(whole.pointer(pointer).is_some());
            assert_eq!(kept.pointer(pointer), whole.pointer(pointer), "{pointer}");
        }
        for pointer in [
            "/metadata/labels",
            "/metadata/annotations",
            "/metadata/ownerReferences",
            "/metadata/finalizers",
            "/spec/placement",
            "/status/aggregatedStatus",
        ] {
            assert!(whole.pointer(pointer).is_some());
            assert_eq!(kept.pointer(pointer), None, "{pointer}");
        }
        let size = |value: &Value| value.to_string().len();
        assert!(
            size(&kept) * 2 < size(&whole),
            "{} of {} bytes",
            size(&kept),
            size(&whole)
        );
        // One of another kind has hardly anything that is read; one without a status keeps none.
        let mut bare = Object::read(r#"{"metadata":{"name":"b"},"spec":{}}"#).unwrap();
        bare.keep(&BINDING);
        assert_eq!(bare.data, json!({}));
    }

    #[test]
    fn an_idle_project_costs_two_streams_and_every_condition_is_watched() {
        let project = PROJECT;
        let idle = project
            .iter()
            .filter(|watch_spec| watch_spec.when == WatchCondition::Engaged);
        assert_eq!(idle.count(), 2);
        for table in [PROJECT.as_slice(), &HUB, &CELL, &CELL_NETWORKS] {
            for watch_spec in table {
                let WatchCondition::Any(triggers) = watch_spec.when else {
                    continue;
                };
                assert!(!triggers.is_empty());
                for trigger in triggers {
                    let found = table.iter().find(|each| each.kind == *trigger).unwrap();
                    assert_eq!(found.when, WatchCondition::Engaged);
                }
            }
        }
    }
}
