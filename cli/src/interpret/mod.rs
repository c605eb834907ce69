//! `popcell interpret`: one operation on one object, printed as `karmadactl interpret` prints it. Better than there: an
//! error ends with a code that is not zero, and an empty file is a usage error.

mod input;
mod print;

pub(crate) use input::object;

use crate::{
    args::module::Interpret,
    console::Console,
    exit::{Exit, Failure, Outcome},
    interpreters::{Interpreter, Unanswered},
};

/// Runs the command.
pub fn run(args: &Interpret, console: &mut Console) -> Outcome {
    // A mistake on the command line is told before anything is loaded or called.
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
    print::answer(&answer, args.output, &mut console.out)?;
    Ok(Exit::Success)
}
