//! `popcell rollout status`: waits by watch until every city runs what the Workload says.
//!
//! Invariants: what is said depends on complete lists of all three kinds; a server that keeps failing ends the wait.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    time::Duration,
};

use futures::{FutureExt as _, Stream, StreamExt as _, stream::select_all};
use kube::{
    api::DynamicObject,
    runtime::watcher::{self, Event},
};
use popcell_api::{
    kind::{self, Kind},
    labels,
};
use popcell_client::chain;
use popcell_core::object::{Fields as _, Object};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    member::Member,
    progress::{Progress, State},
};
use crate::{
    args::{
        ListFormat,
        workloads::{Limit, Status},
    },
    console::{Console, shown},
    exit::{Exit, Failure, Outcome},
    planes::Project,
};

/// Failures in a row of one watch after which the server counts as unreachable.
const FAILURES: u32 = 5;
/// Events within this time are looked at together.
const SETTLE: Duration = Duration::from_millis(100);
/// So many of them at most.
const TOGETHER: usize = 1000;

/// Runs the command.
pub(super) async fn run(args: &Status, console: &mut Console) -> Outcome {
    let name = args.target.name()?;
    let project = Project::open(&args.project, args.target.namespace.as_deref()).await?;
    let workload = project.workload(name).await?;
    let mut seen = Seen::of(workload);
    let deadline = match args.timeout {
        Limit(Some(limit)) => Instant::now().checked_add(limit),
        Limit(None) => None,
    };
    let mut changes = changes(&project, &seen.workload);
    let mut before: Option<Progress> = None;
    loop {
        let next = changes.next();
        let change = match deadline {
            None => Some(next.await),
            // What is ready at once would never time out.
            Some(deadline) if deadline <= Instant::now() => None,
            Some(deadline) => timeout_at(deadline, next).await.ok(),
        };
        let Some(change) = change else {
            let waits = before.as_ref().and_then(Progress::first);
            let waits = waits.unwrap_or_else(|| "an answer of the server".to_owned());
            return Err(Failure::Failed(format!("timed out waiting for {waits}")));
        };
        seen.take(change, &project)?;
        sleep(SETTLE).await;
        for _ in 0..TOGETHER {
            match changes.next().now_or_never() {
                Some(change) => seen.take(change, &project)?,
                None => break,
            }
        }
        if !seen.is_complete() {
            continue;
        }
        let progress = Progress::of(&seen.workload, &seen.deployments, seen.members.values());
        if before.as_ref() != Some(&progress) {
            show(args, &seen.workload, before.as_ref(), &progress, console)?;
        }
        let state = progress.state();
        match state {
            State::Complete => {
                if args.output == ListFormat::Text {
                    writeln!(console.out, "workload \"{name}\" successfully rolled out")?;
                }
                return Ok(Exit::Success);
            }
            State::Failed => {
                let failed = progress.first().unwrap_or_default();
                return Err(Failure::Failed(format!("workload {name} cannot proceed: {failed}")));
            }
            State::Waiting if !args.watch => return Ok(Exit::Success),
            State::Waiting => before = Some(progress),
        }
    }
}

fn show(
    args: &Status,
    workload: &Object,
    before: Option<&Progress>,
    progress: &Progress,
    console: &mut Console,
) -> Result<(), Failure> {
    match args.output {
        ListFormat::Text => {
            for line in progress.lines_since(before) {
                writeln!(console.out, "{}", shown(&line))?;
            }
        }
        ListFormat::Json if args.watch => writeln!(console.out, "{}", progress.json(workload))?,
        ListFormat::Json => writeln!(console.out, "{:#}", progress.json(workload))?,
    }
    console.out.flush()?;
    Ok(())
}

/// The kinds that are watched.
const KINDS: [Kind; 3] = [kind::WORKLOAD, kind::WORKLOAD_DEPLOYMENT, kind::INSTANCE];

/// A change of one of [`KINDS`], by its place there.
type Change = (usize, watcher::Result<Event<DynamicObject>>);

/// Changes of the Workload, and of what belongs to it.
fn changes(project: &Project, workload: &Object) -> impl Stream<Item = Change> + Unpin + use<> {
    let of_workload = format!("{}={}", labels::WORKLOAD_UID, workload.uid());
    let streams = KINDS.into_iter().enumerate().map(|(place, kind)| {
        let config = if kind == kind::WORKLOAD {
            watcher::Config::default().fields(&format!("metadata.name={}", workload.name()))
        } else {
            watcher::Config::default().labels(&of_workload)
        };
        project.changes(kind, config).map(move |change| (place, change)).boxed()
    });
    select_all(streams)
}

/// What the watches have brought.
struct Seen {
    workload: Object,
    deployments: BTreeMap<String, Object>,
    members: BTreeMap<String, Member>,
    /// Whether the list of each kind is complete.
    listed: [bool; KINDS.len()],
    /// Names in the list that is being read.
    listing: [BTreeSet<String>; KINDS.len()],
    /// Failures in a row.
    failures: [u32; KINDS.len()],
}

impl Seen {
    fn of(workload: Object) -> Self {
        Self {
            workload,
            deployments: BTreeMap::new(),
            members: BTreeMap::new(),
            listed: [false; KINDS.len()],
            listing: Default::default(),
            failures: [0; KINDS.len()],
        }
    }

    fn is_complete(&self) -> bool {
        self.listed.iter().all(|listed| *listed)
    }

    /// Takes a change in. Fails where waiting makes no sense any more.
    fn take(&mut self, change: Option<Change>, project: &Project) -> Result<(), Failure> {
        let Some((place, change)) = change else {
            return Err(project.failure("watch", "the watch ended"));
        };
        let (Some(kind), Some(failures)) = (KINDS.get(place).copied(), self.failures.get_mut(place)) else {
            return Ok(());
        };
        let event = match change {
            Ok(event) => {
                *failures = 0;
                event
            }
            Err(error) => {
                *failures += 1;
                if *failures < FAILURES && !is_final(&error) {
                    return Ok(());
                }
                return Err(project.failure(&format!("watch {}", kind.plural), &chain(&error)));
            }
        };
        let read = |object: DynamicObject| {
            let value = serde_json::to_value(object).and_then(serde_json::from_value::<Object>);
            value.map_err(|error| project.failure(&format!("read a {}", kind.kind), &error.to_string()))
        };
        match event {
            Event::Init => {
                if let Some(names) = self.listing.get_mut(place) {
                    names.clear();
                }
            }
            Event::InitApply(object) => {
                let object = read(object)?;
                if let Some(names) = self.listing.get_mut(place) {
                    names.insert(object.name().to_owned());
                }
                self.put(kind, object)?;
            }
            Event::InitDone => self.end_list(place, kind)?,
            Event::Apply(object) => self.put(kind, read(object)?)?,
            Event::Delete(object) => self.remove(kind, read(object)?.name())?,
        }
        Ok(())
    }

    /// What a whole list does not have is gone.
    fn end_list(&mut self, place: usize, kind: Kind) -> Result<(), Failure> {
        let names = self.listing.get_mut(place).map(std::mem::take).unwrap_or_default();
        if let Some(listed) = self.listed.get_mut(place) {
            *listed = true;
        }
        if kind == kind::WORKLOAD && names.is_empty() {
            return self.remove(kind, "");
        }
        if kind == kind::WORKLOAD_DEPLOYMENT {
            self.deployments.retain(|name, _| names.contains(name));
        }
        if kind == kind::INSTANCE {
            self.members.retain(|name, _| names.contains(name));
        }
        Ok(())
    }

    fn put(&mut self, kind: Kind, object: Object) -> Result<(), Failure> {
        if kind == kind::WORKLOAD {
            if object.uid() != self.workload.uid() {
                return self.remove(kind, object.name());
            }
            self.workload = object;
        } else if kind == kind::WORKLOAD_DEPLOYMENT {
            self.deployments.insert(object.name().to_owned(), object);
        } else {
            self.members.insert(object.name().to_owned(), Member::of(&object));
        }
        Ok(())
    }

    fn remove(&mut self, kind: Kind, name: &str) -> Result<(), Failure> {
        if kind == kind::WORKLOAD {
            let name = self.workload.name();
            return Err(Failure::Failed(format!("workload {name} was deleted meanwhile")));
        }
        if kind == kind::WORKLOAD_DEPLOYMENT {
            self.deployments.remove(name);
        } else {
            self.members.remove(name);
        }
        Ok(())
    }
}

/// Whether a server will say the same again.
fn is_final(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => matches!(status.code, 401 | 403 | 404),
        _ => false,
    }
}
