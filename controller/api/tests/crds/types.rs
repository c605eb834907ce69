//! The types read and write what the schemas describe.

use popcell_api::{
    HorizontalScaleSettings, Instance, InstanceManagementPolicy, Workload, WorkloadDeployment,
    WorkloadDeploymentStatus, WorkloadPlacementStatus, WorkloadStatus,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::read::whole;

fn there_and_back<T: Serialize + DeserializeOwned>(object: &Value) -> Value {
    let typed: T = serde_json::from_value(object.clone()).unwrap();
    serde_json::to_value(typed).unwrap()
}

#[test]
fn types_lose_no_field() {
    for (kind, through) in [
        ("Workload", there_and_back::<Workload> as fn(&Value) -> Value),
        ("WorkloadDeployment", there_and_back::<WorkloadDeployment>),
        ("Instance", there_and_back::<Instance>),
    ] {
        let object = whole(kind);
        assert_eq!(through(&object), object, "{kind}");
    }
}

#[test]
fn an_instance_without_controller_is_read() {
    let mut object = whole("Instance");
    object["spec"]["controller"] = Value::Null;
    object["status"]["controller"] = Value::Null;
    let typed: Instance = serde_json::from_value(object).unwrap();
    assert_eq!(typed.spec.controller, None);
    assert_eq!(typed.status.unwrap().controller, None);
}

#[test]
fn zero_counts_are_written() {
    let counts = [
        "replicas",
        "currentReplicas",
        "updatedReplicas",
        "desiredReplicas",
        "readyReplicas",
    ];
    for status in [
        serde_json::to_value(WorkloadStatus::default()),
        serde_json::to_value(WorkloadPlacementStatus::default()),
        serde_json::to_value(WorkloadDeploymentStatus::default()),
    ] {
        let status = status.unwrap();
        for count in counts {
            assert_eq!(status[count], json!(0), "{status}");
        }
    }
    assert_eq!(
        serde_json::to_value(WorkloadStatus::default()).unwrap()["deployments"],
        json!(0)
    );
}

#[test]
fn a_management_policy_that_is_absent_or_empty_means_ordered_ready() {
    for settings in [
        json!({ "minReplicas": 1 }),
        json!({ "minReplicas": 1, "instanceManagementPolicy": "" }),
    ] {
        let typed: HorizontalScaleSettings = serde_json::from_value(settings).unwrap();
        assert_eq!(typed.instance_management_policy, InstanceManagementPolicy::OrderedReady);
    }
}
