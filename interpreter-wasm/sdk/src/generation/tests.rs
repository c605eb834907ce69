use super::*;

fn object(text: &str) -> Object {
    Object::parse(text).unwrap()
}

fn member(status: &str) -> StatusItem {
    StatusItem {
        cluster_name: String::from("dfw"),
        status: Some(Json::parse(status).unwrap()),
        applied: true,
        applied_message: String::new(),
        health: None,
    }
}

#[test]
fn the_member_notes_both_generations() {
    let seen = object(
        r#"{"metadata": {"generation": 7, "annotations": {"resourcetemplate.karmada.io/generation": "4"}}, "status": {"observedGeneration": 7}}"#,
    );
    let mut status = seen.get("/status").cloned().unwrap();
    note(&mut status, &seen).unwrap();
    assert_eq!(
        status.to_text(),
        r#"{"observedGeneration":7,"generation":7,"resourceTemplateGeneration":4}"#
    );
}

#[test]
fn a_generation_that_is_absent_or_no_number_is_not_noted() {
    for metadata in [
        "{}",
        r#"{"annotations": {"resourcetemplate.karmada.io/generation": "four"}}"#,
    ] {
        let mut status = Json::object::<&str, Json>([]);
        note(&mut status, &object(&format!(r#"{{"metadata": {metadata}}}"#))).unwrap();
        assert_eq!(status.to_text(), "{}");
    }
}

#[test]
fn the_template_has_observed_what_every_member_has() {
    let template = object(r#"{"metadata": {"generation": 4}, "status": {"observedGeneration": 3}}"#);
    let current = member(r#"{"generation": 7, "resourceTemplateGeneration": 4, "observedGeneration": 7}"#);
    for (other, expected) in [
        (&current, 4),
        (
            &member(r#"{"generation": 8, "resourceTemplateGeneration": 4, "observedGeneration": 7}"#),
            3,
        ),
        (
            &member(r#"{"generation": 7, "resourceTemplateGeneration": 3, "observedGeneration": 7}"#),
            3,
        ),
        (&member(r#"{"observedGeneration": 4}"#), 3),
        (&member("{}"), 3),
    ] {
        assert_eq!(
            translate(&template, &[&current, other]),
            Ok(Some(expected)),
            "{other:?}"
        );
    }
    assert_eq!(
        translate(&template, &[]),
        Ok(Some(3)),
        "nobody knows anything: the old value stays"
    );
    assert_eq!(translate(&object("{}"), &[&current]), Ok(None));
    assert!(translate(&template, &[&member(r#"{"generation": "x"}"#)]).is_err());
}
