//! One project: everything is read before anything is written, and nothing is written where one object is refused.

use popcell_core::object::Object;
use serde_json::Value;

use super::{
    decide::{Step, decide, is_same},
    manifest::{BINDING, Manifest},
    report::{Outcome, Row},
};
use crate::planes::{Answer, PlaneError, Rehearsal, Server, Write};

/// Tries of a write that meets a newer object.
const TRIES: usize = 3;

/// How it is applied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Servers check what would be written, and store nothing.
    pub(super) dry_run: bool,
    /// CRDs may lose fields.
    pub(super) drops: bool,
}

/// Applies all of it. Writes end with the first that fails, since what comes later depends on what comes before.
pub(super) async fn apply(server: &Server, manifests: &[Manifest], manner: Manner) -> Result<Vec<Row>, PlaneError> {
    let mut found = Vec::new();
    for manifest in manifests {
        found.push(read(server, manifest).await?);
    }
    let steps = manifests.iter().zip(&found);
    let refused = steps.filter_map(
        |(manifest, found)| match decide(manifest, found.as_ref(), manner.drops) {
            Step::Refuse(why) => Some(Row::new(manifest, Outcome::Refused(why))),
            _ => None,
        },
    );
    let mut rows: Vec<Row> = refused.collect();
    if !rows.is_empty() {
        return Ok(rows);
    }
    for (manifest, found) in manifests.iter().zip(found) {
        let outcome = carry(server, manifest, found, manner).await?;
        let is_over = matches!(outcome, Outcome::Refused(_) | Outcome::Failed(_));
        rows.push(Row::new(manifest, outcome));
        if is_over {
            break;
        }
    }
    Ok(rows)
}

async fn read(server: &Server, manifest: &Manifest) -> Result<Option<Value>, PlaneError> {
    let found = server.at(manifest.kind, None).get(&manifest.name).await?;
    Ok(found.as_ref().map(value))
}

fn value(object: &Object) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// Writes one object. What has changed since it was read is read and decided again.
async fn carry(
    server: &Server,
    manifest: &Manifest,
    mut found: Option<Value>,
    manner: Manner,
) -> Result<Outcome, PlaneError> {
    for _ in 0..TRIES {
        let (answer, outcome) = match decide(manifest, found.as_ref(), manner.drops) {
            Step::Keep => return Ok(Outcome::Unchanged),
            Step::Refuse(why) => return Ok(Outcome::Refused(why)),
            Step::Create => (create(server, manifest, manner).await?, Outcome::Created),
            Step::Replace(wanted) => match replace(server, manifest, &wanted, found.as_ref(), manner).await? {
                Some(answer) => (answer, Outcome::Changed),
                None => return Ok(Outcome::Unchanged),
            },
        };
        match answer {
            Answer::Done => return Ok(outcome),
            Answer::Refused { code, message } => {
                let action = format!("write {}", manifest.address());
                return Ok(Outcome::Failed(server.refusal(&action, code, &message).to_string()));
            }
            Answer::Gone | Answer::Changed(_) => found = read(server, manifest).await?,
        }
    }
    Ok(Outcome::Failed(
        "another client keeps modifying it: find out which, then retry".to_owned(),
    ))
}

async fn create(server: &Server, manifest: &Manifest, manner: Manner) -> Result<Answer, PlaneError> {
    let objects = server.at(manifest.kind, None);
    if !manner.dry_run {
        return objects.write(&manifest.name, Write::Create(&manifest.object)).await;
    }
    // The server looks its role up, which a dry run before has not stored.
    if manifest.kind == BINDING {
        return Ok(Answer::Done);
    }
    Ok(match objects.rehearse(&manifest.name, &manifest.object, true).await? {
        Rehearsal::Stored(_) => Answer::Done,
        Rehearsal::Not(answer) => answer,
    })
}

/// `None` where the server would store what is there: its defaults made the difference.
async fn replace(
    server: &Server,
    manifest: &Manifest,
    wanted: &Value,
    found: Option<&Value>,
    manner: Manner,
) -> Result<Option<Answer>, PlaneError> {
    let objects = server.at(manifest.kind, None);
    match objects.rehearse(&manifest.name, wanted, false).await? {
        Rehearsal::Not(answer) => Ok(Some(answer)),
        Rehearsal::Stored(stored) if found.is_some_and(|found| is_same(found, &value(&stored))) => Ok(None),
        Rehearsal::Stored(_) if manner.dry_run => Ok(Some(Answer::Done)),
        Rehearsal::Stored(_) => objects.write(&manifest.name, Write::Replace(wanted)).await.map(Some),
    }
}
