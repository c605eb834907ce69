//! `popcell tree`: one Workload on every plane, with one reason for each edge that is broken.
//!
//! Invariants: nothing is written; what is shown is what servers say now; a plane that does not answer hides no other.

mod build;
pub(crate) mod fault;
mod node;
mod read;

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    args::{ListFormat, planes::Tree},
    console::Console,
    exit::{Exit, Failure, Outcome},
};
use node::{Node, State};
use read::Planes;

/// Between two looks of `--watch`.
const PAUSE: Duration = Duration::from_secs(2);
/// Clears a terminal.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Runs the command.
pub fn run(args: &Tree, console: &mut Console) -> Outcome {
    crate::runtime()?.block_on(async {
        let planes = Planes::open(args).await?;
        if args.watch {
            return watch(args, &planes, console).await;
        }
        let tree = build::tree(&planes.look(args).await?);
        show(args, &tree, console)?;
        Ok(verdict(&tree))
    })
}

/// What is broken is a failed check; a plane that does not answer is a failed cluster.
fn verdict(tree: &Node) -> Exit {
    match tree.worst() {
        State::Fine | State::Unasked => Exit::Success,
        State::Unknown => Exit::Environment,
        State::Broken => Exit::Failed,
    }
}

fn show(args: &Tree, tree: &Node, console: &mut Console) -> Result<(), Failure> {
    match args.output {
        ListFormat::Text => node::text(tree, Timestamp::now(), &mut console.out)?,
        ListFormat::Json if args.watch => writeln!(console.out, "{}", node::json(tree))?,
        ListFormat::Json => writeln!(console.out, "{:#}", node::json(tree))?,
    }
    console.out.flush()?;
    Ok(())
}

/// Shows each change, until interrupted. On a terminal the last picture stays, with ages that move.
async fn watch(args: &Tree, planes: &Planes, console: &mut Console) -> Outcome {
    let redraws = args.output == ListFormat::Text && std::io::stdout().is_terminal();
    let mut shown: Option<Node> = None;
    let mut said = String::new();
    loop {
        match planes.look(args).await {
            Ok(snapshot) => {
                said.clear();
                let tree = build::tree(&snapshot);
                let is_new = shown.as_ref() != Some(&tree);
                if redraws {
                    write!(console.out, "{CLEAR}")?;
                } else if is_new && shown.is_some() && args.output == ListFormat::Text {
                    writeln!(console.out)?;
                }
                if is_new || redraws {
                    show(args, &tree, console)?;
                }
                shown = Some(tree);
            }
            Err(error) => {
                let error = error.to_string();
                if error != said {
                    writeln!(console.err, "{error}; looking again")?;
                    said = error;
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
