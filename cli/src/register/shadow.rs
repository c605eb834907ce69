//! Who answers instead of us. Order of Karmada's look-up: customizations, then webhooks by `<config>/<webhook>`; the first
//! that matches is the only one that is asked (pkg/resourceinterpreter/interpreter.go).

use std::fmt;

use itertools::Itertools as _;
use popcell_protocol::{Gvk, Operation};

use crate::planes::karmada::{Configuration, Customization};

/// One operation that another interpreter answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadow {
    /// The kind.
    pub kind: Gvk,
    /// The operation.
    pub operation: Operation,
    /// Who takes it.
    pub by: Taker,
}

/// Who takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taker {
    /// A ResourceInterpreterCustomization of this name.
    Customization(String),
    /// A webhook: configuration, webhook.
    Webhook(String, String),
}

impl fmt::Display for Shadow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, operation, by } = self;
        write!(f, "{operation} of {kind} is taken by ")?;
        match by {
            Taker::Customization(name) => write!(f, "ResourceInterpreterCustomization {name}"),
            Taker::Webhook(config, webhook) => write!(
                f,
                "webhook {webhook} of ResourceInterpreterWebhookConfiguration {config}"
            ),
        }
    }
}

/// What of that which Karmada asks us is taken by a customization.
pub fn by_customization(asked: &[(Gvk, Operation)], customizations: &[Customization]) -> Vec<Shadow> {
    shadows(asked, |kind, operation| {
        let takes = |other: &&Customization| other.kind == *kind && other.operations.contains(&operation);
        customizations
            .iter()
            .find(takes)
            .map(|other| Taker::Customization(other.name.clone()))
    })
}

/// What of that is taken by a webhook before ours.
pub fn by_webhook(
    asked: &[(Gvk, Operation)],
    configurations: &[Configuration],
    config: &str,
    webhook: &str,
) -> Vec<Shadow> {
    let ours = format!("{config}/{webhook}");
    let webhooks = configurations
        .iter()
        .flat_map(|other| other.webhooks.iter().map(move |entry| (&other.name, entry)));
    let before = webhooks
        .map(|(config, entry)| (format!("{config}/{}", entry.name), config, entry))
        .filter(|(name, ..)| *name < ours)
        .sorted_by(|one, other| one.0.cmp(&other.0))
        .collect_vec();
    shadows(asked, |kind, operation| {
        let mut taking = before
            .iter()
            .filter(|(.., entry)| entry.rules.iter().any(|rule| rule.matches(kind, operation)));
        let (_, config, entry) = taking.next()?;
        Some(Taker::Webhook(String::clone(config), entry.name.clone()))
    })
}

fn shadows(asked: &[(Gvk, Operation)], taker: impl Fn(&Gvk, Operation) -> Option<Taker>) -> Vec<Shadow> {
    let shadow = |(kind, operation): &(Gvk, Operation)| {
        Some(Shadow {
            kind: kind.clone(),
            operation: *operation,
            by: taker(kind, *operation)?,
        })
    };
    asked.iter().filter_map(shadow).collect()
}

#[cfg(test)]
mod tests {
    use popcell_core::object::Object;

    use super::*;

    fn read(text: &str) -> Vec<Object> {
        let documents = popcell_sdk::test::yaml::documents(text).unwrap();
        documents
            .iter()
            .map(|node| serde_json::from_str(&node.to_json()).unwrap())
            .collect()
    }

    fn asked() -> Vec<(Gvk, Operation)> {
        let kind = Gvk::new("compute.datumapis.com", "v1alpha", "WorkloadDeployment");
        let operations = [
            Operation::InterpretReplica,
            Operation::InterpretStatus,
            Operation::InterpretHealth,
        ];
        operations.map(|operation| (kind.clone(), operation)).into()
    }

    #[test]
    fn a_customization_takes_only_the_operations_that_it_has() {
        let found: Vec<_> = read(include_str!("../../tests/fixtures/customizations.yaml"))
            .iter()
            .map(Customization::read)
            .collect();
        let shadows = by_customization(&asked(), &found);
        let shown: Vec<_> = shadows.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "InterpretHealth of compute.datumapis.com/v1alpha WorkloadDeployment is taken by ResourceInterpreterCustomization leftover"
            ]
        );
    }

    #[test]
    fn the_first_name_wins_and_later_ones_do_not_matter() {
        let found: Vec<_> = read(include_str!("../../tests/fixtures/configurations.yaml"))
            .iter()
            .map(Configuration::read)
            .collect();
        let at = |config: &str| {
            by_webhook(&asked(), &found, config, "interpreter.popcell.datumapis.com")
                .iter()
                .map(|shadow| (shadow.operation, shadow.by.clone()))
                .collect::<Vec<_>>()
        };
        let wild = || Taker::Webhook("another".into(), "all.example.org".into());
        assert_eq!(
            at("popcell"),
            [
                (
                    Operation::InterpretReplica,
                    Taker::Webhook("popcell".into(), "a.example.org".into())
                ),
                (Operation::InterpretStatus, wild()),
                (Operation::InterpretHealth, wild())
            ]
        );
        assert_eq!(at("a"), [], "both stand behind a/");
    }

    #[test]
    fn our_own_entry_does_not_shadow_us_but_a_neighbour_in_the_object_may() {
        let found: Vec<_> = read(include_str!("../../tests/fixtures/configurations.yaml"))
            .iter()
            .map(Configuration::read)
            .collect();
        let own: Vec<_> = found.into_iter().filter(|other| other.name == "popcell").collect();
        let shadows = by_webhook(&asked(), &own, "popcell", "interpreter.popcell.datumapis.com");
        assert_eq!(shadows.len(), 1);
        assert_eq!(shadows[0].by, Taker::Webhook("popcell".into(), "a.example.org".into()));
    }
}
