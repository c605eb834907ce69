//! Steps that many tests take on planes.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use kube::api::DynamicObject;
use popcell_api::labels::CITY_CODE;
use popcell_test_support::kind::{CLUSTER, CRD, EVENT, Kind, Scope, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, eventually};
use serde_json::{Value, json};

use crate::environment::SOON;
use crate::read::{at, uid};

/// Waits until the object is in the plane and `check` accepts it. The namespace is ignored where the kind has none.
pub async fn awaited(
    plane: &Plane,
    kind: Kind,
    namespace: &str,
    name: &str,
    mut check: impl FnMut(&DynamicObject) -> Result<()>,
) -> Result<DynamicObject> {
    let what = format!("{} {namespace}/{name} in {}", kind.kind, plane.name());
    let scope = (kind.scope == Scope::Namespaced).then_some(namespace);
    eventually(&what, SOON, async || {
        let object = plane.expect(kind, scope, name).await?;
        check(&object)?;
        Ok(object)
    })
    .await
}

/// Waits until the object is gone from the plane.
pub async fn gone(plane: &Plane, kind: Kind, namespace: &str, name: &str) -> Result<()> {
    let what = format!("no {} {namespace}/{name} in {}", kind.kind, plane.name());
    let scope = (kind.scope == Scope::Namespaced).then_some(namespace);
    eventually(&what, SOON, async || {
        let found = plane.get(kind, scope, name).await?;
        ensure!(found.is_none(), "it is there");
        Ok(())
    })
    .await
}

/// Waits for a Warning of this reason about an Instance.
pub async fn warned(plane: &Plane, namespace: &str, instance: &str, reason: &str) -> Result<()> {
    let what = format!("an Event {reason} of {namespace}/{instance} in {}", plane.name());
    eventually(&what, SOON, async || {
        let events = plane.list(EVENT, Some(namespace), "").await?;
        let about = |event: &DynamicObject| {
            let is = |pointer: &str, text: &str| at(event, pointer) == text;
            is("/reason", reason) && is("/type", "Warning") && is("/involvedObject/name", instance)
        };
        ensure!(events.iter().any(about), "there are {} others", events.len());
        Ok(())
    })
    .await
}

/// Gives a Cluster the label of a city, or takes it off.
pub async fn with_city(hub: &Plane, cluster: &str, city: Option<&str>) -> Result<()> {
    let labelled = json!({ "metadata": { "labels": { CITY_CODE: city } } });
    hub.merge(CLUSTER, None, cluster, &labelled).await.map(|_| ())
}

/// Deletes the definition of a kind, and answers it as it can be applied again.
pub async fn taken_away(plane: &Plane, kind: Kind) -> Result<Value> {
    let name = format!("{}.{}", kind.plural, kind.group);
    let found = serde_json::to_value(plane.expect(CRD, None, &name).await?)?;
    plane.delete(CRD, None, &name).await?;
    gone(plane, CRD, "", &name).await?;
    Ok(json!({
        "apiVersion": CRD.api_version(), "kind": CRD.kind, "metadata": { "name": name }, "spec": found["spec"],
    }))
}

/// Changes the replicas of a WorkloadDeployment.
pub async fn scale(plane: &Plane, namespace: &str, name: &str, replicas: i32) -> Result<()> {
    let patch = json!({ "spec": { "scaleSettings": { "minReplicas": replicas } } });
    let scaled = plane.merge(WORKLOAD_DEPLOYMENT, Some(namespace), name, &patch);
    scaled.await.map(|_| ())
}

/// Fails unless a server has refused `what`, with all of these words.
pub fn refused<T>(outcome: Result<T>, words: &[&str], what: &str) -> Result<()> {
    let Err(error) = outcome else {
        bail!("{what} is carried out");
    };
    let text = format!("{error:#}");
    for word in words {
        ensure!(text.contains(word), "{what}: {word:?} is not in {text:?}");
    }
    Ok(())
}

/// What a program printed.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// Runs a program to its end, such as `popcell` with its arguments.
pub fn ran(command: &mut Command) -> Result<Ran> {
    let output = command.output();
    let output = output.with_context(|| format!("failed to start {}", command.get_program().display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ran {
        code: output.status.code(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    })
}

/// Sorted names of the objects of a kind in a namespace.
pub async fn names_in(plane: &Plane, kind: Kind, namespace: &str) -> Result<Vec<String>> {
    let found = plane.list(kind, Some(namespace), "").await?;
    let mut names: Vec<String> = found.into_iter().filter_map(|one| one.metadata.name).collect();
    names.sort();
    Ok(names)
}

/// Uids of the objects of a kind in a namespace, by their names.
pub async fn uids_in(plane: &Plane, kind: Kind, namespace: &str) -> Result<BTreeMap<String, String>> {
    let found = plane.list(kind, Some(namespace), "").await?;
    let each = |one: &DynamicObject| (one.metadata.name.clone().unwrap_or_default(), uid(one));
    Ok(found.iter().map(each).collect())
}
