//! `popcell interpret`: one operation on one object, printed as `karmadactl interpret` prints it. Better than there: an
//! error ends with a code that is not zero, and an empty file is a usage error.

mod input;

pub(crate) use input::object;

use std::io::Write;

use popcell_sdk::test::{
    cases::Answer,
    yaml::{Node, Value, to_yaml},
};

use crate::{
    args::{DataFormat, module::Interpret},
    console::Console,
    exit::{Exit, Failure, Outcome},
    interpreters::{Interpreter, Unanswered},
};

/// Runs the command.
pub fn run(args: &Interpret, console: &mut Console) -> Outcome {
    // A mistake on the command line is reported before anything is loaded or called.
    let input = input::read(args, console)?;
    let interpreter = Interpreter::open(&args.source)?;
    let failed = |reason: &dyn std::fmt::Display| format!("failed to execute {}: {reason}", args.operation);
    let output = interpreter.ask(args.operation, &input).map_err(|why| match why {
        Unanswered::Said(error) => Failure::Failed(failed(&error)),
        Unanswered::Broken { message, frames } if args.verbose => Failure::Module(
            frames
                .iter()
                .fold(failed(&message), |text, frame| format!("{text}\n  in {frame}")),
        ),
        Unanswered::Broken { message, .. } => Failure::Module(failed(&message)),
        Unanswered::Unreached(message) => Failure::Environment(failed(&message)),
    })?;
    let answer = popcell_sdk::test::cases::answer(args.operation, &input, &output)
        .map_err(|message| Failure::Module(failed(&message)))?;
    print(&answer, args.output, &mut console.out)?;
    Ok(Exit::Success)
}

/// As `karmadactl interpret` does (its pkg/karmadactl/interpret/execute.go): for each part `---`, `# [1/2] replica:` and its YAML.
fn print(answer: &Answer, format: DataFormat, out: &mut dyn Write) -> std::io::Result<()> {
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
