//! From what a module says about itself to a [`Description`], and the rules for that.

use std::collections::HashSet;

use popcell_contract::{Description, Gvk, Implemented, Operation, Target};

use crate::compiled_module::wit;
use crate::verify::names;

/// Kinds that one module may serve.
const MAX_TARGETS: usize = 64;

impl From<wit::Description> for Description {
    fn from(description: wit::Description) -> Self {
        let target = |target: wit::Target| Target {
            kind: Gvk::new(target.kind.group, target.kind.version, target.kind.kind),
            operations: target.operations.into_iter().map(implemented).collect(),
        };
        Self {
            name: description.name,
            version: description.version,
            targets: description.targets.into_iter().map(target).collect(),
        }
    }
}

fn implemented(implemented: wit::Implemented) -> Implemented {
    let operation = match implemented.operation {
        wit::Operation::InterpretReplica => Operation::InterpretReplica,
        wit::Operation::InterpretComponent => Operation::InterpretComponent,
        wit::Operation::ReviseReplica => Operation::ReviseReplica,
        wit::Operation::Retain => Operation::Retain,
        wit::Operation::AggregateStatus => Operation::AggregateStatus,
        wit::Operation::InterpretStatus => Operation::InterpretStatus,
        wit::Operation::InterpretHealth => Operation::InterpretHealth,
        wit::Operation::InterpretDependency => Operation::InterpretDependency,
    };
    Implemented {
        operation,
        register: implemented.register,
    }
}

/// The first rule that a description breaks.
pub(crate) fn check(description: &Description) -> Result<(), String> {
    for (what, value) in [("name", &description.name), ("version", &description.version)] {
        if value.is_empty() || !names::is_label_value(value) {
            return Err(format!(
                "{what} {} must be a label value: 1 to 63 letters, digits, '-', '_', '.'",
                quoted(value)
            ));
        }
    }
    if description.targets.is_empty() {
        return Err("it serves no kind".to_owned());
    }
    if description.targets.len() > MAX_TARGETS {
        return Err(format!(
            "it serves {} kinds, more than {MAX_TARGETS}",
            description.targets.len()
        ));
    }
    let mut kinds = HashSet::new();
    for target in &description.targets {
        check_kind(&target.kind)?;
        if !kinds.insert(&target.kind) {
            return Err(format!("it names {} twice", target.kind));
        }
        if target.operations.is_empty() {
            return Err(format!("it implements no operation for {}", target.kind));
        }
        let mut operations = HashSet::new();
        if let Some(twice) = target
            .operations
            .iter()
            .find(|implemented| !operations.insert(implemented.operation))
        {
            return Err(format!("it names {} twice for {}", twice.operation, target.kind));
        }
    }
    Ok(())
}

fn check_kind(kind: &Gvk) -> Result<(), String> {
    if !kind.group.is_empty() && !names::is_subdomain(&kind.group) {
        return Err(format!("group {} is no DNS subdomain", quoted(&kind.group)));
    }
    if !names::is_dns_label(&kind.version) {
        return Err(format!("version {} of a kind is no DNS label", quoted(&kind.version)));
    }
    if !names::is_dns_label(&kind.kind.to_ascii_lowercase()) {
        return Err(format!("kind {} is no DNS label", quoted(&kind.kind)));
    }
    Ok(())
}

/// Kinds that a control plane needs to work: a hook for them could stop the hook's own deployment, or Karmada.
pub(crate) fn is_core(kind: &Gvk) -> bool {
    matches!(kind.group.as_str(), "" | "apps" | "admissionregistration.k8s.io") || names::is_karmadas(&kind.group)
}

fn quoted(value: &str) -> String {
    format!("{:?}", value.chars().take(80).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(change: impl FnOnce(&mut Description)) -> Result<(), String> {
        let operations = vec![Implemented {
            operation: Operation::Retain,
            register: true,
        }];
        let target = Target {
            kind: Gvk::new("example.io", "v1", "Widget"),
            operations,
        };
        let mut description = Description {
            name: "widget".into(),
            version: "0.1.0".into(),
            targets: vec![target],
        };
        change(&mut description);
        check(&description)
    }

    #[test]
    fn each_rule_is_named() {
        type Change = fn(&mut Description);
        assert_eq!(described(|_| ()), Ok(()));
        let cases: [(&str, Change); 10] = [
            ("name \"\"", |d| d.name.clear()),
            ("version \"a b\"", |d| d.version = "a b".into()),
            ("label value", |d| d.name = "n".repeat(64)),
            ("no kind", |d| d.targets.clear()),
            ("65 kinds", |d| d.targets = vec![d.targets[0].clone(); 65]),
            ("Widget twice", |d| d.targets.push(d.targets[0].clone())),
            ("Retain twice", |d| {
                d.targets[0].operations = vec![d.targets[0].operations[0]; 2];
            }),
            ("no operation", |d| d.targets[0].operations.clear()),
            ("group \"Bad_\"", |d| d.targets[0].kind.group = "Bad_".into()),
            ("kind \"\"", |d| d.targets[0].kind.kind.clear()),
        ];
        for (expected, change) in cases {
            let message = described(change).unwrap_err();
            assert!(message.contains(expected), "{message} does not name {expected}");
        }
    }

    #[test]
    fn core_kinds() {
        for group in [
            "",
            "apps",
            "admissionregistration.k8s.io",
            "karmada.io",
            "work.karmada.io",
        ] {
            assert!(is_core(&Gvk::new(group, "v1", "X")), "{group}");
        }
        for group in ["batch", "compute.datumapis.com", "notkarmada.io"] {
            assert!(!is_core(&Gvk::new(group, "v1", "X")), "{group}");
        }
    }
}
