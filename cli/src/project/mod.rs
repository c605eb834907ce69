//! `popcell project`: what the control planes of projects need of popcell. `apply` brings CRDs, rights, policies and admission
//! webhooks to one of them or to all.
//!
//! Invariants: an object of another owner is never changed; in a project where one object is refused nothing is written; a
//! project that fails holds up no other; a second run over unchanged projects writes nothing.

mod apply;
mod decide;
mod manifest;
mod report;
mod schema;

use std::{collections::BTreeSet, io::Write as _};

use futures::{StreamExt as _, stream};
use popcell_api::{kind::PROJECT, names::SINGLE};
use popcell_core::{
    conditions::says,
    object::{Fields as _, Object},
};

use crate::{
    args::{
        ListFormat,
        project::{Apply, Project, ProjectCommand},
    },
    console::{self, Console},
    exit::{Failure, Outcome},
    planes::{PlaneError, Projects, Server},
};
use apply::Manner;
use report::{Report, State};

/// Projects that are written to at once.
const AT_ONCE: usize = 8;
/// The condition without which nothing is sent to a project.
const READY: &str = "Ready";

/// Runs the command.
pub fn run(args: &Project, console: &mut Console) -> Outcome {
    match &args.command {
        ProjectCommand::Apply(args) => crate::runtime()?.block_on(applied(args, console)),
    }
}

async fn applied(args: &Apply, console: &mut Console) -> Outcome {
    // Everything that can be known here is known before the first request.
    let manifests = manifest::manifests(args, console)?;
    let projects = Projects::open(&args.projects).await?;
    let selected = select(args, &projects).await?;
    console::leave("interrupted: run the command again, which writes what is missing".to_owned());
    let manner = Manner {
        dry_run: args.dry_run,
        drops: args.allow_dropped_fields,
    };
    let manifests = &manifests;
    let mut running = stream::iter(selected)
        .map(|(id, found)| async move {
            match found {
                Ok(server) => match apply::apply(&server, manifests, manner).await {
                    Ok(rows) => Report::of_rows(&id, rows),
                    Err(error) => Report::of(&id, State::Failed(error.to_string())),
                },
                Err(state) => Report::of(&id, state),
            }
        })
        .buffer_unordered(AT_ONCE);
    let mut reports = Vec::new();
    while let Some(report) = running.next().await {
        if args.output == ListFormat::Text {
            writeln!(console.out, "{}", report.line(args.dry_run))?;
        }
        reports.push(report);
    }
    reports.sort_by(|left, right| left.id.cmp(&right.id));
    match args.output {
        ListFormat::Json => writeln!(console.out, "{:#}", report::json(&reports, args.dry_run))?,
        ListFormat::Text => writeln!(console.err, "{}", report::summary(&reports))?,
    }
    Ok(report::exit(&reports))
}

/// A project's id, and its server or why nothing is sent there.
type Selected = (String, Result<Server, State>);

/// The projects that the flags mean.
async fn select(args: &Apply, projects: &Projects) -> Result<Vec<Selected>, Failure> {
    let discovery = match projects {
        Projects::Single(_) if !args.ids.is_empty() => {
            let text = "--project is for --mode milo: in mode single --project-kubeconfig leads to the one project";
            return Err(Failure::Usage(text.to_owned()));
        }
        Projects::Single(_) => return Ok(vec![(SINGLE.to_owned(), server(projects, SINGLE))]),
        Projects::Milo { discovery, .. } => discovery,
    };
    if args.all_projects {
        return Ok(all(projects, discovery).await?);
    }
    if args.ids.is_empty() {
        return Err(Failure::Usage("give --project ID, or --all-projects".to_owned()));
    }
    let mut selected = Vec::new();
    for id in args.ids.iter().collect::<BTreeSet<_>>() {
        let found = discovery.at(PROJECT, None).get(id).await?;
        let state = match &found {
            Some(found) => usable(projects, found),
            None => Err(State::Refused(format!("{} has no such Project", discovery.name()))),
        };
        selected.push((id.clone(), state));
    }
    Ok(selected)
}

async fn all(projects: &Projects, discovery: &Server) -> Result<Vec<Selected>, PlaneError> {
    let listed = discovery.at(PROJECT, None).list("").await?;
    let readable = listed
        .objects
        .iter()
        .map(|one| (one.name().to_owned(), usable(projects, one)));
    let unreadable = listed.unreadable.iter().map(|one| {
        let why = format!("its Project cannot be read: {}", one.why);
        (one.name.clone(), Err(State::Failed(why)))
    });
    Ok(readable.chain(unreadable).collect())
}

/// The server of a Project, or why nothing is sent there.
fn usable(projects: &Projects, project: &Object) -> Result<Server, State> {
    if project.deleting() {
        Err(State::Skipped)
    } else if !says(project, READY, "True") {
        Err(State::Refused("it is not Ready: retry when it is".to_owned()))
    } else {
        server(projects, project.name())
    }
}

fn server(projects: &Projects, id: &str) -> Result<Server, State> {
    let server = projects.of(id).map_err(|error| State::Failed(error.to_string()))?;
    Ok(server.advising(|code| match code {
        401 | 403 => " (the user of --project-kubeconfig reads, creates and updates these kinds, and has the rights that it gives)",
        404 => " (does the project serve this kind? policies need Kubernetes 1.30)",
        _ => "",
    }))
}
