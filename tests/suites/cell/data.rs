//! ConfigMaps and Secrets of a project in the cells that need them.

use anyhow::{Context, Result, ensure};
use popcell_api::annotations;
use popcell_suites::environment::{DFW, ORD};
use popcell_suites::read::{self, says};
use popcell_suites::steps::{awaited, gone, names_in, ran};
use popcell_suites::tenant::Tenant;
use popcell_test_support::kind::{CONFIG_MAP, EVENT, INSTANCE, NAMESPACE, SECRET, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::stand_ins::START_SECONDS;
use popcell_test_support::{Plane, users};
use serde_json::{Value, json};

use crate::environment::{Environment, P1};
use crate::tree;

const ROLE: &str = "popcell-referenced-data";
const REASON: &str = "ReferencedDataNotReady";
/// A Workload with the template of `web`, which `popcell tree` is asked about.
const FOLLOWED: &str = "followed";

/// Values as Secrets have them, and what they say.
pub(crate) const FIRST: &str = "b3Blbi1zZXNhbWUtMQ==";
const SECOND: &str = "b3Blbi1zZXNhbWUtMg==";
const SAID: &str = "open-sesame";
/// Value of the ConfigMap.
const TITLE: &str = "title-for-containers-only";

/// Secret `db`.
pub(crate) fn secret(namespace: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "db", "namespace": namespace },
        "type": "Opaque", "data": { "password": value } })
}

/// Who waits for a Secret says so; it is in exactly the cell that needs it, with what it holds; a change rolls nothing, and a restart
/// starts with the new; and it goes with the last that names it.
pub(crate) async fn carried(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let (dfw, ord) = (environment.lab.plane(DFW).await?, environment.lab.plane(ORD).await?);
    tenant.project.create(&settings(namespace), false).await?;
    let named = |name: &str, city, sources: Value| {
        let mut one = tenant.direct(name, city, 1);
        one["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"] = sources;
        one
    };
    let both = json!([{ "secretRef": { "name": "db" } }, { "configMapRef": { "name": "settings" } }]);
    let mut web = named("web", "DFW", both);
    with_files_and_pull_secret(&mut web["spec"]["template"]["spec"]);
    let pull = pull_secret(namespace);
    tenant.project.create(&pull, false).await?;
    let other = named("other", "ORD", json!([{ "configMapRef": { "name": "settings" } }]));
    for one in [&web, &other] {
        tenant.project.create(one, false).await?;
    }
    let waits = |type_: &'static str| {
        move |one: &kube::api::DynamicObject| {
            says(one, type_, "False", REASON)?;
            let text = one.data["status"]["conditions"].to_string();
            ensure!(
                text.contains("Secret db does not exist in the namespace of the Workload"),
                "{text}"
            );
            Ok(())
        }
    };
    tenant.instance(&dfw, "web-0", waits("Ready")).await?;
    tenant.in_project(INSTANCE, "web-0", waits("Ready")).await?;
    tenant
        .in_project(WORKLOAD_DEPLOYMENT, "web", waits("Available"))
        .await?;
    tenant.shown("other", 1).await?;

    tenant.project.create(&secret(namespace, FIRST), false).await?;
    tenant.shown("web", 1).await?;
    let holds = |value: &str| {
        let wanted = secret("", value)["data"].clone();
        move |one: &kube::api::DynamicObject| read::expect_at(one, "/data", &wanted)
    };
    awaited(&dfw, SECRET, &tenant.below, "db", holds(FIRST)).await?;
    // What another client writes into it there, Karmada takes back.
    let theirs = json!({ "data": { "password": "dGhlaXJz", "more": "dGhlaXJz" } });
    let below = Some(tenant.below.as_str());
    dfw.merge(SECRET, below, "db", &theirs).await?;
    awaited(&dfw, SECRET, &tenant.below, "db", holds(FIRST)).await?;
    awaited(&dfw, SECRET, &tenant.below, "pull", |one| {
        read::expect_at(one, "/type", &pull["type"])
    })
    .await?;
    let secrets_of_ord = names_in(&ord, SECRET, &tenant.below).await?;
    ensure!(secrets_of_ord.is_empty(), "{secrets_of_ord:?}");
    awaited(&ord, CONFIG_MAP, &tenant.below, "settings", |one| {
        read::expect_at(one, "/data/title", &json!(TITLE))
    })
    .await?;
    let hash = |one: &kube::api::DynamicObject| one.data["status"]["referencedDataHash"].clone();
    let first = hash(&tenant.instance(&dfw, "web-0", |_| Ok(())).await?);
    ensure!(first.is_string(), "{first}");
    tenant
        .in_project(INSTANCE, "web-0", |one| {
            read::expect_at(one, "/status/referencedDataHash", &first)
        })
        .await?;

    // A restart, and not the change, starts with what it was changed to.
    let before = tenant.instances(&dfw).await?;
    let second = json!({ "data": secret("", SECOND)["data"] });
    tenant.project.merge(SECRET, Some(namespace), "db", &second).await?;
    // Its version stays; the reconcile that the restart causes finds what another client wrote into a copy on the hub.
    let theirs = json!({ "data": { ".dockerconfigjson": "eyJhIjp7fX0=" } });
    tenant.hub.merge(SECRET, below, "pull", &theirs).await?;
    let restarted = json!({ annotations::RESTARTED_AT: "2026-01-01T00:00:00Z" });
    let restart = json!({ "spec": { "template": { "metadata": { "annotations": restarted } } } });
    tenant
        .project
        .merge(WORKLOAD_DEPLOYMENT, Some(namespace), "web", &restart)
        .await?;
    tenant.all_are_others(&dfw, &before).await?;
    let of_web = &web["spec"]["template"]["spec"];
    let same = |workload: &mut Value| workload["spec"]["template"]["spec"] = of_web.clone();
    tenant.deploy(FOLLOWED, &["DFW"], 1, same).await?;
    tenant
        .instance(&dfw, "web-0", |one| {
            says(one, "Ready", "True", "Available")?;
            ensure!(hash(one).is_string() && hash(one) != first, "{}", hash(one));
            Ok(())
        })
        .await?;
    awaited(&dfw, SECRET, &tenant.below, "db", holds(SECOND)).await?;
    let is_mended = |one: &kube::api::DynamicObject| read::expect_at(one, "/data", &pull["data"]);
    tenant.in_hub(SECRET, "pull", is_mended).await?;
    awaited(&dfw, SECRET, &tenant.below, "pull", is_mended).await?;

    told_nobody(environment, &tenant, &dfw).await?;
    named_no_more(&tenant, &dfw, &web).await?;
    gone_with_the_last(&tenant, &dfw, &ord).await
}

/// ConfigMap `settings`.
pub(crate) fn settings(namespace: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "title": TITLE },
        "metadata": { "name": "settings", "namespace": namespace } })
}

/// Secret `pull`, which says `{}`.
pub(crate) fn pull_secret(namespace: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "pull", "namespace": namespace },
        "type": "kubernetes.io/dockerconfigjson", "data": { ".dockerconfigjson": "e30=" } })
}

fn with_files_and_pull_secret(template: &mut Value) {
    template["volumes"] = json!([{ "name": "keys", "secret": { "secretName": "db" } }]);
    let sandbox = &mut template["runtime"]["sandbox"];
    sandbox["containers"][0]["volumeAttachments"] = json!([{ "name": "keys", "mountPath": "/etc/keys" }]);
    sandbox["imagePullSecrets"] = json!([{ "name": "pull" }]);
}

/// A template names the Secrets no more. They stay while Instances are of the one before, which may restart, and go with the last.
async fn named_no_more(tenant: &Tenant, dfw: &Plane, web: &Value) -> Result<()> {
    let mut container = web["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0].clone();
    container["envFrom"] = json!([{ "configMapRef": { "name": "settings" } }]);
    container["volumeAttachments"] = json!(null);
    let sandbox = json!({ "containers": [container], "imagePullSecrets": null });
    let template = json!({ "metadata": { "annotations": { START_SECONDS: "8" } },
        "spec": { "volumes": null, "runtime": { "sandbox": sandbox } } });
    let patch = json!({ "spec": { "template": template } });
    let within = Some(tenant.namespace.as_str());
    tenant.project.merge(WORKLOAD_DEPLOYMENT, within, "web", &patch).await?;
    let of_web = |wanted: &'static str| {
        move |one: &kube::api::DynamicObject| {
            let all = one.metadata.annotations.as_ref();
            let kept = all.and_then(|all| all.get(annotations::PREVIOUS_REFERENCES));
            ensure!(kept.map_or("", String::as_str) == wanted, "{kept:?}, not {wanted:?}");
            Ok(())
        }
    };
    tenant
        .in_hub(WORKLOAD_DEPLOYMENT, "web", of_web("secrets/db,secrets/pull"))
        .await?;
    for name in ["db", "pull"] {
        dfw.expect(SECRET, Some(&tenant.below), name).await?;
    }
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "web", of_web("")).await?;
    for name in ["db", "pull"] {
        gone(dfw, SECRET, &tenant.below, name).await?;
        tenant.gone_from_hub(SECRET, name).await?;
    }
    tenant.shown("web", 1).await.map(|_| ())
}

/// It leaves a city with the last there that names it, and everything with the last of all.
async fn gone_with_the_last(tenant: &Tenant, dfw: &Plane, ord: &Plane) -> Result<()> {
    dfw.expect(CONFIG_MAP, Some(&tenant.below), "settings").await?;
    tenant.delete(WORKLOAD_DEPLOYMENT, "web").await?;
    gone(dfw, CONFIG_MAP, &tenant.below, "settings").await?;
    ensure!(
        names_in(ord, CONFIG_MAP, &tenant.below)
            .await?
            .contains(&"settings".to_owned())
    );
    tenant.delete(WORKLOAD_DEPLOYMENT, "other").await?;
    gone(ord, CONFIG_MAP, &tenant.below, "settings").await?;
    tenant.gone_from_hub(CONFIG_MAP, "settings").await
}

/// No value is in a log, an Event, an object that only names it, or what `popcell tree` says.
async fn told_nobody(environment: &Environment, tenant: &Tenant, dfw: &Plane) -> Result<()> {
    let values = [FIRST, SECOND, SAID, TITLE];
    let expect_none = |text: &str, what: &str| {
        let found = values.iter().find(|value| text.contains(*value));
        ensure!(found.is_none(), "{what} has a value: {text}");
        Ok(())
    };
    let management = environment.management.lock().await;
    management.expect_log_without(&values)?;
    environment.cells[0].lock().await.expect_log_without(&values)?;
    let kinds = [EVENT, WORKLOAD_DEPLOYMENT, INSTANCE, WORKLOAD];
    for (plane, namespace, kinds) in [
        (&tenant.project, &tenant.namespace, &kinds[..]),
        (&tenant.hub, &tenant.below, &kinds[..3]),
        (dfw, &tenant.below, &kinds[..3]),
    ] {
        for kind in kinds {
            for one in plane.list(*kind, Some(namespace), "").await? {
                let text = serde_json::to_string(&one).context("an object is no JSON")?;
                expect_none(&text, &format!("{} of {namespace}", kind.kind))?;
            }
        }
    }
    let files = tempfile::tempdir().context("failed to make a directory")?;
    tenant.ready(FOLLOWED, 1).await?;
    for format in ["text", "json"] {
        let mut command = tree::command(environment, files.path(), tenant, FOLLOWED, &[DFW, ORD])?;
        let said = ran(command.arg(format!("--output={format}")))?;
        ensure!(
            said.out.contains(&format!("{FOLLOWED}-us-dfw-0")),
            "no Instance: {said:?}"
        );
        expect_none(&(said.out + &said.err), &format!("tree as {format}"))?;
    }
    tenant.clean(FOLLOWED).await
}

/// A management plane whose credentials are stolen gives itself no right to what is not of a project: not to where Karmada keeps
/// the credentials of its members. A cell reads no Secret of the hub, not of its own city either.
pub(crate) async fn held(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.runs("web", &["DFW"], 1).await?;
    let thief = Plane::connect("thief", &environment.hub_user).await?;
    let refused = |outcome: Result<()>, words: &str, what: &str| {
        let text = format!(
            "{:#}",
            outcome.err().with_context(|| format!("{what} was carried out"))?
        );
        ensure!(text.contains(words), "{what}: {text}");
        Ok(())
    };
    let me = |namespace: &str, name: &str, role: &str, user: &str| {
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": { "name": name, "namespace": namespace },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }] })
    };
    let user = users::HUB_USER;
    for within in ["karmada-cluster", "kube-system", "default", &tenant.below] {
        let read = thief.list(SECRET, Some(within), "").await.map(|_| ());
        refused(read, " cannot list ", &format!("a list in {within}"))?;
    }
    let cell = Plane::connect("a cell on the hub", &users::of_cell(&environment.lab, DFW).await?).await?;
    for within in ["karmada-cluster", &tenant.below] {
        let read = cell.list(SECRET, Some(within), "").await.map(|_| ());
        refused(read, " cannot list ", &format!("a list of a cell in {within}"))?;
    }
    let of_others = "only in the namespaces that it made for projects";
    for (within, name, role, user, words) in [
        ("karmada-cluster", ROLE, ROLE, user, of_others),
        ("default", ROLE, ROLE, user, of_others),
        (&*tenant.below, ROLE, ROLE, "another", "binds a role to itself only"),
        (&*tenant.below, "another", ROLE, user, "binds no role but"),
        (
            &*tenant.below,
            ROLE,
            "cluster-admin",
            user,
            "attempting to grant RBAC permissions",
        ),
    ] {
        let bound = thief.create(&me(within, name, role, user), false).await.map(|_| ());
        refused(bound, words, &format!("{role} as {name} for {user} in {within}"))?;
    }
    let labels = json!({ popcell_api::labels::UPSTREAM_CLUSTER_NAME: "cluster-p1",
        popcell_api::labels::MANAGED_BY: popcell_api::labels::MANAGED_BY_POPCELL });
    let labelled = json!({ "metadata": { "labels": labels } });
    let claimed = thief
        .merge(NAMESPACE, None, "karmada-cluster", &labelled)
        .await
        .map(|_| ());
    let others = "only Namespaces of projects";
    refused(claimed, others, "a change of another Namespace")?;
    let deleted = thief.delete(NAMESPACE, None, "karmada-cluster").await;
    refused(deleted, others, "the deletion of another Namespace")?;
    let new =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "karmada-other", "labels": labels } });
    refused(thief.create(&new, false).await.map(|_| ()), others, "another Namespace")?;
    tenant.clean("web").await
}
