//! What the module says of itself, by which Karmada turns features on; and the manifests under docs/examples, which the demo
//! applies, are what the module expects.

use std::path::Path;

use compute_interpreter::WorkloadDeployment;
use popcell_sdk::Operation;
use popcell_sdk::module::Run;
use popcell_sdk::prelude::*;
use popcell_sdk::test::yaml;

#[test]
fn examples_are_interpreted() {
    // (file, city, replicas)
    for (file, city, replicas) in [
        ("workloaddeployment-dfw.yaml", "DFW", 2),
        ("workloaddeployment-ord.yaml", "ORD", 1),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/examples")
            .join(file);
        let text = std::fs::read_to_string(&path).expect(file);
        let documents = yaml::documents(&text).expect(file);
        let [document] = documents.as_slice() else {
            panic!("{file}: one document, found {}", documents.len())
        };
        let object = Object::parse(document.to_json()).expect(file);

        assert_eq!(object.label("topology.datum.net/city-code"), Some(city), "{file}");
        assert_eq!(object.text("/spec/cityCode"), Ok(Some(city)), "{file}");
        let found = WorkloadDeployment::replicas(&object).expect(file);
        assert_eq!(found.replicas, replicas, "{file}");
        assert!(
            found.requirements.is_some(),
            "{file}: the catalogue knows the instance type"
        );
        assert_eq!(
            WorkloadDeployment::health(&object),
            Ok(false),
            "{file}: nothing runs yet"
        );
        assert_eq!(
            WorkloadDeployment::status(&object).map(|status| status.to_text()),
            Ok("{}".to_owned()),
            "{file}"
        );
    }
}

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
            (Operation::Retain, true),
            (Operation::AggregateStatus, true),
            (Operation::InterpretStatus, true),
            (Operation::InterpretHealth, true),
            (Operation::InterpretDependency, true),
        ]
    );
}
