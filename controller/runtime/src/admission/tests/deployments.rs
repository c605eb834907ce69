//! WorkloadDeployments: those that tenants make directly, and our own.

use popcell_api::admission::VALIDATE_DEPLOYMENT_PATH;

use super::*;

const WORKLOAD: &str = "GET /apis/compute.datumapis.com/v1alpha/namespaces/default/workloads/web";

fn direct(city: &str) -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
        "metadata": { "name": "mine", "namespace": "default" },
        "spec": {
            "workloadRef": { "name": "none", "uid": "none" }, "placementName": "us", "cityCode": city,
            "template": workload()["spec"]["template"], "scaleSettings": { "minReplicas": 1 },
        },
    })
}

/// As our workload reconciler makes it from [`workload`].
fn ours() -> Value {
    let mut made = direct("DFW");
    made["metadata"] = json!({ "name": "web-us-dfw", "namespace": "default",
        "labels": { "compute.datumapis.com/workload-uid": "u" },
        "ownerReferences": [{ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload", "name": "web",
            "uid": "u", "controller": true, "blockOwnerDeletion": true }] });
    made["spec"]["workloadRef"] = json!({ "name": "web", "uid": "u" });
    made
}

fn of_deployment(operation: &str, old: Value, new: Value) -> Value {
    let mut request = request(operation, old, new);
    request["kind"]["kind"] = json!("WorkloadDeployment");
    request
}

/// A project whose server knows the Workload, has a binding in DFW only, and lets nobody use a network.
fn closed() -> Served {
    Served::new(
        Mode::Milo,
        Servers::new(|asked| match asked {
            LIST => bindings(&[binding("DFW")]),
            WORKLOAD => Reply::Json(workload()),
            _ => access(false),
        }),
    )
}

async fn refused(served: &Served, request: &Value) -> (u64, String) {
    let status = served.at(VALIDATE_DEPLOYMENT_PATH, request).await["status"].take();
    let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    (status["code"].as_u64().unwrap_or_default(), text("message"))
}

#[tokio::test]
async fn one_made_directly_is_asked_about_like_a_workload() {
    let served = Served::good();
    let request = of_deployment("CREATE", Value::Null, direct("DFW"));
    let response = served.at(VALIDATE_DEPLOYMENT_PATH, &request).await;
    assert_eq!(response, json!({ "uid": "uid-CREATE", "allowed": true }));
    assert_eq!(served.servers.paths(), [LIST, ACCESS]);
    let served = closed();
    let mut bad = direct("LHR");
    bad["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!("huge");
    bad["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    let (code, message) = refused(&served, &of_deployment("CREATE", Value::Null, bad)).await;
    assert_eq!(code, 422);
    assert_eq!(
        message,
        "WorkloadDeployment.compute.datumapis.com \"mine\" is invalid: [\
         spec.cityCode: Unsupported value: \"LHR\": supported values: \"DFW\", \
         spec.template.spec.runtime.resources.instanceType: Unsupported value: \"huge\": supported values: \
         \"datumcloud/d1-standard-2\", \
         spec.template.spec.hostNetwork: Forbidden: unknown field, \
         spec.template.spec.networkInterfaces[0].network: Forbidden: permission to use the network was denied]"
    );
}

#[tokio::test]
async fn our_own_writes_pass_and_ask_for_the_workload_only() {
    let served = closed();
    let mut rolled = ours();
    rolled["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["image"] = json!("old");
    for request in [
        of_deployment("CREATE", Value::Null, ours()),
        of_deployment("UPDATE", rolled, ours()),
    ] {
        let response = served.at(VALIDATE_DEPLOYMENT_PATH, &request).await;
        assert_eq!(response["allowed"], json!(true), "{response}");
        assert_eq!(served.servers.paths(), [WORKLOAD]);
    }
    let mut finalized = ours();
    finalized["metadata"]["finalizers"] = json!(["compute.datumapis.com/federator"]);
    let mut unread = of_deployment("UPDATE", ours(), finalized);
    unread["userInfo"] = json!({ "username": "system:serviceaccount:compute-system:compute" });
    let response = served.at(VALIDATE_DEPLOYMENT_PATH, &unread).await;
    assert_eq!(response["allowed"], json!(true));
    assert_eq!(served.servers.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn who_only_says_that_it_is_of_a_workload_has_the_rules() {
    let served = closed();
    for (pointer, value) in [
        ("/metadata/ownerReferences/0/uid", json!("other")),
        ("/spec/workloadRef/uid", json!("other")),
        ("/metadata/name", json!("mine")),
        ("/spec/placementName", json!("eu")),
        // Not what that Workload names.
        ("/spec/template/spec/networkInterfaces/0/network/name", json!("theirs")),
    ] {
        let mut forged = ours();
        *forged.pointer_mut(pointer).unwrap() = value;
        let (code, message) = refused(&served, &of_deployment("CREATE", Value::Null, forged)).await;
        assert_eq!(code, 422, "{pointer}");
        assert!(
            message.contains("permission to use the network was denied"),
            "{pointer}: {message}"
        );
    }
    // A name that would lead to another path is looked for nowhere.
    let mut misplaced = ours();
    for pointer in ["/metadata/ownerReferences/0/name", "/spec/workloadRef/name"] {
        *misplaced.pointer_mut(pointer).unwrap() = json!("../../secrets/web");
    }
    served.servers.asked();
    refused(&served, &of_deployment("CREATE", Value::Null, misplaced)).await;
    assert_eq!(served.servers.paths(), [LIST, ACCESS]);
}

#[tokio::test]
async fn a_workload_that_is_not_there_grants_nothing_and_a_server_that_is_unreachable_is_no_answer() {
    let gone = Served::new(
        Mode::Milo,
        Servers::new(|asked| match asked {
            WORKLOAD => Reply::Text(StatusCode::NOT_FOUND, "not found"),
            LIST => bindings(&[]),
            _ => access(false),
        }),
    );
    let create = of_deployment("CREATE", Value::Null, ours());
    let (code, message) = refused(&gone, &create).await;
    assert_eq!(code, 422);
    assert!(
        message.contains("spec.cityCode: Unsupported value: \"DFW\": no value is supported"),
        "{message}"
    );
    let away = Served::new(Mode::Milo, Servers::new(|_| Reply::Away));
    let (code, message) = refused(&away, &create).await;
    assert_eq!(code, 500);
    assert!(
        message.contains("spec.workloadRef: Internal error: failed to read Workload \"web\""),
        "{message}"
    );
}

/// `kubectl scale` on a WorkloadDeployment, as an API server sends it (k8s.io/apiextensions-apiserver,
/// pkg/registry/customresource).
fn scale(from: i64, to: i64) -> Value {
    let of = |replicas: i64| {
        json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "web", "namespace": "default" },
            "spec": { "replicas": replicas }, "status": { "replicas": 2 } })
    };
    let mut request = of_deployment("UPDATE", of(from), of(to));
    request["kind"] = json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" });
    request["subResource"] = json!("scale");
    request
}

#[tokio::test]
async fn a_number_that_has_no_effect_in_a_project_is_refused_with_the_command_that_has_one() {
    let served = Served::good();
    let (code, message) = refused(&served, &scale(0, 5)).await;
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "workloaddeployments.compute.datumapis.com \"web\" is forbidden: replicas that are set here have no effect: run `popcell \
         scale <workload> --replicas=<number>`, or set scaleSettings.minReplicas of the placement in the Workload (of the WorkloadDeployment, where it has none)"
    );
    let allowed = json!({ "uid": "uid-UPDATE", "allowed": true });
    assert_eq!(served.at(VALIDATE_DEPLOYMENT_PATH, &scale(5, 5)).await, allowed);
    // Where the cell is the project, an autoscaler writes so.
    let single = Served::new(Mode::Single, Servers::new(good));
    assert_eq!(single.at(VALIDATE_DEPLOYMENT_PATH, &scale(0, 5)).await, allowed);
    for served in [served, single] {
        assert_eq!(served.servers.paths(), Vec::<String>::new());
    }
}
