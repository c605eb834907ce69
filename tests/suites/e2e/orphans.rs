//! `popcell orphans` on a real hub, in mode `single`: the spare member's API server is the project.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use popcell_api::{API_VERSION, annotations, labels, names};
use popcell_suites::environment::{Environment, SOON, SPARE};
use popcell_suites::read;
use popcell_suites::steps::ran;
use popcell_test_support::kind::{INSTANCE, NAMESPACE, PROPAGATION_POLICY, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, artifacts, eventually, objects, workspace};
use serde_json::{Value, json};

/// A project of one Namespace and its hub namespace.
struct Setting<'a> {
    environment: &'a Environment,
    hub: Plane,
    project: Plane,
    /// The Namespace in the project.
    namespace: String,
    /// The hub namespace of it.
    current: String,
}

impl<'a> Setting<'a> {
    async fn make(environment: &'a Environment, test: &str) -> Result<Self> {
        let (hub, project) = (environment.lab.hub().await?, environment.lab.plane(SPARE).await?);
        let namespace = test.to_owned();
        let made = project.apply(&objects::namespace(&namespace)).await?;
        let setting = Self {
            environment,
            hub,
            project,
            namespace,
            current: objects::hub_namespace_name(&read::uid(&made)),
        };
        setting.hub_namespace(&setting.current).await?;
        Ok(setting)
    }

    /// A hub namespace as the controller makes it.
    async fn hub_namespace(&self, name: &str) -> Result<()> {
        let mut object = objects::namespace(name);
        let system = self.project.expect(NAMESPACE, None, "kube-system").await?;
        object["metadata"]["annotations"] = json!({ annotations::UPSTREAM_SERVER_UID: read::uid(&system) });
        object["metadata"]["labels"] = json!({
            labels::MANAGED_BY: labels::MANAGED_BY_POPCELL,
            labels::UPSTREAM_CLUSTER_NAME: format!("{}{}", names::PROJECT_LABEL_PREFIX, names::SINGLE),
            labels::UPSTREAM_NAMESPACE: self.namespace,
        });
        self.hub.apply(&object).await.map(|_| ())
    }

    /// A WorkloadDeployment as the controller makes it.
    async fn on_hub(&self, namespace: &str, name: &str) -> Result<()> {
        let mut object = objects::workload_deployment(namespace, name, "DFW", 1);
        objects::annotate(
            &mut object,
            annotations::UPSTREAM_UID,
            "5f7c0a52-0000-4000-8000-000000000001",
        );
        self.hub.apply(&object).await.map(|_| ())
    }

    fn run(&self, project: &Path, args: &[&str]) -> Result<(i32, String, String)> {
        let mut command = artifacts::popcell()?;
        command
            .arg("orphans")
            .arg(format!(
                "--kubeconfig={}",
                self.environment.lab.kubeconfig("hub")?.display()
            ))
            .arg(format!("--project-kubeconfig={}", project.display()))
            .args(args);
        let said = ran(&mut command)?;
        Ok((said.code.unwrap_or(-1), said.out, said.err))
    }

    fn orphans(&self, args: &[&str]) -> Result<(i32, String, String)> {
        self.run(self.environment.lab.kubeconfig(SPARE)?, args)
    }

    /// Kind, name and verdict of each object in the report.
    fn report(&self, namespace: &str) -> Result<(i32, Vec<[String; 3]>)> {
        let (code, out, err) = self.orphans(&["-o=json", "--namespace", namespace])?;
        Ok((code, listed(&out).with_context(|| err)?))
    }

    async fn has(&self, namespace: &str, name: &str) -> Result<bool> {
        let found = self.hub.get(WORKLOAD_DEPLOYMENT, Some(namespace), name).await?;
        Ok(found.is_some())
    }
}

fn listed(out: &str) -> Result<Vec<[String; 3]>> {
    let report: Value = serde_json::from_str(out).with_context(|| format!("no report: {out}"))?;
    let objects = report["objects"].as_array().context("no objects")?;
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let parts = |object: &Value| [text(&object["kind"]), text(&object["name"]), text(&object["verdict"])];
    Ok(objects.iter().map(parts).collect())
}

fn of(kind: &str, name: &str, verdict: &str) -> [String; 3] {
    [kind, name, verdict].map(str::to_owned)
}

/// In a namespace whose project's Namespace lives.
pub(crate) async fn lost_deployment(environment: &Environment, test: &str) -> Result<()> {
    let setting = Setting::make(environment, test).await?;
    let current = setting.current.as_str();
    let in_project = objects::workload_deployment(&setting.namespace, "kept", "DFW", 1);
    setting.project.apply(&in_project).await?;
    setting.on_hub(current, "kept").await?;
    ensure!(
        setting.report(current)? == (0, vec![]),
        "{:?}",
        setting.report(current)?
    );

    setting.on_hub(current, "lost").await?;
    let mut foreign = objects::workload_deployment(current, "foreign", "DFW", 1);
    foreign["metadata"]["labels"] = json!({});
    setting.hub.apply(&foreign).await?;
    let expected = (1, vec![of("WorkloadDeployment", "lost", "orphan")]);
    ensure!(setting.report(current)? == expected, "{:?}", setting.report(current)?);

    // The hub taken for the project, and a project that is unreachable.
    let hub = setting.hub.kubeconfig();
    let (code, _, err) = setting.run(hub, &["--namespace", current, "--delete", "--yes=1"])?;
    ensure!(code == 2 && err.contains("the hub itself"), "{code}: {err}");
    let dead = workspace::root().join("cli/tests/fixtures/kubeconfig-dead.yaml");
    let (code, out, err) = setting.run(&dead, &["--namespace", current, "--delete", "--yes=1", "-o=json"])?;
    let unknown = listed(&out)?;
    let both = unknown.contains(&of("WorkloadDeployment", "lost", "unknown"))
        && unknown.contains(&of("Namespace", current, "unknown"));
    ensure!(code == 4 && both, "{code}: {out}{err}");
    ensure!(setting.has(current, "lost").await?, "it is gone already");

    let (code, out, err) = setting.orphans(&["--namespace", current, "--delete", "--yes=1"])?;
    ensure!(
        code == 0 && out.contains(&format!("WorkloadDeployment {current}/lost: deleted")),
        "{code}: {out}{err}"
    );
    ensure!(!setting.has(current, "lost").await?, "it is there still");
    ensure!(
        setting.has(current, "kept").await? && setting.has(current, "foreign").await?,
        "more than the orphan is gone"
    );
    Ok(())
}

/// A namespace whose project's Namespace was recreated, with one of each kind in it.
pub(crate) async fn outlived_namespace(environment: &Environment, test: &str) -> Result<()> {
    let setting = Setting::make(environment, test).await?;
    // Named by a uid that no Namespace has.
    let old = objects::hub_namespace_name(test);
    setting.hub_namespace(&old).await?;
    setting.on_hub(&old, "web").await?;
    setting.on_hub(&setting.current, "web").await?;
    let in_project = objects::workload_deployment(&setting.namespace, "web", "DFW", 1);
    setting.project.apply(&in_project).await?;
    // A city that no cell has: Karmada may claim the object, and has nowhere to put it.
    setting.hub.apply(&objects::city_policy(&old, "NOWHERE")).await?;
    setting
        .hub
        .apply(&json!({
            "apiVersion": API_VERSION, "kind": "Instance",
            "metadata": { "namespace": old, "name": "web-0", "labels": { labels::MANAGED_BY: labels::MANAGED_BY_POPCELL } },
            "spec": in_project["spec"]["template"]["spec"],
        }))
        .await?;

    let (code, found) = setting.report(&old)?;
    let expected = [
        of("Namespace", &old, "orphan"),
        of("WorkloadDeployment", "web", "orphan"),
        of("Instance", "web-0", "orphan"),
        of("PropagationPolicy", &objects::city_policy_name("NOWHERE"), "orphan"),
    ];
    ensure!(code == 1 && found == expected, "{code}: {found:?}");

    let (code, out, err) = setting.orphans(&["--namespace", &old, "--delete", "--yes=4", "--wait=2m"])?;
    ensure!(code == 0, "{code}: {out}{err}");
    for kind in ["WorkloadDeployment", "Instance", "PropagationPolicy", "Namespace"] {
        ensure!(
            out.lines()
                .any(|line| line.starts_with(kind) && line.ends_with(": deleted")),
            "no {kind} in {out}"
        );
    }
    eventually("the old namespace is gone", SOON, async || {
        let found = setting.hub.get(NAMESPACE, None, &old).await?;
        ensure!(found.is_none(), "it is there");
        Ok(())
    })
    .await?;
    for kind in [WORKLOAD_DEPLOYMENT, INSTANCE, PROPAGATION_POLICY] {
        ensure!(
            setting.hub.list(kind, Some(&old), "").await?.is_empty(),
            "{} left",
            kind.kind
        );
    }
    ensure!(setting.has(&setting.current, "web").await?, "the living one is gone");
    Ok(())
}
