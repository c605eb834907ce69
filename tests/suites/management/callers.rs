//! The stand-in for milo's gateway: who a request is from, as the API server of the project and its webhooks see it.

use anyhow::{Context, Result, ensure};
use kube::Client;
use popcell_test_support::kubeconfig;
use serde_json::{Value, json};

use crate::world::{P1, World};

async fn seen_as(world: &World, user: &Value) -> Result<Value> {
    let document = kubeconfig::document(&world.gateway.project_url(P1), None, user);
    let client: Client = kubeconfig::client(document).await?;
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(review.to_string().into_bytes())?;
    let answer: Value = client.request(request).await.context("the review failed")?;
    Ok(answer["status"]["userInfo"].clone())
}

pub(crate) async fn claims(world: &World, _: &str) -> Result<()> {
    let jo = seen_as(world, &json!({ "token": "jo@example.com" })).await?;
    ensure!(
        jo["username"] == "jo@example.com" && jo["groups"] == json!(["system:authenticated"]),
        "{jo}"
    );
    let admin = seen_as(world, &json!({})).await?;
    ensure!(admin["username"] == "system:admin", "{admin}");
    for user in [jo, admin] {
        let expected = json!({
            "iam.miloapis.com/parent-name": [P1],
            "iam.miloapis.com/parent-type": ["Project"],
            "iam.miloapis.com/parent-api-group": ["resourcemanager.miloapis.com"],
        });
        ensure!(user["extra"] == expected, "{user}");
    }
    Ok(())
}
