//! `popcell register --remove` and `--dry-run` against a real Karmada: what is ours goes, what is others' stays.

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::Environment;
use popcell_suites::read;
use popcell_suites::steps::ran;
use popcell_test_support::kind::INTERPRETER_CONFIGURATION;
use popcell_test_support::{Plane, artifacts};
use serde_json::{Value, json};

const NAME: &str = "popcell";
const OURS: &str = "interpreter.popcell.datumapis.com";

/// Names of the entries in our object; `None` when there is none.
async fn entries(hub: &Plane) -> Result<Option<Vec<String>>> {
    let objects = hub.list(INTERPRETER_CONFIGURATION, None, "").await?;
    let found = objects
        .iter()
        .find(|object| object.metadata.name.as_deref() == Some(NAME));
    Ok(found.map(|object| {
        let webhooks = read::at(object, "/webhooks").as_array().cloned().unwrap_or_default();
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
    let foreign = json!({
        "name": "foreign.example.org", "clientConfig": { "url": "https://foreign.example.org/" },
        "rules": [{ "operations": ["InterpretHealth"], "apiGroups": ["foreign.example"], "apiVersions": ["v1"], "kinds": ["Other"] }],
        "interpreterContextVersions": ["v1alpha1"], "timeoutSeconds": 3,
    });
    let before = hub
        .get(INTERPRETER_CONFIGURATION, None, NAME)
        .await?
        .context("nothing is registered")?;
    let mut webhooks = read::at(&before, "/webhooks").as_array().cloned().unwrap_or_default();
    webhooks.push(foreign);
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
