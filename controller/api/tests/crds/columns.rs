//! What `kubectl get` shows.

use crate::read::{crd, only_version};

/// Name, path, priority: 0 is always shown, 1 with `-o wide`.
fn columns(kind: &str) -> Vec<(String, String, i32)> {
    let crd = crd(kind);
    let columns = only_version(crd).additional_printer_columns.clone().unwrap();
    columns
        .into_iter()
        .map(|column| (column.name, column.json_path, column.priority.unwrap_or(0)))
        .collect()
}

fn assert_columns(kind: &str, expected: &[(&str, &str, i32)]) {
    let expected: Vec<(String, String, i32)> = expected
        .iter()
        .map(|(name, path, priority)| ((*name).to_owned(), (*path).to_owned(), *priority))
        .collect();
    assert_eq!(columns(kind), expected);
}

const AGE: (&str, &str, i32) = ("Age", ".metadata.creationTimestamp", 0);
const AVAILABLE: (&str, &str, i32) = ("Available", r#".status.conditions[?(@.type=="Available")].status"#, 0);
const REASON: (&str, &str, i32) = ("Reason", r#".status.conditions[?(@.type=="Available")].reason"#, 0);

#[test]
fn printer_columns_of_instance_types() {
    assert_columns(
        "InstanceType",
        &[
            ("Type", ".spec.name", 0),
            ("CPU", ".spec.cpu", 0),
            ("Memory", ".spec.memory", 0),
            AGE,
        ],
    );
}

#[test]
fn printer_columns_of_workloads() {
    assert_columns(
        "Workload",
        &[
            AGE,
            AVAILABLE,
            REASON,
            ("Deployments", ".status.deployments", 0),
            ("Replicas", ".status.replicas", 0),
            ("Ready", ".status.readyReplicas", 0),
            ("Desired", ".status.desiredReplicas", 0),
            ("Up-to-date", ".status.updatedReplicas", 0),
        ],
    );
}

#[test]
fn printer_columns_of_workload_deployments() {
    assert_columns(
        "WorkloadDeployment",
        &[
            AGE,
            ("City", ".spec.cityCode", 0),
            AVAILABLE,
            REASON,
            ("Replicas", ".status.replicas", 0),
            ("Ready", ".status.readyReplicas", 0),
            ("Desired", ".status.desiredReplicas", 0),
            ("Up-to-date", ".status.updatedReplicas", 0),
            ("Location Namespace", ".status.location.namespace", 1),
            ("Location Name", ".status.location.name", 1),
        ],
    );
}

#[test]
fn printer_columns_of_instances() {
    assert_columns(
        "Instance",
        &[
            AGE,
            ("City", r".metadata.labels.compute\.datumapis\.com/city-code", 0),
            ("Cell", r".metadata.labels.compute\.datumapis\.com/source-cluster", 0),
            ("Ready", r#".status.conditions[?(@.type=="Ready")].status"#, 0),
            ("Reason", r#".status.conditions[?(@.type=="Ready")].reason"#, 0),
            ("Network IP", ".status.networkInterfaces[0].assignments.networkIP", 0),
            ("External IP", ".status.networkInterfaces[0].assignments.externalIP", 0),
            ("Message", r#".status.conditions[?(@.type=="Ready")].message"#, 1),
            ("Quota", r#".status.conditions[?(@.type=="QuotaGranted")].reason"#, 1),
        ],
    );
}
