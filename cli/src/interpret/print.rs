//! The answer as `karmadactl interpret` prints it (its pkg/karmadactl/interpret/execute.go): for each part `---`,
//! `# [1/2] replica:` and its YAML.

use std::io::Write;

use popcell_sdk::test::{
    cases::Answer,
    yaml::{Node, Value, to_yaml},
};

use crate::args::DataFormat;

pub(super) fn answer(answer: &Answer, format: DataFormat, out: &mut dyn Write) -> std::io::Result<()> {
    if format == DataFormat::Json {
        return writeln!(out, "{}", answer.to_node().to_json());
    }
    let mut parts = answer.shown();
    // karmadactl says it when there are no requirements.
    if parts.first().is_some_and(|(name, _)| *name == "replica") && parts.len() == 1 {
        parts.push(("requires", Node::made(Value::Null)));
    }
    let count = parts.len();
    for (index, (name, part)) in parts.iter().enumerate() {
        write!(out, "---\n# [{}/{count}] {name}:\n{}", index + 1, to_yaml(part))?;
    }
    Ok(())
}
