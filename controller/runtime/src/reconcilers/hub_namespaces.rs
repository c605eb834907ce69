//! Hub namespaces, by the events that concern them: each stands for a namespace of a project.

use popcell_core::identity;
use popcell_core::object::Fields;
use popcell_core::plan::{NAMESPACE, Plane};

use super::events;
use crate::context::Context;
use crate::planes::Change;
use crate::queue::Key;

/// The key of a reconciler whose object is a hub namespace. It is its own namespace there, so that the queue is fair between
/// them.
pub(super) fn key(hub_namespace: &str) -> Key {
    Key::new(&Plane::Hub, hub_namespace, hub_namespace)
}

/// The keys of these hub namespaces.
pub(super) fn keys(hub_namespaces: &[String]) -> Vec<Key> {
    hub_namespaces.iter().map(|name| key(name)).collect()
}

/// The keys of all, where the plane is the hub.
pub(super) fn keys_on(context: &Context, plane: &Plane) -> Vec<Key> {
    match plane {
        Plane::Hub => keys(&all(context)),
        Plane::Project(_) | Plane::Cell | Plane::Discovery => Vec::new(),
    }
}

/// All that the hub has, as far as they are known.
pub(super) fn all(context: &Context) -> Vec<String> {
    let namespaces = events::stored(context, &Plane::Hub, NAMESPACE, None);
    namespaces.iter().map(|one| one.name().to_owned()).collect()
}

/// The hub namespace that an event of the hub is about.
pub(super) fn named(change: &Change) -> Vec<String> {
    let found = events::address(change).map(|(_, name)| name.to_owned());
    found.into_iter().collect()
}

/// The hub namespace of the object that an event of the hub is about.
pub(super) fn around(change: &Change) -> Vec<String> {
    let found = events::address(change).map(|(namespace, _)| namespace.to_owned());
    found.into_iter().collect()
}

/// Those that stand for the Namespace of a project that an event is about.
pub(super) fn of_namespace(context: &Context, project: &str, change: &Change) -> Vec<String> {
    let found = events::address(change).map(|(_, name)| context.hub_index.of(project, name));
    found.unwrap_or_default()
}

/// Those that stand for the namespace of the object of a project that an event is about.
pub(super) fn of_object(context: &Context, project: &str, change: &Change) -> Vec<String> {
    let found = events::address(change).map(|(namespace, _)| context.hub_index.of(project, namespace));
    found.unwrap_or_default()
}

/// The project and namespace that the labels of a hub namespace name; none while that project is not engaged.
pub(super) fn owner(context: &Context, hub_namespace: &str) -> Option<(Plane, String)> {
    let store = context.store(&Plane::Hub, NAMESPACE)?;
    let found = store.get("", hub_namespace).known()??;
    let (project, namespace) = identity::of_namespace(&found)?;
    let plane = Plane::Project(project.to_owned());
    context.planes.get(&plane)?;
    Some((plane, namespace.to_owned()))
}
