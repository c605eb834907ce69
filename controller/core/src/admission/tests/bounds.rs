//! How many environment variables and network rules a template may have, and how large.

use super::*;

const CONTAINERS: &str = "/spec/template/spec/runtime/sandbox/containers";
const AT: &str = "spec.template.spec.runtime.sandbox.containers";

fn with_env(env: &[Value]) -> Value {
    let mut whole = workload();
    set(&mut whole, &format!("{CONTAINERS}/0/env"), json!(env));
    whole
}

fn variable(number: usize, bytes: usize) -> Value {
    let name = format!("V{number}");
    json!({ "name": name, "value": "x".repeat(bytes - name.len()) })
}

#[test]
fn a_container_has_so_many_environment_variables() {
    let env = |count: usize| (0..count).map(|number| variable(number, 10)).collect::<Vec<_>>();
    assert_eq!(faults(None, with_env(&env(1000))), Vec::<String>::new());
    assert_eq!(
        faults(None, with_env(&env(1001))),
        [format!("{AT}[0].env: Too many: 1001: must have at most 1000 items")]
    );
}

#[test]
fn an_environment_variable_is_no_larger_than_a_process_can_be_given() {
    assert_eq!(faults(None, with_env(&[variable(0, 131_070)])), Vec::<String>::new());
    let found = faults(None, with_env(&[variable(0, 2), variable(1, 131_071)]));
    let expected =
        format!("{AT}[0].env[1].value: Invalid value: 131071: bytes of name and value must be at most 131070");
    assert!(matches!(&found[..], [one] if one.starts_with(&expected)), "{found:?}");
}

#[test]
fn environment_variables_of_all_containers_fit_together() {
    let whole = |last: usize| {
        let mut whole = with_env(&[variable(0, 100_000), variable(1, 100_000)]);
        let mut second = whole.pointer(&format!("{CONTAINERS}/0")).unwrap().clone();
        second["name"] = json!("other");
        second["env"] = json!([variable(0, last)]);
        whole
            .pointer_mut(CONTAINERS)
            .unwrap()
            .as_array_mut()
            .unwrap()
            .push(second);
        whole
    };
    assert_eq!(faults(None, whole(62_144)), Vec::<String>::new());
    let found = faults(None, whole(62_145));
    let expected = format!(
        "{AT}: Invalid value: 262145: bytes of the variables of all containers together, names included, must be at most 262144"
    );
    assert!(
        matches!(&found[..], [one] if one.starts_with(&expected) && one.contains("ConfigMap or Secret")),
        "{found:?}"
    );
    // What refers to others counts, too.
    let from = |number: usize| json!({ "name": format!("V{number}"), "valueFrom": { "secretKeyRef": { "name": "s", "key": "k".repeat(1000) } } });
    let many: Vec<Value> = (0..300).map(from).collect();
    let found = faults(None, with_env(&many));
    assert!(matches!(&found[..], [one] if one.contains("together")), "{found:?}");
}

#[test]
fn sources_of_variables_are_so_many_and_fit_together() {
    let with = |containers: usize, sources: usize, prefix: usize| {
        let source = json!({ "secretRef": { "name": "s" }, "prefix": "p".repeat(prefix) });
        let mut whole = workload();
        let one = |number: usize| json!({ "name": format!("c{number}"), "image": "i", "envFrom": vec![source.clone(); sources] });
        set(&mut whole, CONTAINERS, (0..containers).map(one).collect());
        set(&mut whole, "/spec/template/spec/volumes", json!([]));
        faults(None, whole)
    };
    assert_eq!(with(1, 100, 1), Vec::<String>::new());
    assert_eq!(
        with(1, 101, 1),
        [format!("{AT}[0].envFrom: Too many: 101: must have at most 100 items")]
    );
    assert_eq!(with(8, 100, 256), Vec::<String>::new());
    let found = with(9, 100, 256);
    assert!(
        matches!(&found[..], [one] if one.starts_with(&format!("{AT}: Invalid value: ")) && one.contains("together")),
        "{found:?}"
    );
}

#[test]
fn an_interface_has_so_many_rules_and_a_rule_so_many_parts() {
    const INTERFACE: &str = "/spec/template/spec/networkInterfaces/0";
    const POLICY: &str = "spec.template.spec.networkInterfaces[0].networkPolicy.ingress";
    let with = |ingress: Value| {
        let mut whole = workload();
        set(
            &mut whole,
            &format!("{INTERFACE}/networkPolicy"),
            json!({ "ingress": ingress }),
        );
        faults(None, whole)
    };
    let peer = json!({ "ipBlock": { "cidr": "10.0.0.0/8" } });
    let except = |count: usize| json!({ "ipBlock": { "cidr": "10.0.0.0/8", "except": vec!["10.1.0.0/16"; count] } });
    for (ingress, place) in [
        ((|count| json!(vec![json!({}); count])) as fn(usize) -> Value, ""),
        (
            |count| json!([{ "ports": vec![json!({ "port": 80 }); count] }]),
            "[0].ports",
        ),
    ] {
        assert_eq!(with(ingress(100)), Vec::<String>::new());
        assert_eq!(
            with(ingress(101)),
            [format!("{POLICY}{place}: Too many: 101: must have at most 100 items")]
        );
    }
    assert_eq!(with(json!([{ "from": vec![peer.clone(); 100] }])), Vec::<String>::new());
    let found = with(json!([{}, { "from": vec![peer; 101] }]));
    assert_eq!(
        found,
        [format!("{POLICY}[1].from: Too many: 101: must have at most 100 items")]
    );
    assert_eq!(with(json!([{ "from": [except(100)] }])), Vec::<String>::new());
    let found = with(json!([{ "from": [except(101)] }]));
    assert_eq!(
        found,
        [format!(
            "{POLICY}[0].from[0].ipBlock.except: Too many: 101: must have at most 100 items"
        )]
    );
}

#[test]
fn what_was_there_before_is_kept_while_no_more_runs() {
    let large = with_env(&[variable(0, 200_000)]);
    let mut fewer = large.clone();
    fewer["spec"]["placements"][0]["cityCodes"] = json!([]);
    let found = faults(Some(large), fewer);
    assert!(found.iter().all(|one| !one.contains("env")), "{found:?}");
}
