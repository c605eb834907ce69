//! Which planes a cell engages beside its own: the hub, and projects that may hold its claims.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use popcell_core::identity::SYSTEM_NAMESPACE;
use popcell_core::object::Fields;
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plane, Target};
use tokio::time::sleep;
use tracing::{info, warn};

use super::{Cell, claim_relist, holder, names_in_use};
use crate::context::Context;
use crate::error::chain;
use crate::planes::SINGLE;

/// How soon the own API server is asked again for who it is.
const AGAIN: Duration = Duration::from_secs(1);

/// Learns who this cell is, then keeps other planes engaged. Runs forever: drop the future to end it.
pub async fn engage(cell: Arc<Cell>, context: Arc<Context>) {
    if !cell.hub && !cell.quota {
        return pending().await;
    }
    learn(&cell, &context).await;
    if cell.hub
        && let Err(error) = context.planes.engage(&Plane::Hub, None).await
    {
        warn!(error = chain(&error), "the hub is not engaged");
    }
    let held = async {
        if cell.hub {
            return holder::run(&cell, &context).await;
        }
        pending::<()>().await;
    };
    if !cell.quota {
        return held.await;
    }
    let levelled = async {
        loop {
            level(&cell, &context).await;
            cell.changed.notified().await;
        }
    };
    // None ends.
    tokio::join!(
        held,
        levelled,
        claim_relist::run(&cell, &context),
        names_in_use::run(&cell, &context)
    );
}

async fn learn(cell: &Cell, context: &Context) {
    let target = Target::cluster(&Plane::Cell, NAMESPACE, SYSTEM_NAMESPACE);
    loop {
        match context.applier.look(&target).await {
            Ok(Some(found)) if !found.uid().is_empty() => {
                info!(cluster = cell.cluster, id = found.uid(), "this cell");
                // Set once: this task is the only one that sets it.
                let _ = cell.id.set(found.uid().to_owned());
                return;
            }
            Ok(_) => warn!("the cell has no namespace kube-system: nothing can be written to other planes"),
            Err(error) => warn!(error = chain(&error), "cannot read this cell's identity yet"),
        }
        sleep(AGAIN).await;
    }
}

/// Projects that cell namespaces speak of, and those that are written down.
async fn level(cell: &Cell, context: &Context) {
    let namespaces = context.store(&Plane::Cell, NAMESPACE);
    let Some(Observed::Known(namespaces)) = namespaces.map(|store| store.all()) else {
        return;
    };
    let mut wanted = cell.recorded();
    wanted.extend(cell.single.clone());
    for namespace in &namespaces {
        let project = cell.project_namespace(namespace.name(), Some(namespace)).project();
        wanted.extend(project.map(str::to_owned));
    }
    leave(cell, context, &wanted).await;
    for project in wanted {
        let plane = Plane::Project(project);
        if let Err(error) = context.planes.engage(&plane, None).await {
            warn!(%plane, error = chain(&error), "a project is not engaged");
        }
    }
}

async fn leave(cell: &Cell, context: &Context, wanted: &BTreeSet<String>) {
    // The management controllers run in this process too, and have engaged the project of mode `single`.
    let beside = cell.single.is_some();
    for plane in context.planes.planes() {
        let Plane::Project(id) = &plane else { continue };
        let is_others = beside && id == SINGLE;
        if !is_others && !wanted.contains(id) {
            context.planes.disengage(&plane).await;
            cell.claim_relists.forget(id);
            cell.names_in_use.forget(&plane);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cell::testing::cell;
    use crate::context::testing::Fixture;

    /// A cell namespace that says so.
    fn namespace((name, cluster): (&str, &str)) -> Value {
        json!({ "metadata": { "name": name, "uid": name, "resourceVersion": "1", "labels": {
            "meta.datumapis.com/upstream-cluster-name": cluster, "meta.datumapis.com/upstream-namespace": "default" } } })
    }

    fn engaged(fixture: &Fixture) -> Vec<String> {
        let planes = fixture.context.planes.planes().into_iter();
        planes
            .filter_map(|plane| match plane {
                Plane::Project(id) => Some(id),
                _ => None,
            })
            .collect()
    }

    #[tokio::test]
    async fn projects_are_engaged_while_a_namespace_or_the_record_names_them() {
        let fixture = Fixture::in_cell(Vec::new(), &["left"], Arc::new(|_| None)).await;
        let cell = cell(None);
        level(&cell, &fixture.context).await;
        assert_eq!(engaged(&fixture), ["left"], "nothing is known of the cell yet");
        for (namespaces, recorded, expected) in [
            (vec![("ns-1", "cluster-p"), ("ns-2", "cluster-p")], vec![], vec!["p"]),
            (
                vec![("ns-1", "cluster-p"), ("ns-3", "cluster-q")],
                vec![],
                vec!["p", "q"],
            ),
            (vec![("ns-3", "cluster-q")], vec!["p"], vec!["p", "q"]),
            (vec![("ns-3", "no project")], vec!["p"], vec!["p"]),
            (vec![], vec![], vec![]),
        ] {
            cell.set_recorded(recorded.iter().map(ToString::to_string).collect());
            fixture.list(
                &Plane::Cell,
                NAMESPACE,
                namespaces.iter().map(|one| namespace(*one)).collect(),
            );
            level(&cell, &fixture.context).await;
            assert_eq!(engaged(&fixture), expected, "{namespaces:?}, {recorded:?} written down");
        }
    }

    #[tokio::test]
    async fn a_single_cluster_engages_its_project_and_keeps_that_of_the_management_controllers() {
        let fixture = Fixture::in_cell(Vec::new(), &[SINGLE, "left"], Arc::new(|_| None)).await;
        fixture.list(&Plane::Cell, NAMESPACE, Vec::new());
        level(&cell(Some("p")), &fixture.context).await;
        assert_eq!(engaged(&fixture), ["p", SINGLE]);
    }
}
