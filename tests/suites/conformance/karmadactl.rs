//! `popcell interpret` prints what `karmadactl interpret` prints for a Lua customization of the same meaning.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use popcell_sdk::test::yaml;
use popcell_suites::wire::text;
use popcell_test_support::{artifacts, workspace};
use serde_json::json;

use crate::environment::Environment;
use crate::objects::{item, workload};

pub(crate) async fn interpret(_: &Environment, _: &str) -> Result<()> {
    let files = tempfile::tempdir().context("failed to make a directory")?;
    let write = |name: &str, content: String| {
        let file = files.path().join(name);
        std::fs::write(&file, content).context("failed to write a file")?;
        anyhow::Ok(text(&file))
    };
    let object = write("object.json", workload(3, 2).to_string())?;
    let mut member = workload(3, 2);
    member["spec"]["paused"] = json!(true);
    let observed = write("observed.json", member.to_string())?;
    let items = [
        item("dfw", &json!({ "readyReplicas": 2 })),
        item("ord", &json!({ "readyReplicas": 3 })),
    ];
    let items = write("items.yaml", items.map(|item| item.to_string()).join("\n---\n"))?;
    let questions = [
        ("InterpretReplica", vec!["--desired-file", &object]),
        (
            "ReviseReplica",
            vec!["--desired-file", &object, "--desired-replica", "5"],
        ),
        ("Retain", vec!["--desired-file", &object, "--observed-file", &observed]),
        (
            "AggregateStatus",
            vec!["--desired-file", &object, "--status-file", &items],
        ),
        ("InterpretStatus", vec!["--observed-file", &observed]),
        ("InterpretHealth", vec!["--observed-file", &observed]),
        ("InterpretDependency", vec!["--desired-file", &object]),
    ];
    let lua = text(&workspace::root().join("tests/lab/testdata/lua/workload.yaml"));
    let module = text(&artifacts::modules()?.join("karmada-example.wasm"));
    for (operation, flags) in questions {
        let mut karmadactl = Command::new(artifacts::lab_programs()?.join("karmadactl"));
        let theirs = printed(
            karmadactl
                .args(["interpret", "-f", &lua, "--operation", operation])
                .args(&flags),
        )?;
        let ours = printed(
            artifacts::popcell()?
                .args(["interpret", "--module", &module, "--operation", operation])
                .args(&flags),
        )?;
        ensure!(
            heads(&ours) == heads(&theirs) && values(&ours)? == values(&theirs)?,
            "{operation}: ours\n{ours}\ntheirs\n{theirs}"
        );
    }
    Ok(())
}

fn printed(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("failed to start {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).context("the output is not UTF-8")
}

/// The lines between the values.
fn heads(output: &str) -> Vec<&str> {
    let is_head = |line: &&str| *line == "---" || line.starts_with("# ");
    output.lines().filter(is_head).collect()
}

/// The values, in whatever order their keys are written.
fn values(output: &str) -> Result<Vec<String>> {
    let documents = yaml::documents(output).context("the output is no YAML")?;
    Ok(documents.iter().map(|document| document.sorted().to_json()).collect())
}
