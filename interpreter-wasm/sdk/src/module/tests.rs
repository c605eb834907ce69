use super::*;
use crate::types::PatchOp;

struct Widget;

impl Interpreter for Widget {
    fn revise(object: &mut Object, replicas: i32) -> Result<()> {
        object.set("/spec/replicas", replicas)
    }

    fn retain(desired: &mut Object, observed: &Object) -> Result<()> {
        if let Some(kept) = observed.int("/spec/replicas")? {
            desired.set("/spec/replicas", kept)?;
        }
        Ok(())
    }

    fn aggregate(object: &mut Object, items: &[StatusItem]) -> Result<()> {
        let mut ready = 0;
        for status in items.iter().filter_map(|item| item.status.as_ref()) {
            ready += status.int("/ready")?.unwrap_or(0);
        }
        object.set("/status/ready", ready)
    }
}

const MODULE: ModuleDef = ModuleDef {
    name: "widget-interpreter",
    version: "1.0.0",
    targets: &[TargetDef {
        group: "example.io",
        version: "v1",
        kind: "Widget",
        operations: &[Implemented {
            operation: Operation::ReviseReplica,
            register: false,
        }],
        functions: Functions::of::<Widget>(),
    }],
};

fn input(object: &str) -> Input {
    Input {
        kind: Gvk::of("example.io/v1", "Widget"),
        object: Object::parse(object).unwrap(),
        observed: None,
        replicas: 3,
        items: Vec::new(),
    }
}

fn item(status: &str) -> StatusItem {
    StatusItem {
        cluster_name: String::from("dfw"),
        status: Some(Json::parse(status).unwrap()),
        applied: true,
        applied_message: String::new(),
        health: None,
    }
}

#[test]
fn describes_itself() {
    let description = MODULE.describe();
    assert_eq!(
        (description.name.as_str(), description.version.as_str()),
        ("widget-interpreter", "1.0.0")
    );
    assert_eq!(description.targets[0].kind.to_string(), "example.io/v1 Widget");
    assert_eq!(description.targets[0].operations, MODULE.targets[0].operations);
}

#[test]
fn an_edit_becomes_a_patch_and_no_edit_none() {
    let path = String::from("/spec/replicas");
    let replaced = Change::Patch(vec![PatchOp::Replace { path, value: 3.into() }]);
    let run = |object| MODULE.run(Operation::ReviseReplica, &input(object));
    assert_eq!(run(r#"{"spec": {"replicas": 2}}"#), Ok(Output::Change(replaced)));
    assert_eq!(
        run(r#"{"spec": {"replicas": 3}}"#),
        Ok(Output::Change(Change::Unchanged))
    );
}

#[test]
fn what_aggregate_leaves_out_is_counted_beside_the_change() {
    let mut functions = Functions::of::<Widget>();
    functions.aggregate = |object, items| {
        object.leave_out(u32::try_from(items.len()).unwrap());
        object.leave_out(1);
        Ok(())
    };
    let aggregation = functions.aggregated(&Object::parse("{}").unwrap(), &[item("{}"), item("{}")]);
    let expected = Aggregation {
        change: Change::Unchanged,
        left_out: 3,
    };
    assert_eq!(aggregation, Ok(expected));
}

#[test]
fn an_operation_that_is_not_written_is_unsupported() {
    for operation in [
        Operation::InterpretReplica,
        Operation::InterpretComponent,
        Operation::InterpretStatus,
        Operation::InterpretHealth,
        Operation::InterpretDependency,
    ] {
        assert_eq!(MODULE.run(operation, &input("{}")), Err(Error::Unsupported));
    }
    let other = Input {
        kind: Gvk::of("example.io/v2", "Widget"),
        ..input("{}")
    };
    assert_eq!(MODULE.run(Operation::ReviseReplica, &other), Err(Error::Unsupported));
    assert!(matches!(
        MODULE.run(Operation::Retain, &input("{}")),
        Err(Error::Failed(_))
    ));
}

#[test]
fn errors_name_the_object_that_they_are_in() {
    let observed = Object::parse(r#"{"spec": {"replicas": "x"}}"#).unwrap();
    let retain = Input {
        observed: Some(observed),
        ..input("{}")
    };
    let message = r#"expected an integer, found "x""#;
    assert_eq!(
        MODULE.run(Operation::Retain, &retain),
        Err(Error::invalid("/observedObject/spec/replicas", message))
    );
    let aggregate = Input {
        items: vec![item(r#"{"ready": 1}"#), item(r#"{"ready": "x"}"#)],
        ..input("{}")
    };
    assert_eq!(
        MODULE.run(Operation::AggregateStatus, &aggregate),
        Err(Error::invalid("/aggregatedStatus/1/status/ready", message))
    );
}
