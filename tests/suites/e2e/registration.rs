//! `popcell register` and `popcell doctor` against a real Karmada: what others do to our configuration is seen and mended.

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::Environment;
use popcell_suites::read;
use popcell_suites::steps::ran;
use popcell_test_support::kind::{INTERPRETER_CONFIGURATION, INTERPRETER_CUSTOMIZATION};
use popcell_test_support::{Plane, artifacts};
use serde_json::{Value, json};

const NAME: &str = "popcell";
const OURS: &str = "interpreter.popcell.datumapis.com";

/// The object that holds our entry, by the entry's kinds.
async fn configuration(hub: &Plane) -> Result<(String, Vec<Value>)> {
    for object in hub.list(INTERPRETER_CONFIGURATION, None, "").await? {
        let webhooks = read::at(&object, "/webhooks").as_array().cloned().unwrap_or_default();
        if webhooks.iter().any(is_ours) {
            return Ok((object.metadata.name.context("no name")?, webhooks));
        }
    }
    anyhow::bail!("no configuration has our entry")
}

fn is_ours(webhook: &Value) -> bool {
    webhook["rules"]
        .as_array()
        .is_some_and(|rules| rules.iter().any(|rule| rule["kinds"] == json!(["WorkloadDeployment"])))
}

fn ours(webhooks: &[Value]) -> Result<&Value> {
    webhooks
        .iter()
        .find(|webhook| is_ours(webhook))
        .context("our entry is gone")
}

/// An entry of another client, for another kind.
fn foreign(ours: &Value) -> Value {
    let mut foreign = ours.clone();
    foreign["name"] = json!("foreign.example.org");
    foreign["rules"] = json!([{
        "operations": ["InterpretHealth"], "apiGroups": ["foreign.example"], "apiVersions": ["v1"], "kinds": ["Other"],
    }]);
    foreign
}

/// Exit code and failed checks of the doctor, by id.
fn doctor(environment: &Environment, flags: &[&str]) -> Result<(i32, Vec<String>)> {
    let kubeconfig = format!("--kubeconfig={}", environment.lab.kubeconfig("hub")?.display());
    let said = ran(artifacts::popcell()?
        .args(["doctor", "--output=json", &kubeconfig])
        .args(flags))?;
    let report: Value = serde_json::from_str(&said.out).with_context(|| format!("{said:?}"))?;
    let checks = report["checks"]
        .as_array()
        .with_context(|| format!("no checks in {report}"))?;
    let failed = checks
        .iter()
        .filter(|check| check["verdict"] == "fail")
        .map(|check| check["id"].as_str().unwrap_or("?").to_owned());
    Ok((said.code.unwrap_or(-1), failed.collect()))
}

pub(crate) async fn healthy(environment: &Environment, _: &str) -> Result<()> {
    let modules = format!(
        "--module-dir={}",
        environment.webhook.lock().await.module_dir().display()
    );
    let (code, failed) = doctor(environment, &[&modules])?;
    ensure!(
        code == 0 && failed.is_empty(),
        "exit code {code}, failed checks {failed:?}"
    );
    let hub = environment.lab.hub().await?;
    let (_, webhooks) = configuration(&hub).await?;
    let entry = ours(&webhooks)?;
    ensure!(entry["timeoutSeconds"] == 5, "{entry}");
    let rules = entry["rules"].as_array().context("no rules")?;
    let rule = rules
        .iter()
        .find(|rule| rule["kinds"] == json!(["WorkloadDeployment"]))
        .context("no rule")?;
    let expected = json!([
        "InterpretReplica",
        "Retain",
        "AggregateStatus",
        "InterpretStatus",
        "InterpretHealth",
        "InterpretDependency"
    ]);
    ensure!(
        rule["operations"] == expected,
        "ReviseReplica is implemented, not registered: {rule}"
    );
    Ok(())
}

/// A bundle that was taken away, a wrong one, a foreign entry beside ours, and a deleted object.
pub(crate) async fn reapplied(environment: &Environment, _: &str) -> Result<()> {
    let hub = environment.lab.hub().await?;
    let (name, before) = configuration(&hub).await?;
    let bundle = ours(&before)?["clientConfig"]["caBundle"].clone();
    let wrong = json!(base64_of(
        "-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n"
    ));
    for damage in [Value::Null, wrong] {
        let mut webhooks = before.clone();
        let entry = webhooks
            .iter_mut()
            .find(|webhook| is_ours(webhook))
            .context("no entry")?;
        if damage.is_null() {
            entry["clientConfig"]
                .as_object_mut()
                .map(|config| config.remove("caBundle"));
        } else {
            entry["clientConfig"]["caBundle"] = damage;
        }
        let foreign = foreign(&before[0]);
        webhooks.push(foreign.clone());
        hub.merge(INTERPRETER_CONFIGURATION, None, &name, &json!({ "webhooks": webhooks }))
            .await?;
        let (code, failed) = doctor(environment, &[])?;
        ensure!(
            code == 1 && !failed.is_empty(),
            "the doctor saw nothing: exit code {code}"
        );

        register(environment).await?;
        let (_, after) = configuration(&hub).await?;
        ensure!(
            ours(&after)?["clientConfig"]["caBundle"] == bundle,
            "the bundle was not restored"
        );
        ensure!(after.contains(&foreign), "the foreign entry was touched: {after:?}");
    }
    hub.delete(INTERPRETER_CONFIGURATION, None, &name).await?;
    let (code, failed) = doctor(environment, &[])?;
    ensure!(
        code == 1 && failed.iter().any(|id| id == "config-present"),
        "exit code {code}, failed {failed:?}"
    );
    register(environment).await?;
    let (_, after) = configuration(&hub).await?;
    ensure!(ours(&after)? == ours(&before)?, "registering again gave {after:?}");
    Ok(())
}

/// Lua wins over webhooks, per operation, silently.
pub(crate) async fn shadowed(environment: &Environment, _: &str) -> Result<()> {
    let hub = environment.lab.hub().await?;
    let script = "function InterpretHealth(observedObj)\n  return true\nend";
    hub.apply(&json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": { "name": "e2e-shadow" },
        "spec": {
            "target": { "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment" },
            "customizations": { "healthInterpretation": { "luaScript": script } },
        },
    }))
    .await?;
    let refused = register(environment).await;
    let seen = doctor(environment, &[]);
    hub.delete(INTERPRETER_CUSTOMIZATION, None, "e2e-shadow").await?;
    let refused = refused
        .err()
        .context("register took no notice of the customization")?
        .to_string();
    for part in ["e2e-shadow", "InterpretHealth", "WorkloadDeployment"] {
        ensure!(refused.contains(part), "{part} is not in {refused}");
    }
    let (code, failed) = seen?;
    ensure!(
        code == 1 && failed.iter().any(|id| id == "precedence-customization"),
        "exit code {code}, failed {failed:?}"
    );
    register(environment).await
}

/// The agent of a Pull member cannot resolve a Service of the hub's cluster.
pub(crate) async fn pull_needs_url(environment: &Environment, _: &str) -> Result<()> {
    let webhook = environment.webhook.lock().await;
    let mut command = artifacts::popcell()?;
    command
        .args(["register", "--service=popcell-system/popcell-webhook", "--skip-probe"])
        .arg(format!("--module-dir={}", webhook.module_dir().display()))
        .arg(format!("--ca-file={}", webhook.ca_file().display()))
        .arg(format!("--kubeconfig={}", environment.lab.kubeconfig("hub")?.display()));
    let said = ran(&mut command)?;
    ensure!(
        said.code != Some(0) && said.err.contains("ord") && said.err.contains("--url"),
        "{said:?}"
    );
    Ok(())
}

async fn register(environment: &Environment) -> Result<()> {
    environment
        .webhook
        .lock()
        .await
        .register(environment.lab.kubeconfig("hub")?, &[])
}

fn base64_of(text: &str) -> String {
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text)
}

/// Names of the entries in our object; `None` when there is none.
async fn entries(hub: &Plane) -> Result<Option<Vec<String>>> {
    let found = hub.get(INTERPRETER_CONFIGURATION, None, NAME).await?;
    Ok(found.map(|object| {
        let webhooks = read::at(&object, "/webhooks").as_array().cloned().unwrap_or_default();
        let name = |webhook: &Value| webhook["name"].as_str().unwrap_or_default().to_owned();
        webhooks.iter().map(name).collect()
    }))
}

/// Runs `popcell register` and gives what it printed.
fn popcell(environment: &Environment, arguments: &[String]) -> Result<String> {
    let kubeconfig = format!("--kubeconfig={}", environment.lab.kubeconfig("hub")?.display());
    let said = ran(artifacts::popcell()?.args(["register", &kubeconfig]).args(arguments))?;
    ensure!(said.code == Some(0), "{said:?}");
    Ok(said.out)
}

/// `popcell register --remove` and `--dry-run`: what is ours goes, what is others' stays.
pub(crate) async fn removed(environment: &Environment, _: &str) -> Result<()> {
    let hub = environment.lab.hub().await?;
    let remove = ["--remove".to_owned()];
    let register = {
        let webhook = environment.webhook.lock().await;
        [
            format!("--module-dir={}", webhook.module_dir().display()),
            format!("--url={}", webhook.url()),
            format!("--ca-file={}", webhook.ca_file().display()),
        ]
    };
    // Whatever goes wrong here, the tests after this one find their webhook.
    let result = take_away(environment, &hub, &remove, &register).await;
    popcell(environment, &register)?;
    result?;
    ensure!(
        entries(&hub).await? == Some(vec![OURS.to_owned()]),
        "it was not registered again"
    );
    Ok(())
}

async fn take_away(environment: &Environment, hub: &Plane, remove: &[String], register: &[String]) -> Result<()> {
    // another client's entry keeps the object alive.
    let (_, mut webhooks) = configuration(hub).await?;
    webhooks.push(foreign(&webhooks[0]));
    hub.merge(INTERPRETER_CONFIGURATION, None, NAME, &json!({ "webhooks": webhooks }))
        .await?;
    let said = popcell(environment, remove)?;
    ensure!(said.contains("updated"), "{said}");
    ensure!(
        entries(hub).await? == Some(vec!["foreign.example.org".to_owned()]),
        "{:?}",
        entries(hub).await?
    );

    // A dry run shows both and writes neither.
    let planned = popcell(
        environment,
        &[register, &["--dry-run".to_owned(), "--output=json".to_owned()]].concat(),
    )?;
    let planned: Value = serde_json::from_str(&planned).context("the dry run printed no JSON")?;
    ensure!(planned["webhooks"][1]["name"] == OURS, "{planned}");
    ensure!(
        entries(hub).await? == Some(vec!["foreign.example.org".to_owned()]),
        "the dry run wrote"
    );

    // Alone in it, ours takes the object along; and nothing is left to remove.
    hub.delete(INTERPRETER_CONFIGURATION, None, NAME).await?;
    ensure!(popcell(environment, register)?.contains("created"), "not created");
    ensure!(popcell(environment, register)?.contains("unchanged"), "not idempotent");
    ensure!(popcell(environment, remove)?.contains("deleted"), "not deleted");
    ensure!(entries(hub).await?.is_none(), "the object stayed");
    ensure!(popcell(environment, remove)?.contains("unchanged"), "removing twice");
    Ok(())
}
