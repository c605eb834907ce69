//! `instance-claim`: the claim of an Instance in its project. See [`popcell_core::remote::claim`].

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use popcell_api::annotations;
use popcell_api::conditions::reasons;
use popcell_api::kind::{self, Kind};
use popcell_api::names::CLAIM_PROJECTS;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{CONFIG_MAP, NAMESPACE, Note, Plan, Plane, Target};
use popcell_core::remote::claim::{self, Observation, ProjectNamespace};
use popcell_core::{deployment, slots};

use super::deployment::{of_slot, shown_by};
use super::events;
use crate::apply::{ApplyError, Done};
use crate::cell::{Cell, INSTANCE_CLAIM_RECONCILER};
use crate::context::Context;
use crate::error::chain;
use crate::planes::{Change, Store};
use crate::queue::{Key, RateLimit};
use crate::reconcile::{LiveReads, Preparing, Reconciler, Snapshot, refs};

/// Key: the Instance whose claim it is, by its namespace and name in the cell, on the plane of the project that has the
/// claim or should. Not the claim itself: which namespace of the project that belongs in may change, and a claim in
/// another one is seen, and deleted, by the reconcile of its Instance.
#[derive(Clone, Debug)]
pub struct InstanceClaim {
    /// The cell.
    pub cell: Arc<Cell>,
}

impl Reconciler for InstanceClaim {
    fn name(&self) -> &'static str {
        INSTANCE_CLAIM_RECONCILER
    }

    /// Providers write on the Instances, and any client may on the claims.
    fn rate_limit(&self) -> Option<RateLimit> {
        Some(RateLimit::OF_TWO_WRITERS)
    }

    fn prepare<'a>(&'a self, context: &'a Context, live: &'a mut LiveReads, key: &'a Key) -> Preparing<'a> {
        Box::pin(async move {
            self.cell.identity_cache.identify(&self.cell, &context.applier).await?;
            self.read_record(context, live, key).await
        })
    }

    fn decide(&self, snapshot: &Snapshot<'_>, key: &Key, _: Timestamp) -> Option<Plan> {
        let Plane::Project(project) = &key.plane else {
            return None;
        };
        let claimed = Claimed::look(&self.cell, snapshot, &key.namespace, &key.name, Some(project))?;
        let plan = claimed.observe(&self.cell, |seen| seen.map(claim::decide))?;
        Some(self.cell.identity_cache.until_matched(plan))
    }

    fn executed(&self, context: &Context, key: &Key, plan: &Plan, _: Done) {
        // Such a claim does not carry our label, so only the reconcile that was refused its name has seen it.
        let (held, names_in_use) = (held(plan), &self.cell.names_in_use);
        names_in_use.set(key, held);
        let reported = held.map(|target| names_in_use.reported(key, target, maker(plan)));
        self.cell.refused(context, &key.namespace, &key.name, reported);
    }

    fn failed(&self, context: &Context, key: &Key, error: &ApplyError) {
        if let Some(refusal) = refusal(error) {
            self.cell.refused(context, &key.namespace, &key.name, Some(refusal));
        }
    }

    fn shown_by(&self, _: &Context, key: &Key) -> Vec<(&'static str, Key)> {
        shown_by(&key.namespace, &key.name)
    }

    fn observe_event(&self, plane: &Plane, kind: Kind, change: &Change) {
        if let (Plane::Project(_), kind::RESOURCE_CLAIM, Change::Gone { .. }) = (plane, kind, change) {
            self.cell.identity_cache.doubt_identity();
        }
    }

    fn keys_for_event(&self, context: &Context, plane: &Plane, kind: Kind, change: &Change) -> Vec<Key> {
        match (plane, kind) {
            (Plane::Hub, kind::INSTANCE) | (Plane::Cell, kind::INSTANCE | kind::WORKLOAD_DEPLOYMENT | NAMESPACE)
                if events::is_listed(change) =>
            {
                self.initial_keys(context)
            }
            (Plane::Cell, kind::INSTANCE) if concerns_claim(change) => self.of_instance(context, change),
            (Plane::Cell, kind::WORKLOAD_DEPLOYMENT) if events::is_more_than_memory(change) => {
                self.of_slots(context, change)
            }
            (Plane::Cell, NAMESPACE) if events::is_more_than_status(change) => self.within(context, change),
            (Plane::Project(id), kind::RESOURCE_CLAIM) if events::is_listed(change) => self.of_project(context, id),
            // Whose a claim is, and what it asks for, is not changed by an answer.
            (Plane::Project(_), kind::RESOURCE_CLAIM)
                if context.applier.is_own_create(plane, kind, change) || is_answer(change) =>
            {
                Vec::new()
            }
            (Plane::Project(id), kind::RESOURCE_CLAIM) => self.of_claims(context, id, events::both(change)),
            _ => Vec::new(),
        }
    }

    fn keys(&self, context: &Context, plane: &Plane) -> Vec<Key> {
        match plane {
            Plane::Project(id) => self.made(context, id),
            _ => Vec::new(),
        }
    }

    fn initial_keys(&self, context: &Context) -> Vec<Key> {
        let mut all = self.at_home(context, &events::stored(context, &Plane::Cell, kind::INSTANCE, None));
        for plane in events::projects(context) {
            all.extend(self.keys(context, &plane));
        }
        all
    }
}

impl InstanceClaim {
    /// Before a claim is made its project must be written down: reads where, and whether it may still be made.
    async fn read_record(&self, context: &Context, live: &mut LiveReads, key: &Key) -> Result<(), ApplyError> {
        let (cell, snapshot) = (&self.cell, Snapshot::new(context, live));
        let instance = snapshot.get(&Plane::Cell, kind::INSTANCE, &key.namespace, &key.name);
        let name = claim::name(&key.name);
        let claims = snapshot.named(&key.plane, kind::RESOURCE_CLAIM, &name);
        let (Observed::Known(Some(_)), Observed::Known(claims)) = (instance, claims) else {
            return Ok(());
        };
        if !claims.is_empty() {
            return Ok(());
        }
        // Many may wait for a project that takes none: what they would read first costs the cell.
        if let Some((_, namespace)) = cell.project_namespace_of(context, &key.namespace) {
            // One that cannot be read holds the name: none is made.
            if snapshot.get(&key.plane, kind::RESOURCE_CLAIM, &namespace, &name) == Observed::Unknown {
                return Ok(());
            }
            let target = Target::namespaced(&key.plane, kind::RESOURCE_CLAIM, &namespace, &name);
            context.applier.may_create(&target)?;
        }
        cell.identity_cache.confirm(cell, &context.applier).await;
        let Plane::Project(project) = &key.plane else {
            return Ok(());
        };
        let target = Target::namespaced(&Plane::Cell, CONFIG_MAP, &cell.namespace, CLAIM_PROJECTS);
        let mut record = cell.record_with(project);
        if record.is_none() {
            record = context.applier.read(&target).await?.map(Arc::new);
            cell.keep_record(record.clone());
        }
        live.insert(&target, record);
        Ok(())
    }

    /// The claim of an Instance that came, changed or went.
    fn of_instance(&self, context: &Context, change: &Change) -> Vec<Key> {
        let Some((namespace, name)) = events::address(change) else {
            return Vec::new();
        };
        let mut keys: Vec<Key> = self.wanted(context, namespace, name).into_iter().collect();
        if matches!(change, Change::Gone { .. }) {
            // A namespace that has changed hands: what ran kept its claim where it was.
            keys.extend(misplaced(context, namespace, |store| store.named(&claim::name(name))));
        }
        keys
    }

    /// Claims of all slots that a WorkloadDeployment has, had, or may have.
    fn of_slots(&self, context: &Context, change: &Change) -> Vec<Key> {
        let (namespace, deployment) = events::address(change).unwrap_or_default();
        let prefix = slots::prefix(deployment);
        let instances = events::picked(context, &Plane::Cell, kind::INSTANCE, |store| {
            store.starting(namespace, &prefix)
        });
        let mut keys = self.at_home(context, &instances);
        keys.extend(self.made_at_home(context, namespace, &prefix));
        keys.retain(|key| slots::deployment_of(&key.name) == Some(deployment));
        if asks_for_less(change) {
            let prefix = claim::name(&prefix);
            keys.extend(misplaced(context, namespace, |store| store.starting_anywhere(&prefix)));
        }
        keys
    }

    /// Claims that a namespace of the cell has or should have.
    fn within(&self, context: &Context, change: &Change) -> Vec<Key> {
        let (_, namespace) = events::address(change).unwrap_or_default();
        let instances = events::stored(context, &Plane::Cell, kind::INSTANCE, Some(namespace));
        let mut keys = self.at_home(context, &instances);
        for plane in events::projects(context) {
            let made = self.keys(context, &plane).into_iter();
            keys.extend(made.filter(|key| key.namespace == namespace));
        }
        keys
    }

    /// Claims that the Instances of a project have or should have.
    fn of_project(&self, context: &Context, id: &str) -> Vec<Key> {
        let plane = Plane::Project(id.to_owned());
        let instances = self.cell.instances(context, id);
        let wanted = instances
            .iter()
            .map(|one| Key::new(&plane, one.namespace(), one.name()));
        wanted.chain(self.made(context, id)).collect()
    }

    /// Claims in a project that this cell has made.
    fn made(&self, context: &Context, id: &str) -> Vec<Key> {
        let plane = Plane::Project(id.to_owned());
        let claims = events::stored(context, &plane, kind::RESOURCE_CLAIM, None);
        self.of_claims(context, id, &claims)
    }

    /// Those of a namespace of the cell that are where it says, and whose Instances have names that begin so.
    fn made_at_home(&self, context: &Context, namespace: &str, prefix: &str) -> Vec<Key> {
        let Some((project, within)) = self.cell.project_namespace_of(context, namespace) else {
            return Vec::new();
        };
        let (plane, prefix) = (Plane::Project(project), claim::name(prefix));
        let pick = |store: &Store| store.starting(&within, &prefix);
        let claims = events::picked(context, &plane, kind::RESOURCE_CLAIM, pick);
        let names = claims.iter().filter_map(|claim| claim::instance_name(claim));
        names.map(|name| Key::new(&plane, namespace, name)).collect()
    }

    /// Claims in a project, as keys.
    fn of_claims<'a>(
        &self,
        context: &Context,
        id: &str,
        claims: impl IntoIterator<Item = &'a Arc<Object>>,
    ) -> Vec<Key> {
        let plane = Plane::Project(id.to_owned());
        let instances = claims
            .into_iter()
            .flat_map(|claim| instances_of(&self.cell, context, id, claim));
        let key = |instance| Key {
            plane: plane.clone(),
            ..instance
        };
        instances.map(key).collect()
    }

    /// Claims that Instances have or should have, where it is known in which project.
    fn at_home(&self, context: &Context, instances: &[Arc<Object>]) -> Vec<Key> {
        let wanted = instances
            .iter()
            .filter_map(|one| self.wanted(context, one.namespace(), one.name()));
        wanted.collect()
    }

    fn wanted(&self, context: &Context, namespace: &str, name: &str) -> Option<Key> {
        let project = self.cell.project(context, namespace)?;
        Some(Key::new(&Plane::Project(project), namespace, name))
    }
}

/// Whether what became of an Instance may change what is claimed for it: its size, whether it waits for it, whether it is there.
fn concerns_claim(change: &Change) -> bool {
    let Change::Applied {
        before: Some(before),
        now,
    } = change
    else {
        return true;
    };
    let gates = |one: &Object| one.items("/spec/controller/schedulingGates").len();
    events::comes_or_goes(change)
        || gates(now) > gates(before)
        || !deployment::differs_by_gates_at_most(before, now)
        || before.metadata.labels != now.metadata.labels
}

/// Whether only the status has changed of a claim that says whose it is.
fn is_answer(change: &Change) -> bool {
    let Change::Applied {
        before: Some(before),
        now,
    } = change
    else {
        return false;
    };
    let says_whose = claim::instance_of(now).is_some() && now.annotation(annotations::SOURCE_UID).is_some();
    says_whose
        && before.metadata.owner_references == now.metadata.owner_references
        && !events::is_more_than_status(change)
}

/// Whether slots of a WorkloadDeployment are not asked for any more.
fn asks_for_less(change: &Change) -> bool {
    match change {
        Change::Applied {
            before: Some(before),
            now,
        } => slots::desired(now) < slots::desired(before),
        _ => matches!(change, Change::Gone { .. }),
    }
}

/// Claims in any project that say they are of a cell namespace, whatever that says now.
fn misplaced(context: &Context, namespace: &str, pick: impl Fn(&Store) -> Observed<Vec<Arc<Object>>>) -> Vec<Key> {
    let mut keys = Vec::new();
    for plane in events::projects(context) {
        let claims = events::picked(context, &plane, kind::RESOURCE_CLAIM, &pick);
        let of_it = claims.iter().filter_map(|one| claim::instance_of(one));
        let of_it = of_it.filter(|(within, _)| *within == namespace);
        keys.extend(of_it.map(|(within, name)| Key::new(&plane, within, name)));
    }
    keys
}

/// The Instances in the cell that a claim may be for. Without the label that says so, it is for the one of its name in
/// the cell namespace that is the claim's in its project: that one's reconcile sees whether it is ours, and stamps it
/// again.
pub(super) fn instances_of(cell: &Cell, context: &Context, project: &str, claim: &Object) -> Vec<Key> {
    if let Some((namespace, name)) = claim::instance_of(claim) {
        return vec![Key::new(&Plane::Cell, namespace, name)];
    }
    let Some(name) = claim::instance_name(claim) else {
        return Vec::new();
    };
    let project_namespace = ProjectNamespace::In {
        project,
        namespace: claim.namespace(),
    };
    let mut found = Vec::new();
    if cell.project_namespace(claim.namespace(), None) == project_namespace {
        found.push(Key::new(&Plane::Cell, claim.namespace(), name));
    }
    let namespaces = events::stored(context, &Plane::Cell, NAMESPACE, None);
    let ours = namespaces
        .iter()
        .filter(|one| cell.project_namespace(one.name(), Some(one)) == project_namespace);
    found.extend(ours.map(|one| Key::new(&Plane::Cell, one.name(), name)));
    found.dedup();
    found
}

/// What was found of the claim of one Instance.
pub(super) struct Claimed {
    namespace: String,
    name: String,
    cell_namespace: Option<Arc<Object>>,
    instance: Option<Arc<Object>>,
    /// The one in which the name stands for a slot.
    slot: Option<Arc<Object>>,
    project: Option<String>,
    /// The namespace in the project that the claim belongs in.
    project_namespace: Option<String>,
    claims: Observed<Vec<Arc<Object>>>,
    record: Option<Arc<Object>>,
}

impl Claimed {
    /// Looks at the cell, and at a `project`, or else the one that the cell namespace is of. `None` while the cell is
    /// unknown.
    pub(super) fn look(
        cell: &Cell,
        snapshot: &Snapshot<'_>,
        namespace: &str,
        name: &str,
        project: Option<&str>,
    ) -> Option<Self> {
        let plane = &Plane::Cell;
        let cell_namespace = snapshot.get(plane, NAMESPACE, "", namespace).known()?;
        let instance = snapshot.get(plane, kind::INSTANCE, namespace, name).known()?;
        let slot = of_slot(snapshot, namespace, name).known()?;
        let record = snapshot.read_live(plane, CONFIG_MAP, &cell.namespace, CLAIM_PROJECTS);
        let said = cell.project_namespace(namespace, cell_namespace.as_deref());
        let project = project.or(said.project()).map(str::to_owned);
        let project_namespace = match said {
            ProjectNamespace::In { project: of, namespace } if project.as_deref() == Some(of) => {
                Some(namespace.to_owned())
            }
            _ => None,
        };
        let claims = match &project {
            Some(project) => claims_of(snapshot, project, project_namespace.as_deref(), name),
            None => Observed::Unknown,
        };
        Some(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            cell_namespace,
            instance,
            slot,
            project,
            project_namespace,
            claims,
            record: record.flatten(),
        })
    }

    /// Why nothing is known of the claim, for people: the project's plane is unreachable, or the claim cannot be read.
    pub(super) fn trouble(&self, snapshot: &Snapshot<'_>) -> Option<String> {
        let plane = Plane::Project(self.project.clone()?);
        let store = snapshot.context.store(&plane, kind::RESOURCE_CLAIM)?;
        store.trouble().or_else(|| {
            let (project_namespace, name) = (self.project_namespace.as_deref()?, claim::name(&self.name));
            let why = store.why_unreadable(project_namespace, &name)?;
            Some(format!(
                "ResourceClaim {project_namespace}/{name} is there and cannot be read: {why}"
            ))
        })
    }

    /// As decisions take it; without it while this cell does not know who it is.
    pub(super) fn observe<R>(&self, cell: &Cell, view: impl FnOnce(Option<&Observation<'_>>) -> R) -> R {
        let Some(source) = cell.source() else { return view(None) };
        let claims = self.claims.as_ref().map(|all| refs(all));
        view(Some(&Observation {
            identity: &cell.identity_cache.identity(),
            source,
            project: self.project.as_deref().unwrap_or_default(),
            namespace: &self.namespace,
            name: &self.name,
            cell_namespace: self.cell_namespace.as_deref(),
            single: cell.single.as_deref(),
            instance: self.instance.as_deref(),
            deployments: &Vec::from_iter(self.slot.as_deref()),
            claims: claims.as_ref().map(Vec::as_slice),
            record: self.record.as_deref(),
            program_namespace: &cell.namespace,
        }))
    }
}

/// Claims of a project for an Instance of this name. One at home that cannot be read holds the name, whatever it grants.
fn claims_of(snapshot: &Snapshot<'_>, project: &str, home: Option<&str>, instance: &str) -> Observed<Vec<Arc<Object>>> {
    let (plane, name) = (Plane::Project(project.to_owned()), claim::name(instance));
    let at_home = home.map(|namespace| snapshot.get(&plane, kind::RESOURCE_CLAIM, namespace, &name));
    match at_home {
        Some(Observed::Unknown) => Observed::Unknown,
        _ => snapshot.named(&plane, kind::RESOURCE_CLAIM, &name),
    }
}

/// What an Instance says of a claim that was refused, or that was not tried because others were.
fn refusal(error: &ApplyError) -> Option<(&'static str, String)> {
    let failed = match error {
        ApplyError::Failed(failed) | ApplyError::CircuitOpen(failed, _) => failed,
        ApplyError::Unreachable(Plane::Project(_), _) => {
            return Some((reasons::QUOTA_BACKEND_UNAVAILABLE, chain(error)));
        }
        _ => return None,
    };
    if failed.target.kind != kind::RESOURCE_CLAIM {
        return None;
    }
    let namespace = failed.target.namespace.as_deref().unwrap_or_default();
    let reason = claim::refusal(failed.refusal.code(), failed.refusal.misses_namespace(namespace));
    let reported = failed.reported();
    // One that was not tried says so.
    let reported = if matches!(error, ApplyError::CircuitOpen(..)) {
        format!("not retried yet: {reported}")
    } else {
        reported
    };
    Some((reason, reported))
}

/// The claim of another owner that holds the name of ours.
fn held(plan: &Plan) -> Option<&Target> {
    plan.notes.iter().find_map(|note| match note {
        Note::Foreign(target) if target.kind == kind::RESOURCE_CLAIM => Some(target),
        _ => None,
    })
}

/// Who made it, as far as it was seen.
fn maker(plan: &Plan) -> Option<&str> {
    plan.notes.iter().find_map(|note| match note {
        Note::Maker(maker) => Some(maker.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::apply::{Failed, Refusal, ServerMessage};

    fn failed(kind: kind::Kind, code: u16) -> Box<Failed> {
        let message: ServerMessage = "no".to_owned().into();
        Box::new(Failed {
            target: Target::namespaced(&Plane::Project("p".to_owned()), kind, "n", "instance-a"),
            verb: "create",
            refusal: if code == 429 {
                Refusal::Busy {
                    code,
                    message,
                    retry_after: None,
                }
            } else {
                Refusal::Refused { code, message }
            },
        })
    }

    #[test]
    fn a_claim_that_was_not_tried_has_a_reason_too() {
        let (claim, soon) = (kind::RESOURCE_CLAIM, Duration::from_secs(1));
        let away = |plane| ApplyError::Unreachable(plane, soon);
        for (error, reason) in [
            (ApplyError::Failed(failed(claim, 403)), Some("QuotaMisconfigured")),
            (
                ApplyError::CircuitOpen(failed(claim, 403), soon),
                Some("QuotaMisconfigured"),
            ),
            (ApplyError::Failed(failed(claim, 429)), Some("QuotaBackendUnavailable")),
            (
                ApplyError::CircuitOpen(failed(claim, 401), soon),
                Some("QuotaBackendUnavailable"),
            ),
            (away(Plane::Project("p".to_owned())), Some("QuotaBackendUnavailable")),
            (away(Plane::Hub), None),
            (ApplyError::Failed(failed(kind::INSTANCE, 403)), None),
            (ApplyError::NotAllowed, None),
        ] {
            let reported = refusal(&error);
            assert_eq!(reported.as_ref().map(|(reason, _)| *reason), reason, "{error}");
            assert!(reported.is_none_or(|(_, message)| !message.is_empty()), "{error}");
        }
    }
}
