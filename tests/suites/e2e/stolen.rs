//! What a client can do that holds the identity of one cell: nothing to what is others'.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use popcell_api::{annotations, kind, labels};
use popcell_suites::environment::{DFW, Environment, ORD, SOON, SPARE};
use popcell_test_support::kind::{
    ADMISSION_POLICY, CLUSTER, CONFIG_MAP, EVENT, INSTANCE, Kind, NAMESPACE, PROPAGATION_POLICY, RESOURCE_BINDING,
    SECRET, WORK, WORKLOAD_DEPLOYMENT,
};
use popcell_test_support::{Plane, eventually, kubeconfig, manifests, objects, stand_ins, users};
use serde_json::{Value, json};

const HUB: &str = "hub";
const OWN: &str = "own-0";
const OTHERS: &str = "others-0";
const NOBODYS: &str = "nobodys-0";
/// A cell whose Cluster is not there.
const GONE: &str = "gone";

/// How a request ends that must not be carried out.
#[derive(Clone, Copy)]
enum By {
    /// The user has no right to it.
    Rights,
    /// One of these policies of the manifests holds it to what is its own.
    Policy(&'static [&'static str]),
    /// A rule of a policy, by its words.
    Rule(&'static str),
}

/// What is another's has another source too: the server names one of the policies that refuse it.
const COPIES: By = By::Policy(&["popcell-cells", "popcell-cells-source"]);
const CLAIMS: By = By::Policy(&["popcell-cell-claims"]);
const LEASES: By = By::Policy(&["popcell-cells-lease"]);
const NO_FINALIZERS: By = By::Rule("a cell adds no finalizers");
const NOT_OURS: By = By::Rule("only in namespaces of projects");
const OTHER_SOURCE: By = By::Rule("compute.datumapis.com/source-uid");
const TOO_LARGE: By = By::Rule("larger than 64 KiB");

fn refused<T>(outcome: Result<T>, by: By, what: &str) -> Result<()> {
    let Err(error) = outcome else {
        bail!("{what} was carried out");
    };
    let text = format!("{error:#}");
    let is_refused = match by {
        By::Rights => text.contains("forbidden: User \"") && text.contains(" cannot "),
        By::Policy(names) => names
            .iter()
            .any(|name| text.contains(&format!("ValidatingAdmissionPolicy '{name}'"))),
        By::Rule(words) => text.contains("ValidatingAdmissionPolicy '") && text.contains(words),
    };
    ensure!(is_refused, "{what}: {text}");
    Ok(())
}

/// A kubeconfig for each plane, as client certificates of the cell's user make them.
async fn stolen(environment: &Environment, plane: &str, files: &BTreeMap<String, PathBuf>) -> Result<Plane> {
    let file = files.get(plane).with_context(|| format!("no kubeconfig of {plane}"))?;
    ensure!(
        file != environment.lab.kubeconfig(plane)?,
        "that is the administrator's"
    );
    Plane::connect(plane, file).await
}

fn copy(namespace: &str, name: &str, source: Option<&str>) -> Value {
    let deployment = name.trim_end_matches("-0");
    let mut object = objects::instance_copy(namespace, deployment, 0, source.unwrap_or_default());
    if source.is_none() {
        object["metadata"]["labels"] = json!({});
    }
    object
}

/// A copy with the source of the cell of a Cluster.
fn stamped(namespace: &str, name: &str, source: Option<&str>, uid: &str) -> Value {
    let mut object = copy(namespace, name, source);
    objects::annotate(&mut object, annotations::SOURCE_UID, uid);
    object
}

/// A name and its uid, as an edit.
fn taken(cluster: &str, uid: &str) -> Value {
    let mut edit = source(&json!(cluster));
    edit["metadata"]["annotations"] = json!({ annotations::SOURCE_UID: uid });
    edit
}

/// What the Cluster of a name says is its cell.
async fn uid_of(hub: &Plane, cluster: &str) -> Result<String> {
    let found = hub.expect(CLUSTER, None, cluster).await?;
    let uid = found.data["spec"]["id"]
        .as_str()
        .context("the Cluster has no spec.id")?;
    Ok(uid.to_owned())
}

fn source(value: &Value) -> Value {
    json!({ "metadata": { "labels": { labels::SOURCE_CLUSTER: value } } })
}

pub(crate) async fn on_the_hub(environment: &Environment, namespace: &str) -> Result<()> {
    let hub = environment.lab.hub().await?;
    users::cells_on_hub(&hub, &[DFW, ORD, GONE]).await?;
    let uid = uid_of(&hub, DFW).await?;
    let mut ours = objects::namespace(namespace);
    ours["metadata"]["labels"] = json!({ labels::UPSTREAM_CLUSTER_NAME: "cluster-p" });
    hub.apply(&ours).await?;
    for object in [
        copy(namespace, OTHERS, Some(ORD)),
        copy(namespace, NOBODYS, None),
        objects::workload_deployment(namespace, "web", "nowhere", 1),
    ] {
        hub.create(&object, false).await?;
    }
    let files = environment.lab.user(&users::cell(DFW), &[]).await?;
    let thief = stolen(environment, HUB, &files).await?;
    works_for_its_own(&thief, namespace, &uid).await?;
    copies_of_others(&thief, namespace, &uid).await?;
    false_copies(&hub, &thief, namespace, &uid).await?;
    everything_else(&thief, namespace).await?;
    unharmed(&hub, namespace).await?;
    as_account(environment, &hub, namespace).await?;
    taking_over(&hub, &thief, namespace, &uid).await?;
    without_a_cluster(environment, &hub, namespace).await?;
    // The API servers of cells know that user, and that it has no business there.
    for member in [DFW, ORD, SPARE] {
        let member = stolen(environment, member, &files).await?;
        let what = format!("to list Instances on {}", member.name());
        refused(member.list(INSTANCE, None, "").await, By::Rights, &what)?;
    }
    Ok(())
}

/// What a cell that was not stolen needs, so that no test passes because nothing is admitted.
async fn works_for_its_own(cell: &Plane, namespace: &str, uid: &str) -> Result<()> {
    // Authorizers and admission learn of their rules by watches.
    eventually("the cell may write", SOON, async || {
        cell.create(&stamped(namespace, OWN, Some(DFW), uid), true).await
    })
    .await?;
    eventually("the policy is in force", SOON, async || {
        let outcome = cell.create(&stamped(namespace, "false-0", Some(ORD), uid), true).await;
        refused(outcome, COPIES, "a copy of another")
    })
    .await?;
    let here = Some(namespace);
    cell.create(&stamped(namespace, OWN, Some(DFW), uid), false).await?;
    let edit = json!({ "metadata": { "annotations": { "seen": "yes" } } });
    cell.merge(INSTANCE, here, OWN, &edit).await?;
    let status = json!({ "conditions": [objects::condition("Ready", "True", "Available", "", 1)] });
    cell.set_status(INSTANCE, here, OWN, &status).await?;
    cell.list(INSTANCE, None, &format!("{}={DFW}", labels::SOURCE_CLUSTER))
        .await?;
    cell.expect(WORKLOAD_DEPLOYMENT, here, "web").await?;
    cell.expect(NAMESPACE, None, namespace).await?;
    cell.expect(CLUSTER, None, DFW).await?;
    cell.delete(INSTANCE, here, OWN).await?;
    cell.create(&stamped(namespace, OWN, Some(DFW), uid), false)
        .await
        .map(|_| ())
}

async fn copies_of_others(thief: &Plane, namespace: &str, uid: &str) -> Result<()> {
    let here = Some(namespace);
    let edit = json!({ "metadata": { "annotations": { "thief": "was-here" } } });
    let status = json!({ "conditions": [objects::condition("Ready", "False", "Stolen", "", 1)] });
    for claimed in [None, Some(ORD), Some("")] {
        let made = thief.create(&stamped(namespace, "false-0", claimed, uid), false).await;
        refused(made, COPIES, "to make a copy of another")?;
    }
    for (given, what) in [
        (json!(ORD), "to give its own away"),
        (Value::Null, "to make its own nobody's"),
    ] {
        refused(thief.merge(INSTANCE, here, OWN, &source(&given)).await, COPIES, what)?;
    }
    for name in [OTHERS, NOBODYS] {
        let what = |verb: &str| format!("to {verb} {name}");
        let took = thief.merge(INSTANCE, here, name, &taken(DFW, uid)).await;
        refused(took, COPIES, &what("take"))?;
        refused(thief.merge(INSTANCE, here, name, &edit).await, COPIES, &what("edit"))?;
        let set = thief.set_status(INSTANCE, here, name, &status).await;
        refused(set, COPIES, &what("write the status of"))?;
        refused(thief.delete(INSTANCE, here, name).await, COPIES, &what("delete"))?;
    }
    Ok(())
}

/// Copies of its own source that are not what a cell writes.
async fn false_copies(hub: &Plane, thief: &Plane, namespace: &str, uid: &str) -> Result<()> {
    let here = Some(namespace);
    let own = || stamped(namespace, "false-0", Some(DFW), uid);
    // Policies of one file come into force one by one.
    eventually("the policy of sources is in force", SOON, async || {
        let unnamed = copy(namespace, "false-0", Some(DFW));
        refused(thief.create(&unnamed, true).await, OTHER_SOURCE, "to leave out its uid")
    })
    .await?;
    let other = uid_of(hub, ORD).await?;
    for (uid, what) in [
        (other.as_str(), "to be another cell"),
        ("none", "to be no cell"),
        ("", "an empty uid"),
    ] {
        let made = thief
            .create(&stamped(namespace, "false-0", Some(DFW), uid), false)
            .await;
        refused(made, OTHER_SOURCE, what)?;
        let edit = json!({ "metadata": { "annotations": { annotations::SOURCE_UID: uid } } });
        refused(thief.merge(INSTANCE, here, OWN, &edit).await, OTHER_SOURCE, what)?;
    }

    let held = json!(["example.com/held"]);
    let mut holding = own();
    holding["metadata"]["finalizers"] = held.clone();
    refused(thief.create(&holding, false).await, NO_FINALIZERS, "to hold a new copy")?;
    let edit = json!({ "metadata": { "finalizers": held } });
    let outcome = thief.merge(INSTANCE, here, OWN, &edit).await;
    refused(outcome, NO_FINALIZERS, "to hold a copy")?;

    for elsewhere in ["default", users::NAMESPACE, users::CELLS_NAMESPACE] {
        let made = thief
            .create(&stamped(elsewhere, "false-0", Some(DFW), uid), false)
            .await;
        refused(made, NOT_OURS, &format!("to write in {elsewhere}"))?;
    }

    // 64 KiB in all, whatever they are made of.
    let filled = |text: String| {
        let mut large = own();
        large["spec"]["later"] = json!({ "field": [text] });
        large
    };
    thief.create(&filled("x".repeat(60_000)), true).await?;
    for (text, what) in [
        ("x".repeat(66_000), "letters"),
        ("\u{20ac}".repeat(22_000), "letters of three bytes"),
    ] {
        refused(thief.create(&filled(text.clone()), false).await, TOO_LARGE, what)?;
        let edit = json!({ "spec": { "later": { "field": [text] } } });
        refused(thief.merge(INSTANCE, here, OWN, &edit).await, TOO_LARGE, what)?;
    }
    let status = json!({ "conditions": [objects::condition("Ready", "False", "Stolen", &"x".repeat(30_000), 1),
        objects::condition("Available", "False", "Stolen", &"x".repeat(30_000), 1),
        objects::condition("Programmed", "False", "Stolen", &"x".repeat(30_000), 1)] });
    let outcome = thief.set_status(INSTANCE, here, OWN, &status).await;
    refused(outcome, TOO_LARGE, "a status")
}

async fn everything_else(thief: &Plane, namespace: &str) -> Result<()> {
    let here = Some(namespace);
    let edit = json!({ "metadata": { "labels": { "thief": "was-here" } } });
    let cases: [(Kind, Option<&str>, &str); 7] = [
        (WORKLOAD_DEPLOYMENT, here, "web"),
        (PROPAGATION_POLICY, here, "city-dfw"),
        (NAMESPACE, None, namespace),
        (CLUSTER, None, DFW),
        (CLUSTER, None, ORD),
        (CONFIG_MAP, Some(users::NAMESPACE), "popcell-removed-cells"),
        (ADMISSION_POLICY, None, "popcell-cells"),
    ];
    for (kind, within, name) in cases {
        let what = |verb: &str| format!("to {verb} {} {name}", kind.kind);
        refused(thief.merge(kind, within, name, &edit).await, By::Rights, &what("edit"))?;
        refused(thief.delete(kind, within, name).await, By::Rights, &what("delete"))?;
    }
    let status = json!({ "replicas": 7 });
    let set = thief.set_status(WORKLOAD_DEPLOYMENT, here, "web", &status).await;
    refused(set, By::Rights, "to report a WorkloadDeployment")?;
    for kind in [
        WORKLOAD_DEPLOYMENT,
        NAMESPACE,
        CLUSTER,
        SECRET,
        CONFIG_MAP,
        EVENT,
        WORK,
        RESOURCE_BINDING,
        PROPAGATION_POLICY,
    ] {
        let what = format!("to list {}", kind.plural);
        refused(thief.list(kind, None, "").await, By::Rights, &what)?;
    }
    let lease = |cell: &str| {
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
        "name": format!("popcell-cell-{cell}"), "namespace": users::NAMESPACE }, "spec": { "holderIdentity": "thief" } })
    };
    eventually("the policy of Leases is in force", SOON, async || {
        let made = thief.create(&lease(ORD), true).await;
        refused(made, LEASES, "to take the Lease of another cell")
    })
    .await?;
    thief.create(&lease(DFW), true).await.context("its own Lease")?;
    for (namespace, account) in [(users::NAMESPACE, users::HUB_ACCOUNT), (users::CELLS_NAMESPACE, ORD)] {
        let what = format!("to become {account}");
        refused(thief.token(namespace, account).await, By::Rights, &what)?;
    }
    Ok(())
}

async fn unharmed(hub: &Plane, namespace: &str) -> Result<()> {
    for (name, source) in [(OTHERS, Some(ORD)), (NOBODYS, None)] {
        let found = hub.expect(INSTANCE, Some(namespace), name).await?;
        let labels = found.metadata.labels.unwrap_or_default();
        let is_source = labels.get(labels::SOURCE_CLUSTER).map(String::as_str) == source;
        ensure!(is_source && found.metadata.annotations.is_none(), "{labels:?}");
    }
    Ok(())
}

/// The same for a cell that comes with a token.
async fn as_account(environment: &Environment, hub: &Plane, namespace: &str) -> Result<()> {
    let (home, here) = (users::CELLS_NAMESPACE, Some(namespace));
    hub.apply(&json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": home, "name": ORD },
    }))
    .await?;
    let user = json!({ "token": hub.token(home, ORD).await? });
    let files = tempfile::tempdir().context("failed to make a directory")?;
    let document = kubeconfig::document(environment.lab.url(HUB)?, Some(environment.lab.ca_file()), &user);
    let other = Plane::connect(HUB, &kubeconfig::write(files.path(), "account", &document)?).await?;
    let uid = uid_of(hub, ORD).await?;
    let edit = json!({ "metadata": { "annotations": { "seen": "yes", annotations::SOURCE_UID: uid } } });
    eventually("the other cell may write its own", SOON, async || {
        other.merge(INSTANCE, here, OTHERS, &edit).await
    })
    .await?;
    refused(other.merge(INSTANCE, here, OWN, &edit).await, COPIES, "to edit")?;
    refused(other.delete(INSTANCE, here, OWN).await, COPIES, "to delete")?;
    let made = other
        .create(&stamped(namespace, "false-0", Some(DFW), &uid), false)
        .await;
    refused(made, COPIES, "to make a copy of another")
}

/// While no Cluster has the name of a cell its uid is not known to the hub; only one that the policy names holds it.
async fn without_a_cluster(environment: &Environment, hub: &Plane, namespace: &str) -> Result<()> {
    let files = environment.lab.user(&users::cell(GONE), &[]).await?;
    let thief = stolen(environment, HUB, &files).await?;
    let with = |uid: &str| stamped(namespace, "false-0", Some(GONE), uid);
    eventually("what the documents say is left", SOON, async || {
        thief.create(&with("any"), true).await
    })
    .await?;
    let policy = shipped_policy()?;
    let mut named = policy.clone();
    ensure!(named["spec"]["variables"][1]["name"] == "sources", "{named}");
    named["spec"]["variables"][1]["expression"] = json!(format!("{{'{GONE}': 'the-uid'}}"));
    hub.apply(&named).await?;
    let outcome = eventually("the cell is held to its uid", SOON, async || {
        for one in [with("any"), with(""), copy(namespace, "false-0", Some(GONE))] {
            refused(thief.create(&one, true).await, OTHER_SOURCE, "to be another cell")?;
        }
        thief.create(&with("the-uid"), true).await.map(|_| ())
    })
    .await;
    hub.apply(&policy).await?;
    outcome
}

fn shipped_policy() -> Result<Value> {
    let shipped = manifests::build(manifests::HUB_RBAC.as_ref())?;
    let policy = shipped
        .into_iter()
        .find(|object| object["kind"] == "ValidatingAdmissionPolicy" && object["metadata"]["name"] == "popcell-cells");
    policy.context("no policy")
}

/// What the documents say of a take-over from upstream: copies that are nobody's may be taken, not deleted.
async fn taking_over(hub: &Plane, cell: &Plane, namespace: &str, uid: &str) -> Result<()> {
    let here = Some(namespace);
    let policy = shipped_policy()?;
    let mut open = policy.clone();
    ensure!(open["spec"]["variables"][0]["name"] == "takesOver", "{open}");
    open["spec"]["variables"][0]["expression"] = json!("true");
    hub.apply(&open).await?;
    let takes = eventually("what is nobody's may be taken", SOON, async || {
        let outcome = cell.delete(INSTANCE, here, NOBODYS).await;
        refused(outcome, COPIES, "to delete what is nobody's")?;
        cell.merge(INSTANCE, here, NOBODYS, &taken(DFW, uid)).await
    });
    let outcome = takes.await.map(|_| ());
    let others = cell.merge(INSTANCE, here, OTHERS, &taken(DFW, uid)).await;
    hub.apply(&policy).await?;
    outcome?;
    refused(others, COPIES, "to take a copy of another")
}

fn claim(namespace: &str, name: &str, source: &str) -> Value {
    let mut claim = objects::resource_claim(namespace, name, "p");
    claim["metadata"]["labels"] = json!({ labels::SOURCE_CLUSTER: source });
    claim
}

pub(crate) async fn in_a_project(environment: &Environment, namespace: &str) -> Result<()> {
    let (claims, here) = (kind::RESOURCE_CLAIM, Some(namespace));
    let project = environment.lab.plane(SPARE).await?;
    project.apply(&stand_ins::crd(&claims)?).await?;
    users::cells_in_project(&project, &[DFW, ORD]).await?;
    project.apply(&objects::namespace(namespace)).await?;
    eventually("claims can be made", SOON, async || {
        project.create(&claim(namespace, OTHERS, ORD), true).await
    })
    .await?;
    project.create(&claim(namespace, OTHERS, ORD), false).await?;
    let files = environment.lab.user(&users::cell(DFW), &[]).await?;
    let thief = stolen(environment, SPARE, &files).await?;
    eventually("the cell may claim", SOON, async || {
        thief.create(&claim(namespace, OWN, DFW), true).await
    })
    .await?;
    eventually("the policy is in force", SOON, async || {
        let made = thief.create(&claim(namespace, "false-0", ORD), true).await;
        refused(made, CLAIMS, "a claim of another")
    })
    .await?;
    // What a cell needs.
    thief.create(&claim(namespace, OWN, DFW), false).await?;
    thief.list(claims, None, "").await?;
    let edit = json!({ "metadata": { "annotations": { "seen": "yes" } } });
    thief.merge(claims, here, OWN, &edit).await?;

    let away = thief.merge(claims, here, OWN, &source(&json!(ORD))).await;
    refused(away, CLAIMS, "to give its own away")?;
    refused(thief.merge(claims, here, OTHERS, &edit).await, CLAIMS, "to edit")?;
    let taken = thief.merge(claims, here, OTHERS, &source(&json!(DFW))).await;
    refused(taken, CLAIMS, "to take")?;
    refused(thief.delete(claims, here, OTHERS).await, CLAIMS, "to delete")?;
    let granted = json!({ "conditions": [objects::condition("Granted", "True", "QuotaAvailable", "", 1)] });
    let set = thief.set_status(claims, here, OWN, &granted).await;
    refused(set, By::Rights, "to grant itself")?;
    for (kind, within) in [
        (INSTANCE, here),
        (WORKLOAD_DEPLOYMENT, here),
        (SECRET, here),
        (NAMESPACE, None),
    ] {
        let what = |verb: &str| format!("to {verb} {}", kind.plural);
        refused(thief.list(kind, within, "").await, By::Rights, &what("list"))?;
        refused(thief.delete(kind, within, namespace).await, By::Rights, &what("delete"))?;
    }
    let there = project.expect(claims, here, OTHERS).await?;
    ensure!(there.metadata.annotations.is_none(), "{there:?}");
    claims_of_nobody(&project, &thief, namespace).await?;
    false_claims(&project, &thief, namespace).await?;
    thief.delete(claims, here, OWN).await
}

/// A cell stamps a claim again that lost its stamps, and changes nothing else of it.
async fn claims_of_nobody(project: &Plane, thief: &Plane, namespace: &str) -> Result<()> {
    let (claims, here) = (kind::RESOURCE_CLAIM, Some(namespace));
    let bare = |name: &str, uid: Option<&str>| {
        let mut one = claim(namespace, name, DFW);
        one["metadata"]["labels"] = json!({});
        if let Some(uid) = uid {
            objects::annotate(&mut one, annotations::SOURCE_UID, uid);
        }
        one
    };
    let (lost, another, unlike) = ("instance-nobodys-0", "instance-others-0", NOBODYS);
    project.create(&bare(lost, None), false).await?;
    project.create(&bare(another, Some("another")), false).await?;
    project.create(&bare(unlike, None), false).await?;
    let stamps = taken(DFW, "the-uid");
    let mut enlarged = stamps.clone();
    enlarged["spec"] = json!({ "requests": [{ "resourceType": "compute.datumapis.com/instances", "amount": 9 }] });
    for (name, edit, what) in [
        (
            lost,
            json!({ "metadata": { "annotations": { "seen": "yes" } } }),
            "to edit what is nobody's",
        ),
        (lost, taken(ORD, "the-uid"), "to give another what is nobody's"),
        (another, stamps.clone(), "to take what says whose it is"),
        (unlike, stamps.clone(), "to take what no cell has made"),
    ] {
        refused(thief.merge(claims, here, name, &edit).await, CLAIMS, what)?;
    }
    let outcome = thief.merge(claims, here, lost, &enlarged).await;
    popcell_suites::steps::refused(outcome, &["spec is immutable"], "to change what it stamps")?;
    let outcome = thief.delete(claims, here, lost).await;
    refused(outcome, CLAIMS, "to delete what is nobody's")?;
    thief.merge(claims, here, lost, &stamps).await?;
    for name in [lost, another, unlike] {
        project.delete(claims, here, name).await?;
    }
    Ok(())
}

/// Claims of its own source that are not what a cell writes.
async fn false_claims(project: &Plane, thief: &Plane, namespace: &str) -> Result<()> {
    let (claims, here) = (kind::RESOURCE_CLAIM, Some(namespace));
    let own = || claim(namespace, "false-0", DFW);
    let held = json!(["example.com/held"]);
    let mut holding = own();
    holding["metadata"]["finalizers"] = held.clone();
    let outcome = thief.create(&holding, false).await;
    refused(outcome, NO_FINALIZERS, "to hold a new claim")?;
    let edit = json!({ "metadata": { "finalizers": held } });
    let outcome = thief.merge(claims, here, OWN, &edit).await;
    refused(outcome, NO_FINALIZERS, "to hold a claim")?;
    let mut large = own();
    large["metadata"]["annotations"] = json!({ "filler": "x".repeat(66_000) });
    refused(thief.create(&large, false).await, TOO_LARGE, "a large claim")?;

    // As an operator names the uid of the cell.
    let shipped = manifests::build_own(&json!({
        "resources": [format!("../{}", manifests::PROJECT_RBAC)], "components": [format!("../{}", manifests::CLAIMS)],
    }))?;
    let policy = shipped
        .iter()
        .find(|object| {
            object["kind"] == "ValidatingAdmissionPolicy" && object["metadata"]["name"] == "popcell-cell-claims"
        })
        .context("no policy")?;
    let mut named = policy.clone();
    ensure!(named["spec"]["variables"][0]["name"] == "sources", "{named}");
    named["spec"]["variables"][0]["expression"] = json!(format!("{{'{DFW}': 'the-uid'}}"));
    project.apply(&named).await?;
    let with = |uid: &str| {
        let mut one = own();
        objects::annotate(&mut one, annotations::SOURCE_UID, uid);
        one
    };
    let outcome = eventually("the cell is held to its uid", SOON, async || {
        refused(thief.create(&own(), true).await, OTHER_SOURCE, "to leave out its uid")?;
        let outcome = thief.create(&with("another"), true).await;
        refused(outcome, OTHER_SOURCE, "to be another cell")?;
        thief.create(&with("the-uid"), true).await.map(|_| ())
    })
    .await;
    project.apply(policy).await?;
    outcome
}
