//! The rights that are shipped, as a real API server understands them.

use anyhow::{Result, ensure};
use http::Request;
use popcell_suites::world::{SOON, SPARE, World};
use popcell_test_support::{eventually, manifests};
use serde_json::{Value, json};

use crate::manifests::{accepted, only};

/// What the user may do in a project.
pub(crate) async fn project(world: &World, _: &str) -> Result<()> {
    let plane = world.lab.plane(SPARE).await?;
    let shipped = manifests::build("project-rbac".as_ref())?;
    accepted(&plane, &shipped).await?;
    let user = only(&shipped, "ClusterRoleBinding")?["subjects"][0]["name"].clone();
    let compute = "compute.datumapis.com";
    for (allowed, verb, group, resource) in [
        (true, "patch", compute, "workloads"),
        (true, "patch", compute, "workloads/status"),
        (false, "create", compute, "workloads"),
        (false, "delete", compute, "workloads"),
        (true, "create", compute, "workloaddeployments"),
        (true, "delete", compute, "instances"),
        (true, "watch", "networking.datumapis.com", "locationbindings"),
        (false, "patch", "networking.datumapis.com", "networks"),
        // Nothing in the project plane chooses a Location (domain.md 8-25).
        (false, "list", "networking.datumapis.com", "locations"),
        (true, "list", "quota.miloapis.com", "resourceclaims"),
        (false, "create", "quota.miloapis.com", "resourceclaims"),
        (true, "get", "", "namespaces"),
        (false, "get", "", "secrets"),
        (true, "create", "authorization.k8s.io", "subjectaccessreviews"),
        (true, "create", "events.k8s.io", "events"),
    ] {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": { "user": user, "resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": "any",
            } },
        });
        // Authorizers learn of a binding by a watch.
        eventually(&format!("{verb} {resource}/{subresource}"), SOON, async || {
            let request = Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews")
                .header("content-type", "application/json")
                .body(review.to_string().into_bytes())?;
            let answer: Value = plane.client().request(request).await?;
            ensure!(answer["status"]["allowed"] == allowed, "{answer}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}
