//! The descriptions that the module can give.

use crate::exports::popcell::interpreter::operations::{Description, Gvk, Implemented, Operation, Target};

pub(crate) fn of(variant: &str) -> Description {
    let all = targets("tests.popcell.dev", "Misbehaving", &ALL);
    let (name, targets) = match variant {
        "other" => ("other", targets("tests.popcell.dev", "Other", &ALL)),
        // Claims the same kind as the plain one.
        "rival" => (
            "rival",
            targets("tests.popcell.dev", "Misbehaving", &[Operation::InterpretHealth]),
        ),
        "no-health" => (
            "no-health",
            targets("tests.popcell.dev", "Misbehaving", &[Operation::InterpretStatus]),
        ),
        "core" => ("core", targets("apps", "Deployment", &ALL)),
        "nameless" => ("", all),
        "crowd" => (
            "crowd",
            (0..65)
                .flat_map(|number| targets("tests.popcell.dev", &format!("K{number}"), &ALL))
                .collect(),
        ),
        "twice" => ("twice", [all.clone(), all].concat()),
        "loop" => loop {
            std::hint::black_box(());
        },
        "trap" => core::arch::wasm32::unreachable(),
        "huge" => {
            return Description {
                name: "x".repeat(40 << 20),
                version: "0.1.0".into(),
                targets: all,
            };
        }
        // The behaviour crashes on every object of this kind, so already in the self-test.
        "crash" => ("crash", targets("tests.popcell.dev", "Crash", &[Operation::Retain])),
        _ => ("misbehaving", all),
    };
    Description {
        name: name.into(),
        version: "0.1.0".into(),
        targets,
    }
}

const ALL: [Operation; 8] = [
    Operation::InterpretReplica,
    Operation::InterpretComponent,
    Operation::ReviseReplica,
    Operation::Retain,
    Operation::AggregateStatus,
    Operation::InterpretStatus,
    Operation::InterpretHealth,
    Operation::InterpretDependency,
];

fn targets(group: &str, kind: &str, operations: &[Operation]) -> Vec<Target> {
    let kind = Gvk {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
    };
    let implemented = |operation: &Operation| Implemented {
        operation: *operation,
        register: true,
    };
    vec![Target {
        kind,
        operations: operations.iter().map(implemented).collect(),
    }]
}
