use super::*;

#[test]
fn what_every_object_has_is_read_shortly() {
    let object = Object::parse(
        r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns", "generation": 3,
            "labels": {"a.io/b": "c"}, "annotations": {"x": "y"}}}"#,
    )
    .unwrap();
    assert_eq!(
        (object.api_version(), object.kind(), object.name()),
        ("v1", "ConfigMap", "a")
    );
    assert_eq!((object.namespace(), object.generation()), (Some("ns"), Ok(Some(3))));
    assert_eq!(
        (object.label("a.io/b"), object.label("a"), object.annotation("x")),
        (Some("c"), None, Some("y"))
    );
}

#[test]
fn an_empty_object_answers_everything() {
    let object = Object::parse("{}").unwrap();
    assert_eq!(
        (object.api_version(), object.kind(), object.name(), object.namespace()),
        ("", "", "", None)
    );
    assert_eq!(
        (object.generation(), object.label("a"), object.annotation("a")),
        (Ok(None), None, None)
    );
}

#[test]
fn only_objects_are_objects() {
    for (text, found) in [("[]", "an array"), ("null", "null"), ("\"x\"", "\"x\"")] {
        let message = format!("expected an object, found {found}");
        assert_eq!(Object::parse(text), Err(Error::invalid("", message)));
    }
    assert!(matches!(Object::parse("{"), Err(Error::InvalidObject { .. })));
}
