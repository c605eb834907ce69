//! Which WorkloadDeployment of the cell something is of: by what it says, or by its name.

use std::sync::Arc;

use popcell_api::{kind, labels};
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::Plane;
use popcell_core::slots;

use crate::queue::Key;
use crate::reconcile::Snapshot;

/// The WorkloadDeployment that an Instance or NetworkBinding is of: its controller, else the one that it is labelled with.
pub(super) fn of(object: &Object) -> Option<Key> {
    let owners = object.metadata.owner_references.iter().flatten();
    let controller = owners
        .into_iter()
        .find(|one| one.kind == kind::WORKLOAD_DEPLOYMENT.kind && one.controller == Some(true))
        .map(|one| one.name.as_str());
    let name = controller.or_else(|| object.label(labels::WORKLOAD_DEPLOYMENT_NAME))?;
    Some(Key::new(&Plane::Cell, object.namespace(), name))
}

/// The one that has a uid, in a namespace.
pub(super) fn of_uid(snapshot: &Snapshot<'_>, namespace: &str, uid: &str) -> Observed<Option<Arc<Object>>> {
    let found = snapshot.saying(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, uid);
    found.map(|found| found.into_iter().find(|one| one.namespace() == namespace))
}

/// The one in which a name stands for a slot.
pub(super) fn of_slot(snapshot: &Snapshot<'_>, namespace: &str, name: &str) -> Observed<Option<Arc<Object>>> {
    let deployment = slots::deployment_of(name).unwrap_or_default();
    snapshot.get(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, namespace, deployment)
}
