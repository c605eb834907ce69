//! The SDK's patches, applied by Karmada's own library.

use anyhow::{Context, Result, ensure};
use popcell_suites::dice::Dice;
use serde_json::{Map, Value, json};

use crate::environment::Environment;
use crate::objects::{item, row};

/// Keys that a pointer has to escape, or that a library may take for something else.
const KEYS: [&str; 9] = ["a", "b", "", "/", "x/y", "~", "~1", "0", "\u{e9}\u{1f980}"];

/// What the SDK says to have changed makes the new status of the old one: generated pairs of both.
pub(crate) async fn odd_keys(environment: &Environment, _: &str) -> Result<()> {
    let mut generator = Generator(Dice::of(7));
    for number in 0..300 {
        let (before, after) = (generator.status(), generator.status());
        let deployment = json!({
            "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
            "metadata": { "name": "a", "namespace": "ns" },
            "spec": {}, "status": before,
        });
        let mut row = row("AggregateStatus", deployment);
        row.aggregated_status = vec![item("dfw", &after)];
        let answer = environment.call(&row).await?.value();
        let answer = answer.with_context(|| format!("pair {number}: {before} to {after}"))?;
        let status = answer.pointer("/object/status");
        ensure!(
            status == Some(&after),
            "pair {number}: {before} became {status:?}, expected {after}"
        );
    }
    Ok(())
}

/// Statuses that are the same in each run.
struct Generator(Dice);

impl Generator {
    /// A status with at least one field, none of which is null at the top: the module leaves those out.
    fn status(&mut self) -> Value {
        let mut fields = Map::new();
        for _ in 0..=self.0.below(3) {
            let key = KEYS[self.0.below(KEYS.len())];
            let value = self.value(4);
            fields.insert(key.to_owned(), if value.is_null() { json!(1) } else { value });
        }
        Value::Object(fields)
    }

    fn value(&mut self, levels: usize) -> Value {
        match self.0.below(if levels == 0 { 4 } else { 9 }) {
            0 => Value::Null,
            1 => json!(1),
            2 => json!("text"),
            3 => json!({}),
            4 => (0..self.0.below(3)).map(|_| self.value(levels - 1)).collect(),
            _ => {
                let mut fields = Map::new();
                for _ in 0..=self.0.below(3) {
                    let key = KEYS[self.0.below(KEYS.len())];
                    fields.insert(key.to_owned(), self.value(levels - 1));
                }
                Value::Object(fields)
            }
        }
    }
}
