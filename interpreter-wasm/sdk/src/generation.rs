//! `observedGeneration`, translated from the member's object to the template.
//!
//! A number that a member observed speaks of the member's object and means nothing on another plane. As Karmada's
//! built-in interpreters do, InterpretStatus notes beside the status which generation the member's object has and which
//! generation of the template it was made from; AggregateStatus then sets the template's own generation where every
//! member has observed its newest spec, and that spec is the template's newest.

use crate::{Json, Object, Result, StatusItem};

/// Annotation that Karmada writes on the member's object: generation of the template that it was made from.
pub const TEMPLATE_GENERATION_ANNOTATION: &str = "resourcetemplate.karmada.io/generation";

/// Pointer in an interpreted status: generation of the member's object.
pub const GENERATION: &str = "/generation";

/// Pointer in an interpreted status: generation of the template that the member's object was made from.
pub const TEMPLATE_GENERATION: &str = "/resourceTemplateGeneration";

/// Pointer in a status: generation that the writer of the status had seen.
pub const OBSERVED_GENERATION: &str = "/observedGeneration";

/// For InterpretStatus: notes in `status` the generations of the member's `object`.
///
/// An annotation that is no number is skipped, as is a generation that is absent: then nothing is translated.
pub fn note(status: &mut Json, object: &Object) -> Result<()> {
    if let Some(generation) = object.generation()? {
        status.set(GENERATION, generation)?;
    }
    let template = object
        .annotation(TEMPLATE_GENERATION_ANNOTATION)
        .and_then(|text| text.parse::<i64>().ok());
    if let Some(template) = template {
        status.set(TEMPLATE_GENERATION, template)?;
    }
    Ok(())
}

/// For AggregateStatus: the `observedGeneration` of the template, given its generation and what it says now.
///
/// `items` are those that carry knowledge; without one the old value stays.
pub fn translate(template: &Object, items: &[&StatusItem]) -> Result<Option<i64>> {
    let generation = template.generation()?;
    let mut all = !items.is_empty() && generation.is_some();
    for item in items {
        // Every item is read, so that an odd one is found whatever the order.
        all &= has_observed(item, generation)?;
    }
    if all {
        Ok(generation)
    } else {
        template.int("/status/observedGeneration")
    }
}

/// Whether the member has observed its newest spec, and that spec was made from the template's `generation`.
pub fn has_observed(item: &StatusItem, generation: Option<i64>) -> Result<bool> {
    let Some(status) = &item.status else { return Ok(false) };
    let own = status.int(GENERATION)?;
    Ok(generation.is_some()
        && status.int(TEMPLATE_GENERATION)? == generation
        && own.is_some()
        && status.int(OBSERVED_GENERATION)? == own)
}

#[cfg(test)]
mod tests {
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
}
