//! Does another client answer instead?

use super::{
    Check, CheckResult, Id,
    observe::{Observed, questions},
};
use crate::register::{
    plan::Rule,
    shadow::{self, Shadow},
};

pub(super) fn checks(observed: &Observed) -> Vec<Check> {
    let ids = [Id::PrecedenceCustomization, Id::PrecedenceWebhook];
    let Some(webhook) = observed.webhook() else {
        return ids.map(|id| Check::skip(id, "our webhook is not registered")).into();
    };
    let rules: Vec<_> = questions(webhook)
        .map(|(kind, operation)| Rule {
            kind,
            operations: vec![operation],
        })
        .collect();
    let judged = |id, shadows: Vec<Shadow>| {
        let list = shadows.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Check::new(
            id,
            if list.is_empty() {
                CheckResult::Pass("none".to_owned())
            } else {
                CheckResult::Fail(list)
            },
        )
    };
    let customizations = match &observed.customizations {
        Ok(found) => judged(Id::PrecedenceCustomization, shadow::by_customization(&rules, found)),
        Err(_) => Check::skip(Id::PrecedenceCustomization, "the customizations could not be read"),
    };
    let configurations = observed.configurations.as_deref().unwrap_or_default();
    let (config, name) = (&observed.names.config_name, &observed.names.webhook_name);
    vec![
        customizations,
        judged(
            Id::PrecedenceWebhook,
            shadow::by_webhook(&rules, configurations, config, name),
        ),
    ]
}
