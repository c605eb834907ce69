use popcell_api::annotations;
use serde_json::json;

use super::*;
use crate::testing::object;

fn instance_type(object_name: &str, created: &str, spec: &Value) -> Object {
    object(
        json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "InstanceType",
        "metadata": { "name": object_name, "creationTimestamp": created }, "spec": spec }),
    )
}

fn spec(name: &str, cpu: &str, memory: &str) -> Value {
    json!({ "name": name, "cpu": cpu, "memory": memory })
}

fn catalogue(types: &[(&str, &str, &str)]) -> Catalogue {
    let objects: Vec<Object> = types
        .iter()
        .map(|(name, cpu, memory)| instance_type(&name.replace('/', "-"), EARLY, &spec(name, cpu, memory)))
        .collect();
    Catalogue::of(&objects.iter().collect::<Vec<_>>()).0
}

const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-02T00:00:00Z";

#[test]
fn the_key_is_the_one_that_modules_read() {
    assert_eq!(annotations::INSTANCE_TYPE_SIZE, instance_types::ANNOTATION);
}

#[test]
fn without_objects_there_is_the_built_in_type_and_with_some_only_they_are() {
    let (none, ignored) = Catalogue::of(&[]);
    assert_eq!((none.names(), ignored), (vec!["datumcloud/d1-standard-2"], vec![]));
    let said = catalogue(&[("datumcloud/d1-standard-2", "1", "2Gi")]);
    assert_eq!(none.size(BUILT_IN), said.size(BUILT_IN));
    // Where an object says so, another size that was kept counts no more.
    assert_eq!(none.differences(&said), [BUILT_IN].into());
    assert_eq!(catalogue(&[("acme/large", "4", "8Gi")]).names(), ["acme/large"]);
}

#[test]
fn of_two_with_one_name_the_older_counts_and_what_cannot_be_read_is_ignored_by_name() {
    let objects = [
        instance_type("b", LATE, &spec("acme/large", "4", "8Gi")),
        instance_type("z", EARLY, &spec("acme/large", "2", "8Gi")),
        instance_type("huge", EARLY, &spec("acme/huge", "1M", "8Gi")),
        instance_type("zero", EARLY, &spec("acme/zero", "0", "8Gi")),
        instance_type("odd", EARLY, &spec("a b", "1", "8Gi")),
        instance_type("nameless", EARLY, &json!({ "cpu": 1, "memory": 1 })),
        instance_type(
            "number",
            EARLY,
            &json!({ "name": "acme/number", "cpu": 1, "memory": 1024 }),
        ),
        instance_type("none", EARLY, &json!(null)),
    ];
    let (read, ignored) = Catalogue::of(&objects.iter().collect::<Vec<_>>());
    assert_eq!(read.names(), ["acme/large", "acme/number"]);
    assert_eq!(read.size("acme/large"), TypeSize::read("2", "8Gi"));
    let ignored: Vec<(&str, &str)> = ignored
        .iter()
        .map(|one| (one.object.as_str(), one.why.as_str()))
        .collect();
    let (name, size) = (
        "spec.name is no name of a type",
        "spec.cpu and spec.memory are not above 0 and within their bounds",
    );
    assert_eq!(
        ignored,
        [
            ("huge", size),
            ("nameless", name),
            ("none", name),
            ("odd", name),
            ("zero", size),
            ("b", "InstanceType z is older and has the same spec.name acme/large"),
        ]
    );
}

#[test]
fn so_many_types_count_and_the_oldest_first() {
    let mut objects: Vec<Object> = (0..MOST)
        .map(|number| {
            instance_type(
                &format!("t{number:03}"),
                EARLY,
                &spec(&format!("a/{number:03}"), "1", "1Gi"),
            )
        })
        .collect();
    objects.insert(0, instance_type("a", LATE, &spec("a/new", "1", "1Gi")));
    let (read, ignored) = Catalogue::of(&objects.iter().collect::<Vec<_>>());
    assert_eq!((read.names().len(), read.size("a/new")), (MOST, None));
    let why = "there are 200 older ones, and no more count".to_owned();
    let object = "a".to_owned();
    assert_eq!(ignored, [Ignored { object, why }]);
}

#[test]
fn two_catalogues_differ_in_what_was_added_removed_and_resized() {
    let one = catalogue(&[("a/1", "1", "1Gi"), ("a/2", "1", "1Gi"), ("a/3", "1", "1Gi")]);
    let other = catalogue(&[("a/1", "1000m", "1024Mi"), ("a/2", "2", "1Gi"), ("a/4", "1", "1Gi")]);
    assert_eq!(one.differences(&other), ["a/2", "a/3", "a/4"].into());
    assert_eq!(one.differences(&one), [].into());
}

#[test]
fn what_goes_with_an_object_is_what_the_catalogue_says_else_what_it_has() {
    let of = |name: &str| json!({ "runtime": { "resources": { "instanceType": name } } });
    let known = catalogue(&[("acme/large", "4", "8Gi"), ("datumcloud/d1-standard-2", "1", "2Gi")]);
    let without = catalogue(&[("acme/other", "4", "8Gi")]);
    let (known, assumed) = (Observed::Known(&known), Catalogue::default());
    let assumed = Observed::Known(&assumed);
    let (without, unknown) = (Observed::Known(&without), Observed::Unknown);
    let (large, built_in) = ("acme/large", "datumcloud/d1-standard-2");
    let text = || Some("acme/large cpu=4 memory=8Gi".to_owned());
    let not_found = |name: &str| Err(Unsized::NotFound(name.to_owned()));
    for (name, catalogue, kept, expected) in [
        (large, known, None, Ok(text())),
        (built_in, known, None, Ok(None)),
        // What another client wrote is no size beside what the catalogue says.
        (
            large,
            known,
            Some((large, Some("acme/large cpu=1m memory=1Mi"))),
            Ok(text()),
        ),
        (
            built_in,
            known,
            Some((built_in, Some("datumcloud/d1-standard-2 cpu=1m memory=1Mi"))),
            Ok(None),
        ),
        (large, known, Some((large, Some("nonsense"))), Ok(text())),
        // Removed from the catalogue, or the catalogue is not known.
        (
            large,
            without,
            Some((large, Some("acme/large cpu=4 memory=8Gi"))),
            Ok(text()),
        ),
        (
            large,
            unknown,
            Some((large, Some("acme/large cpu=4 memory=8Gi"))),
            Ok(text()),
        ),
        (built_in, without, Some((built_in, None)), Ok(None)),
        (built_in, unknown, Some((built_in, None)), Ok(None)),
        // Without objects the built-in size is assumed: what an object has of another one stays, if it can be read.
        (built_in, assumed, None, Ok(None)),
        (built_in, assumed, Some((built_in, None)), Ok(None)),
        (
            built_in,
            assumed,
            Some((built_in, Some("datumcloud/d1-standard-2 cpu=2 memory=4Gi"))),
            Ok(Some("datumcloud/d1-standard-2 cpu=2 memory=4Gi".to_owned())),
        ),
        (built_in, assumed, Some((built_in, Some("nonsense"))), Ok(None)),
        (
            built_in,
            assumed,
            Some((built_in, Some("acme/large cpu=4 memory=8Gi"))),
            Ok(None),
        ),
        (
            large,
            assumed,
            Some((large, Some("acme/large cpu=4 memory=8Gi"))),
            Ok(text()),
        ),
        (large, assumed, None, not_found(large)),
        // Nothing is known of it.
        (large, without, None, not_found(large)),
        (large, unknown, None, Err(Unsized::Unknown)),
        (built_in, without, None, not_found(built_in)),
        (built_in, unknown, None, Err(Unsized::Unknown)),
        (large, without, Some((large, None)), not_found(large)),
        (large, without, Some((large, Some("nonsense"))), not_found(large)),
        (
            large,
            without,
            Some((large, Some("acme/other cpu=4 memory=8Gi"))),
            not_found(large),
        ),
        // It was of another type before.
        (
            large,
            without,
            Some((built_in, Some("acme/large cpu=4 memory=8Gi"))),
            not_found(large),
        ),
        ("", without, None, Ok(None)),
    ] {
        let before = kept.map(|(name, type_size)| (of(name), type_size));
        let kept = before.as_ref().map(|(spec, type_size)| Described {
            spec,
            type_size: *type_size,
        });
        assert_eq!(
            annotation(Some(&of(name)), catalogue, kept),
            expected,
            "{name} {kept:?}"
        );
    }
    for spec in [
        None,
        Some(&json!(null)),
        Some(&json!({ "runtime": { "resources": { "instanceType": 7 } } })),
    ] {
        assert_eq!(annotation(spec, without, None), Ok(None));
    }
}
