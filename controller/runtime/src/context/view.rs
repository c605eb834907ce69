//! What a reconcile sees: the stores of all planes, and over them single objects that were read live.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use popcell_api::kind::Kind;
use popcell_core::identity::{Project, SYSTEM_NAMESPACE};
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{NAMESPACE, Plane, Target};

use super::Context;
use crate::planes::{Store, uids};
use crate::refusal::ApplyError;

type Address = (Plane, &'static str, String, String);

/// Objects that were read live during this reconcile; `None` = NotFound.
#[derive(Debug, Default)]
pub struct LiveReads {
    read: BTreeMap<Address, Option<Arc<Object>>>,
    unreadable: BTreeSet<Address>,
    missed: Option<ApplyError>,
    silent: BTreeSet<Plane>,
    /// Versions of stored objects that what was read was read for.
    premises: BTreeMap<Address, String>,
}

impl LiveReads {
    /// Notes the version of an object of a store before others are read for it: what an event brings meanwhile was not read for.
    pub fn read_for(&mut self, plane: &Plane, kind: Kind, object: &Object) {
        let version = object.resource_version().to_owned();
        self.premises.insert(address(&Target::of(plane, kind, object)), version);
    }

    /// A plane did not say what it was asked, and the reconcile goes on without: after it the key is looked at again, as
    /// if the reconcile had failed so.
    pub fn miss(&mut self, plane: &Plane, error: ApplyError) {
        self.silent.insert(plane.clone());
        let worse = match self.missed.take() {
            Some(before) => before.or_worse(error).0,
            None => error,
        };
        self.missed = Some(worse);
    }

    /// The worst that was missed since the last call. What was read stays.
    pub(crate) fn take_missed(&mut self) -> Option<ApplyError> {
        self.silent.clear();
        self.missed.take()
    }

    /// Takes in the answer of a server.
    pub fn put(&mut self, target: &Target, found: Option<Object>) {
        self.insert(target, found.map(Arc::new));
    }

    /// The same with an object that others hold too.
    pub fn insert(&mut self, target: &Target, found: Option<Arc<Object>>) {
        let address = address(target);
        self.unreadable.remove(&address);
        self.read.insert(address, found);
    }

    /// Takes in that an object is there and cannot be read; without a name, that there is such a one.
    pub fn put_unreadable(&mut self, target: &Target) {
        self.unreadable.insert(address(target));
    }

    /// Forgets what was read of a kind on a plane: what is read anew may not be there any more.
    pub fn forget(&mut self, plane: &Plane, kind: Kind) {
        let is_other = |(one, name, ..): &Address| one != plane || *name != kind.kind;
        self.read.retain(|address, _| is_other(address));
        self.unreadable.retain(is_other);
    }

    fn get(&self, plane: &Plane, kind: Kind, namespace: &str, name: &str) -> Option<&Option<Arc<Object>>> {
        self.read
            .get(&(plane.clone(), kind.kind, namespace.to_owned(), name.to_owned()))
    }

    fn over(&self, plane: &Plane, kind: Kind) -> impl Iterator<Item = (&Address, &Option<Arc<Object>>)> {
        self.read
            .iter()
            .filter(move |((one, name, ..), _)| one == plane && *name == kind.kind)
    }
}

fn address(target: &Target) -> Address {
    let namespace = target.namespace.clone().unwrap_or_default();
    (target.plane.clone(), target.kind.kind, namespace, target.name.clone())
}

/// The state of all planes, as one reconcile sees it.
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    /// Everything that is shared.
    pub context: &'a Context,
    live: &'a LiveReads,
}

impl<'a> Snapshot<'a> {
    /// With what was read live.
    pub fn new(context: &'a Context, live: &'a LiveReads) -> Self {
        Self { context, live }
    }

    /// An object.
    pub fn get(&self, plane: &Plane, kind: Kind, namespace: &str, name: &str) -> Observed<Option<Arc<Object>>> {
        let store = self.context.store(plane, kind);
        if let Some(found) = self.live.get(plane, kind, namespace, name) {
            return Observed::Known(now(store.as_ref(), found.as_ref()));
        }
        if self.unreadable_of(plane, kind).any(|one| one == (namespace, name)) {
            return Observed::Unknown;
        }
        store.map_or(Observed::Unknown, |store| store.get(namespace, name))
    }

    /// What was read live in this reconcile; `None` = not read, `Some(None)` = NotFound.
    pub fn read_live(&self, plane: &Plane, kind: Kind, namespace: &str, name: &str) -> Option<Option<Arc<Object>>> {
        self.live.get(plane, kind, namespace, name).cloned()
    }

    /// Whether what was read live was read for this version of an object ([`LiveReads::read_for`]).
    pub fn is_read_for(&self, plane: &Plane, kind: Kind, object: &Object) -> bool {
        let version = self.live.premises.get(&address(&Target::of(plane, kind, object)));
        version.is_some_and(|version| version == object.resource_version())
    }

    /// Whether a plane did not say in this reconcile what it was asked ([`LiveReads::miss`]).
    pub fn has_missed(&self, plane: &Plane) -> bool {
        self.live.silent.contains(plane)
    }

    /// All objects of a kind that were read live in this reconcile.
    pub fn live_of(&self, kind: Kind) -> Vec<(Plane, Arc<Object>)> {
        let of_kind = self.live.read.iter().filter(|((_, name, ..), _)| *name == kind.kind);
        of_kind
            .filter_map(|((plane, ..), found)| Some((plane.clone(), Arc::clone(found.as_ref()?))))
            .collect()
    }

    /// Namespace and name of what was found live on a plane in this reconcile and cannot be read; the name is empty where
    /// it says none.
    pub fn unreadable_of(&self, plane: &Plane, kind: Kind) -> impl Iterator<Item = (&'a str, &'a str)> {
        let of_kind = self.live.unreadable.iter();
        let of_kind = of_kind.filter(move |(one, name, ..)| one == plane && *name == kind.kind);
        of_kind.map(|(_, _, namespace, name)| (namespace.as_str(), name.as_str()))
    }

    /// Objects of a namespace.
    pub fn in_namespace(&self, plane: &Plane, kind: Kind, namespace: &str) -> Observed<Vec<Arc<Object>>> {
        let meant = |within: &str, _: &str| within == namespace;
        self.select(plane, kind, |store| store.in_namespace(namespace), meant)
    }

    /// Those of them whose names begin so.
    pub fn starting(&self, plane: &Plane, kind: Kind, namespace: &str, prefix: &str) -> Observed<Vec<Arc<Object>>> {
        let meant = |within: &str, name: &str| within == namespace && name.starts_with(prefix);
        self.select(plane, kind, |store| store.starting(namespace, prefix), meant)
    }

    /// Objects of a name in any namespace.
    pub fn named(&self, plane: &Plane, kind: Kind, name: &str) -> Observed<Vec<Arc<Object>>> {
        self.select(plane, kind, |store| store.named(name), |_, one| one == name)
    }

    /// Objects of a plane.
    pub fn all(&self, plane: &Plane, kind: Kind) -> Observed<Vec<Arc<Object>>> {
        self.select(plane, kind, Store::all, |_, _| true)
    }

    /// Objects that say a uid ([`Store::saying`]).
    pub fn saying(&self, plane: &Plane, kind: Kind, uid: &str) -> Observed<Vec<Arc<Object>>> {
        let said = self.select(plane, kind, |store| store.saying(uid), |_, _| true);
        said.map(|mut objects| {
            objects.retain(|one| uids(Some(kind), one).any(|said| said == uid));
            objects
        })
    }

    /// What `pick` finds in a store, with what was read live of the addresses that are `meant`.
    fn select(
        &self,
        plane: &Plane,
        kind: Kind,
        pick: impl FnOnce(&Store) -> Observed<Vec<Arc<Object>>>,
        meant: impl Fn(&str, &str) -> bool,
    ) -> Observed<Vec<Arc<Object>>> {
        let Some(store) = self.context.store(plane, kind) else {
            return Observed::Unknown;
        };
        pick(&store).map(|mut objects| {
            let live = self.live.over(plane, kind);
            for ((_, _, within, name), found) in live.filter(|((_, _, within, name), _)| meant(within, name)) {
                objects.retain(|one| one.namespace() != within || one.name() != name);
                objects.extend(now(Some(&store), found.as_ref()));
            }
            objects
        })
    }

    /// A Namespace of a project: read in this reconcile, or known from an earlier one.
    pub fn project_namespace(&self, plane: &Plane, name: &str) -> Observed<Option<Arc<Object>>> {
        match self.live.get(plane, NAMESPACE, "", name) {
            Some(found) => Observed::Known(found.clone()),
            None => self.context.namespace(plane, name),
        }
    }

    /// Identity of a project that is engaged; `None` where it is not.
    pub fn project<R>(&self, plane: &Plane, view: impl FnOnce(Project<'_>) -> R) -> Option<R> {
        let Plane::Project(id) = plane else { return None };
        let engaged = self.context.planes.get(plane)?;
        let server = self.server(plane);
        Some(view(Project {
            id,
            uid: engaged.uid(),
            server: server.as_deref().map(Fields::uid),
        }))
    }

    /// The Namespace that tells the server of a project from others, in mode `single`; `None` until it was read.
    pub fn server(&self, plane: &Plane) -> Option<Arc<Object>> {
        if !self.context.is_single(plane) {
            return None;
        }
        let system = self.project_namespace(plane, SYSTEM_NAMESPACE).known()?;
        system.filter(|one| !one.uid().is_empty())
    }

    /// Hub Namespaces that are labelled with a project and namespace.
    pub fn hub_namespaces(&self, project: &str, namespace: &str) -> Observed<Vec<Arc<Object>>> {
        let mut found = Vec::new();
        for name in self.context.hub_index.of(project, namespace) {
            match self.get(&Plane::Hub, NAMESPACE, "", &name) {
                Observed::Known(one) => found.extend(one),
                Observed::Unknown => return Observed::Unknown,
            }
        }
        if self.is_known(&Plane::Hub, NAMESPACE) {
            Observed::Known(found)
        } else {
            Observed::Unknown
        }
    }

    /// Whether a store is fully listed.
    pub fn is_known(&self, plane: &Plane, kind: Kind) -> bool {
        self.context.store(plane, kind).is_some_and(|store| store.is_known())
    }
}

/// What was read live in an earlier part of the reconcile, unless the reconcile has written since.
fn now(store: Option<&Arc<Store>>, read: Option<&Arc<Object>>) -> Option<Arc<Object>> {
    match (store, read) {
        (Some(store), Some(read)) => store.newer(read),
        (_, read) => read.cloned(),
    }
}

/// References, as decisions take them.
pub fn refs(objects: &[Arc<Object>]) -> Vec<&Object> {
    objects.iter().map(AsRef::as_ref).collect()
}
