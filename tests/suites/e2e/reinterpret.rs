//! `popcell reinterpret` on a real hub.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use popcell_api::annotations::REINTERPRETED_AT;
use popcell_suites::environment::Environment;
use popcell_suites::read;
use popcell_suites::steps::{Ran, ran};
use popcell_test_support::kind::{CONFIG_MAP, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{artifacts, objects};
use serde_json::json;

use crate::planes::{Deployed, NAME, hub_with_namespace};

pub(crate) fn command(environment: &Environment, namespace: &str) -> Result<Command> {
    let mut command = artifacts::popcell()?;
    command
        .arg("reinterpret")
        .arg(format!("--kubeconfig={}", environment.lab.kubeconfig("hub")?.display()))
        .arg(format!("--namespace={namespace}"));
    Ok(command)
}

/// Karmada aggregates on events of the binding, so a status on the hub that is wrong stays wrong until one comes.
pub(crate) async fn aggregated_anew(environment: &Environment, namespace: &str) -> Result<()> {
    let deployed = Deployed::in_dallas(environment, namespace, 2).await?;
    deployed.report(2, 1).await?;
    let before = deployed.mirrored(1).await?;
    let in_cell = read::uid(&deployed.in_cell().await?);
    let wrong = objects::cell_status(1, 2, 0);
    let (hub, here) = (&deployed.hub, Some(namespace));
    hub.set_status(WORKLOAD_DEPLOYMENT, here, NAME, &wrong).await?;

    let Ran { code, out, err } = ran(command(environment, namespace)?.arg("--dry-run"))?;
    ensure!(
        code == Some(0) && out == format!("{namespace}/{NAME}\n"),
        "{code:?}: {out}{err}"
    );
    let still = deployed.on_hub().await?;
    read::expect_at(&still, "/status/readyReplicas", &json!(0)).context("something else has mended it")?;
    ensure!(annotation(&still).is_none(), "the dry run has written");

    let Ran { code, out, err } = ran(&mut command(environment, namespace)?)?;
    let counted = "WorkloadDeployment: 1 of 1 bumped, 0 skipped, 0 gone meanwhile, 0 failed\n";
    ensure!(code == Some(0) && out == counted, "{code:?}: {out}{err}");
    let after = deployed.mirrored(1).await?;
    ensure!(
        after.metadata.generation == before.metadata.generation,
        "more than metadata was written"
    );
    let first = annotation(&after).context("no annotation")?;
    deployed.is_kept(&in_cell).await?;

    // Taken up with the time that it said, there is nothing left to do; without it, all is done again.
    let since = err
        .split("--since ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    let since = since.with_context(|| format!("no time in {err}"))?;
    let Ran { code, out, err } = ran(command(environment, namespace)?.args(["--since", since]))?;
    ensure!(
        code == Some(0) && out.contains("0 of 1 bumped, 1 skipped"),
        "{code:?}: {out}{err}"
    );
    let Ran { code, out, err } = ran(&mut command(environment, namespace)?)?;
    ensure!(code == Some(0) && out == counted, "{code:?}: {out}{err}");
    let again = deployed.on_hub().await?;
    ensure!(
        annotation(&again).is_some_and(|time| time != first),
        "the second run changed nothing"
    );
    Ok(())
}

fn annotation(object: &kube::api::DynamicObject) -> Option<String> {
    object.metadata.annotations.as_ref()?.get(REINTERPRETED_AT).cloned()
}

/// Any kind, by label, at the rate, and with a count when a person has had enough.
pub(crate) async fn interrupted(environment: &Environment, namespace: &str) -> Result<()> {
    let hub = hub_with_namespace(environment, namespace).await?;
    for name in ["a", "b", "c"] {
        hub.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": namespace, "name": name, "labels": { "chosen": if name == "c" { "no" } else { "yes" } } },
        }))
        .await?;
    }
    let bumped = async || -> Result<usize> {
        let all = hub.list(CONFIG_MAP, Some(namespace), "").await?;
        Ok(all.iter().filter(|one| annotation(one).is_some()).count())
    };
    // The first at once, the next after a minute: long after the interrupt.
    let mut child = command(environment, namespace)?
        .args(["--kind=v1/ConfigMap", "--rate=1/m", "-l=chosen=yes"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("failed to start popcell")?;
    let mut said = BufReader::new(child.stderr.take().context("no pipe")?);
    let mut line = String::new();
    while line != "1 of 2\n" {
        line.clear();
        ensure!(said.read_line(&mut line)? > 0, "it ended without progress");
    }
    ensure!(bumped().await? == 1, "{} are bumped", bumped().await?);
    let sent = Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .status()?;
    ensure!(sent.success(), "the signal was not sent");
    let mut rest = String::new();
    said.read_to_string(&mut rest)?;
    let code = child.wait()?.code();
    let expected = "interrupted: ConfigMap: 1 of 2 bumped, 0 skipped, 0 gone meanwhile, 0 failed\n";
    ensure!(code == Some(130) && rest == expected, "{code:?}: {rest}");
    ensure!(bumped().await? == 1, "it went on");
    Ok(())
}
