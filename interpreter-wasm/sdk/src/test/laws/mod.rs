//! Laws that every module has to keep, whatever its kinds mean (they are what Karmada relies on):
//!
//! | law | says |
//! | --- | --- |
//! | `<operation>_total` | an answer or an error for every object, never a panic; the same question, the same answer |
//! | `replicas_valid`, `components_valid`, `dependencies_valid`, `status_is_an_object` | Karmada can take the answer |
//! | `revise_then_replicas` | after ReviseReplica(n), InterpretReplica answers n |
//! | `retain_idempotent`, `retain_identity` | a second Retain changes nothing; nor does one of equal objects |
//! | `aggregate_idempotent`, `aggregate_any_order` | the same items, no second write; the order of items does not matter |
//! | `revise_allowed`, `retain_allowed`, `aggregate_allowed` | the answer touches only what the host lets through |
//!
//! They are tried on every object that the test files mention, and on what becomes of it when one of its fields is
//! missing, null or of another type. When a law is broken, the smallest document that still breaks it is shown, ready to
//! be pasted into a test file.

mod rules;
mod seen;

use std::fmt;

use crate::Operation;
use crate::module::Run;
use crate::test::cases::{guarded, input_of};
use crate::test::yaml::{Node, to_yaml};
use crate::types::{Description, Gvk};

pub use seen::Seen;

/// So many odd documents are tried for one law; where there are more, evenly spread ones are taken.
const MAX_MUTANTS: usize = 2_000;

/// One law, for the kinds of a module that it can be asked of.
#[derive(Debug, Clone)]
pub struct Law {
    /// `retain_idempotent`.
    pub name: String,
    /// What the law says, in a sentence.
    pub says: &'static str,
    /// The operation that a pasted document asks for.
    pub operation: Operation,
    kinds: Vec<Gvk>,
    rule: rules::Rule,
}

/// A law that does not hold.
#[derive(Debug, Clone)]
pub struct Broken {
    /// What the law says.
    pub says: &'static str,
    /// What happened instead.
    pub message: String,
    /// The smallest document found that breaks it, as YAML.
    pub document: String,
    /// Where the object that it was made from stands: `tests/health.yaml:5`.
    pub origin: String,
}

impl std::error::Error for Broken {}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            says,
            message,
            document,
            origin,
        } = self;
        writeln!(formatter, "{origin}: law broken ({says}): {message}")?;
        write!(
            formatter,
            "the smallest object that breaks it, ready to be pasted into a test file:\n---\n{document}"
        )
    }
}

/// The laws that the module's operations can be held to.
pub fn of(description: &Description) -> Vec<Law> {
    rules::ALL
        .iter()
        .filter_map(|rule| {
            let has = |operation: &Operation, kind: &Gvk| {
                description.targets.iter().any(|target| {
                    target.kind == *kind && target.operations.iter().any(|known| known.operation == *operation)
                })
            };
            let kinds: Vec<Gvk> = description
                .targets
                .iter()
                .map(|target| target.kind.clone())
                .filter(|kind| rule.needs.iter().all(|operation| has(operation, kind)))
                .collect();
            (!kinds.is_empty()).then(|| Law {
                name: rule.name.to_owned(),
                says: rule.says,
                operation: rule.needs.first().copied().unwrap_or(Operation::InterpretHealth),
                kinds,
                rule: *rule,
            })
        })
        .collect()
}

impl Law {
    /// Tries the law on everything that was seen.
    ///
    /// # Errors
    /// The first document that breaks it, made as small as possible.
    pub fn check(&self, module: &dyn Run, seen: &Seen) -> Result<(), Broken> {
        let seeds = seen.questions(self.operation, &self.kinds);
        for (origin, document) in &seeds {
            self.hold(module, origin, document)?;
        }
        for (index, document) in seen::spread(&seeds, MAX_MUTANTS) {
            let origin = seeds.get(index).map_or("", |(origin, _)| origin.as_str());
            self.hold(module, origin, &document)?;
        }
        Ok(())
    }

    fn hold(&self, module: &dyn Run, origin: &str, document: &Node) -> Result<(), Broken> {
        if self.breaks(module, document).is_none() {
            return Ok(());
        }
        let smallest = seen::smallest(document, |smaller| self.breaks(module, smaller).is_some());
        let message = self.breaks(module, &smallest).unwrap_or_default();
        Err(Broken {
            says: self.says,
            message,
            document: self.pasteable(&smallest),
            origin: origin.to_owned(),
        })
    }

    /// What is wrong when the document is asked; `None` also for a document that is no question.
    fn breaks(&self, module: &dyn Run, document: &Node) -> Option<String> {
        let input = input_of(document, self.operation)?;
        if !self.kinds.contains(&input.kind) {
            return None;
        }
        guarded(|| (self.rule.holds)(module, self.operation, &input))
            .unwrap_or_else(Err)
            .err()
    }

    fn pasteable(&self, document: &Node) -> String {
        let head = Node::made_fields([
            ("name", Node::made_text(format!("breaks {}", self.name))),
            ("operation", Node::made_text(self.operation.as_str())),
        ]);
        format!("{}{}", to_yaml(&head), to_yaml(document))
    }
}

#[cfg(test)]
mod tests;
