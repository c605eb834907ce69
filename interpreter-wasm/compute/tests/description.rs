//! What the module says of itself: Karmada turns features on by this list.

use popcell_sdk::Operation;
use popcell_sdk::module::Run;

#[test]
fn only_written_operations_are_described() {
    let description = compute_interpreter::module().describe();
    assert_eq!(description.name, "compute-interpreter");
    assert_eq!(description.version, env!("CARGO_PKG_VERSION"));
    let [target] = description.targets.as_slice() else {
        panic!("one kind, found {:?}", description.targets);
    };
    assert_eq!(
        target.kind.to_string(),
        "compute.datumapis.com/v1alpha WorkloadDeployment"
    );
    let mut operations: Vec<_> = target
        .operations
        .iter()
        .map(|known| (known.operation, known.register))
        .collect();
    operations.sort_unstable();
    assert_eq!(
        operations,
        [
            (Operation::InterpretReplica, true),
            (Operation::ReviseReplica, false),
            (Operation::Retain, false),
            (Operation::AggregateStatus, true),
            (Operation::InterpretStatus, true),
            (Operation::InterpretHealth, true),
        ]
    );
}
