//! `popcell cell`: what people decide about cells.

mod remove;

use crate::{
    args::cell::{Cell, Command},
    console::Console,
    exit::Outcome,
};

/// Runs the command.
pub fn run(args: &Cell, console: &mut Console) -> Outcome {
    match &args.command {
        Command::Remove(args) => crate::runtime()?.block_on(remove::remove(args, console)),
    }
}
