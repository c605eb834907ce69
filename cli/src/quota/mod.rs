//! `popcell quota`: the claims of a project's Instances, and what they add up to.
//!
//! Invariants: nothing is written; one page of claims is held at a time, and as many rows as are shown.

mod tally;

use std::io::Write as _;

use jiff::Timestamp;
use popcell_api::kind;
use popcell_core::object::Listed;

use crate::{
    args::{ListFormat, workloads::Quota},
    console::{Console, address},
    exit::{Exit, Outcome},
    planes::Project,
};
use tally::Tally;

/// Runs the command.
pub fn run(args: &Quota, console: &mut Console) -> Outcome {
    crate::runtime()?.block_on(quota(args, console))
}

async fn quota(args: &Quota, console: &mut Console) -> Outcome {
    let project = Project::open(&args.project, args.namespace.as_deref()).await?;
    let claims = match args.namespace {
        Some(_) => project.here(kind::RESOURCE_CLAIM),
        None => project.everywhere(kind::RESOURCE_CLAIM),
    };
    let mut tally = Tally::new(usize::from(args.limit));
    let mut unreadable = Vec::new();
    let take = |page: Listed| {
        page.objects.iter().for_each(|one| tally.add(one));
        unreadable.extend(page.unreadable);
    };
    claims.each_page("", take).await?;
    for one in &unreadable {
        let (name, why) = (address(&one.namespace, &one.name), &one.why);
        writeln!(console.err, "ResourceClaim {name} cannot be read, skipped: {why}")?;
    }
    match args.output {
        ListFormat::Text => tally.text(Timestamp::now(), &mut console.out)?,
        ListFormat::Json => writeln!(console.out, "{:#}", tally.json())?,
    }
    for hidden in tally.hidden() {
        writeln!(console.err, "{hidden}; --limit shows more")?;
    }
    Ok(if unreadable.is_empty() {
        Exit::Success
    } else {
        Exit::Environment
    })
}
