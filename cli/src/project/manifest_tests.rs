use clap::Parser as _;

use super::*;
use crate::args::{Cli, Command, project::ProjectCommand};

/// A manifest of an object.
pub(in crate::project) fn of(object: Value) -> Manifest {
    manifest(object).unwrap()
}

fn of_flags(flags: &[&str]) -> Vec<Manifest> {
    let line = ["popcell", "project", "apply", "--project-kubeconfig=a"];
    let cli = Cli::try_parse_from(line.iter().chain(flags)).unwrap();
    let Command::Project(project) = cli.command else {
        panic!("another command")
    };
    let ProjectCommand::Apply(args) = project.command;
    manifests(&args, &mut Console::standard()).unwrap()
}

#[test]
fn rights_are_written_before_what_needs_them() {
    let kinds: Vec<&str> = of_flags(&["--webhook-url=https://a"])
        .iter()
        .map(|one| one.kind.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            "CustomResourceDefinition",
            "CustomResourceDefinition",
            "CustomResourceDefinition",
            "ClusterRole",
            "ClusterRoleBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ]
    );
}

#[test]
fn without_flags_the_manifests_are_as_they_are_shipped() {
    // The user's place in binding and policy, which the flag's default names.
    let rights = embedded(&RIGHTS).unwrap();
    let made = of_flags(&["--skip-crds"]);
    assert_eq!(made.len(), rights.len());
    for one in made {
        assert!(rights.contains(&one.object), "{}", one.object);
        assert_eq!(one.object["metadata"]["labels"][PART_OF], PART_OF_POPCELL);
    }
}

#[test]
fn the_crds_are_those_of_this_version() {
    let shipped: Vec<Value> = popcell_api::crds()
        .iter()
        .map(|crd| serde_json::to_value(crd).unwrap())
        .collect();
    assert_eq!(embedded(&CRDS).unwrap(), shipped);
}
