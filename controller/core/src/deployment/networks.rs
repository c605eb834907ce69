//! Networks of a WorkloadDeployment in its cell: a NetworkBinding for each interface, a SubnetClaim for each
//! NetworkContext. Neither is deleted here: bindings are garbage-collected with the WorkloadDeployment, claims with their
//! context.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use popcell_api::conditions::{self as types, messages, reasons};
use popcell_api::kind::{self, NETWORK_BINDING, SUBNET_CLAIM};
use popcell_api::labels;
use popcell_api::names::{NETWORK_BINDING_INFIX, SUBNET_CLAIM_SUFFIX};
use popcell_api::networking::{IP_FAMILY_IPV4, SUBNET_CLASS_PRIVATE};
use serde_json::{Value, json};

use super::template::same;
use crate::conditions;
use crate::edit::Edit;
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, Note, Plan, Plane, Target};
use crate::references;
use crate::workload::owner;

/// What the cell has of networks. Each is unknown where its kind is not served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Networks<'a> {
    /// All Locations.
    pub locations: Observed<&'a [&'a Object]>,
    /// NetworkBindings of the namespace: at least those at the names of its interfaces.
    pub bindings: Observed<&'a [&'a Object]>,
    /// All NetworkContexts.
    pub contexts: Observed<&'a [&'a Object]>,
    /// All SubnetClaims.
    pub claims: Observed<&'a [&'a Object]>,
    /// All Subnets.
    pub subnets: Observed<&'a [&'a Object]>,
    /// Whether Networks of other namespaces are out of reach: a cell has those of all projects side by side.
    pub own_namespace_only: bool,
}

/// How far they are.
#[derive(Debug, Default, PartialEq)]
pub(super) struct State {
    /// Reference to the Location of the city.
    pub(super) location: Option<Value>,
    /// Locations are known, and none has the city.
    pub(super) nowhere: bool,
    /// Every network is there.
    pub(super) ready: bool,
    /// An object of another owner at a name that is needed.
    pub(super) held: Option<Target>,
}

/// Name of the NetworkBinding of an interface.
pub fn binding_name(deployment: &str, interface: usize) -> String {
    format!("{}{interface}", binding_prefix(deployment))
}

/// What the names of the NetworkBindings of a WorkloadDeployment begin with.
pub fn binding_prefix(deployment: &str) -> String {
    format!("{deployment}{NETWORK_BINDING_INFIX}")
}

/// The Location of a city: the first by namespace and name.
pub(super) fn location<'a>(locations: &[&'a Object], city: &str) -> Option<&'a Object> {
    let serves = |location: &&&Object| {
        let topology = location.at("/spec/topology");
        topology.and_then(|topology| topology.get(labels::CITY_CODE)?.as_str()) == Some(city) && !location.deleting()
    };
    let key = |location: &&&Object| (location.namespace().to_owned(), location.name().to_owned());
    locations.iter().filter(serves).min_by_key(key).copied()
}

/// A reference; the namespace only where Locations have one.
pub(super) fn reference(location: &Object) -> Value {
    match location.namespace() {
        "" => json!({ "name": location.name() }),
        namespace => json!({ "name": location.name(), "namespace": namespace }),
    }
}

/// Why the city has not the network of the first interface that lacks one: the message of a reason that the user reads.
/// `bindings` are NetworkBindings of the namespace.
pub(crate) fn missing(
    deployment: &Object,
    interfaces: &[Value],
    bindings: &[&Object],
    own_namespace_only: bool,
) -> Option<String> {
    let city = deployment.text("/spec/cityCode").unwrap_or_default();
    interfaces.iter().enumerate().find_map(|(index, interface)| {
        let network = interface.get("network")?;
        let text = |field| network.get(field).and_then(Value::as_str).unwrap_or_default();
        if own_namespace_only && references::is_elsewhere(network, deployment.namespace()) {
            return Some(messages::network_elsewhere(text("namespace"), text("name"), city));
        }
        let name = binding_name(deployment.name(), index);
        let binding = bindings.iter().find(|one| one.name() == name)?;
        is_without_network(binding).then(|| messages::network_not_in_city(text("name"), city))
    })
}

/// Whether the network services found no Network for a NetworkBinding.
pub(crate) fn is_without_network(binding: &Object) -> bool {
    let ready = conditions::of(binding, types::READY);
    let says = |field, value| ready.is_some_and(|ready| conditions::text(ready, field) == value);
    says("status", "False") && says("reason", reasons::NETWORK_NOT_FOUND)
}

/// Makes what is missing, and says how far everything is. `plan` is the networks' own.
pub(super) fn settle(deployment: &Object, seen: &Networks<'_>, plan: &mut Plan) -> State {
    let Observed::Known(locations) = seen.locations else {
        return State::default();
    };
    let city = deployment.text("/spec/cityCode").unwrap_or_default();
    let Some(location) = location(locations, city) else {
        return State {
            nowhere: true,
            ..State::default()
        };
    };
    let at = reference(location);
    let reconcile = Reconcile { deployment, seen, at };
    let contexts = reconcile.bindings(plan);
    let ready = contexts.is_some_and(|contexts| {
        // All are looked at, so that all are asked for at once.
        let ready: Vec<bool> = contexts.iter().map(|context| reconcile.subnet(context, plan)).collect();
        ready.iter().all(|ready| *ready)
    });
    let held = plan.notes.iter().find_map(|note| match note {
        Note::Foreign(target) => Some(target.clone()),
        _ => None,
    });
    State {
        location: Some(reconcile.at),
        nowhere: false,
        ready,
        held,
    }
}

struct Reconcile<'a> {
    deployment: &'a Object,
    seen: &'a Networks<'a>,
    at: Value,
}

impl<'a> Reconcile<'a> {
    /// The contexts of all interfaces, once every binding is ready.
    fn bindings(&self, plan: &mut Plan) -> Option<Vec<&'a Object>> {
        let bindings = self.seen.bindings.known()?;
        let interfaces = self.deployment.items("/spec/template/spec/networkInterfaces");
        let mut contexts: Option<Vec<&'a Object>> = Some(Vec::new());
        for (index, interface) in interfaces.iter().enumerate() {
            if self.is_out_of_reach(interface) {
                contexts = None;
                continue;
            }
            let name = binding_name(self.deployment.name(), index);
            let held = bindings.iter().copied().find(|one| one.name() == name);
            let spec = json!({ "network": interface.get("network"), "location": self.at });
            let ready = match held {
                None => {
                    plan.actions.push(self.create_binding(&name, &spec));
                    None
                }
                Some(binding) => self.binding(binding, &spec, plan),
            };
            match (ready, &mut contexts) {
                (Some(context), Some(contexts)) if contexts.iter().any(|one| one.uid() == context.uid()) => {}
                (Some(context), Some(contexts)) => contexts.push(context),
                (None, contexts) => *contexts = None,
                (_, None) => {}
            }
        }
        contexts
    }

    /// Whether an interface names a Network that may be another tenant's: it is not bound.
    fn is_out_of_reach(&self, interface: &Value) -> bool {
        let network = interface.get("network");
        let is_elsewhere = |network| references::is_elsewhere(network, self.deployment.namespace());
        self.seen.own_namespace_only && network.is_some_and(is_elsewhere)
    }

    fn create_binding(&self, name: &str, spec: &Value) -> Action {
        let mut object = Object::new(name, &NETWORK_BINDING.resource())
            .within(self.deployment.namespace())
            .data(json!({ "spec": spec }));
        object.metadata.owner_references = Some(vec![owner(kind::WORKLOAD_DEPLOYMENT, self.deployment, true)]);
        Action::create(&Plane::Cell, NETWORK_BINDING, object)
    }

    /// The context of one that is ready, and asks for what the interface asks for.
    fn binding(&self, binding: &Object, spec: &Value, plan: &mut Plan) -> Option<&'a Object> {
        let target = || Target::of(&Plane::Cell, NETWORK_BINDING, binding);
        if !binding.owners().iter().any(|one| one.uid == self.deployment.uid()) {
            plan.notes.push(Note::Foreign(target()));
            return None;
        }
        if binding.deleting() {
            plan.notes.push(Note::WaitsFor(target()));
            return None;
        }
        if !same(binding.at("/spec").unwrap_or(&Value::Null), spec) {
            let edit = Edit::of(&Plane::Cell, NETWORK_BINDING, binding).spec(spec);
            plan.actions.extend(edit.action());
            return None;
        }
        let text = |pointer| binding.text(pointer).unwrap_or_default();
        let (namespace, name) = (
            text("/status/networkContextRef/namespace"),
            text("/status/networkContextRef/name"),
        );
        if !is_ready(binding) || name.is_empty() {
            return None;
        }
        let contexts = self.seen.contexts.known()?;
        let found = contexts
            .iter()
            .copied()
            .find(|one| one.namespace() == namespace && one.name() == name);
        found.filter(|context| is_ready(context))
    }

    /// Whether the subnet of a context is ready; requests it where no claim exists.
    fn subnet(&self, context: &Object, plan: &mut Plan) -> bool {
        let (Observed::Known(claims), Observed::Known(subnets)) = (self.seen.claims, self.seen.subnets) else {
            return false;
        };
        let Some(claim) = claims.iter().find(|claim| self.is_for(claim, context)) else {
            let name = format!("{}{SUBNET_CLAIM_SUFFIX}", context.name());
            let taken = claims
                .iter()
                .find(|one| one.namespace() == context.namespace() && one.name() == name);
            match taken {
                None => self.ask(context, &name, plan),
                Some(other) if other.deleting() => {
                    plan.notes
                        .push(Note::WaitsFor(Target::of(&Plane::Cell, SUBNET_CLAIM, other)));
                }
                Some(other) => plan
                    .notes
                    .push(Note::Foreign(Target::of(&Plane::Cell, SUBNET_CLAIM, other))),
            }
            return false;
        };
        let subnet = claim.text("/status/subnetRef/name").unwrap_or_default();
        is_ready(claim)
            && subnets
                .iter()
                .any(|one| one.namespace() == claim.namespace() && one.name() == subnet && is_ready(one))
    }

    fn is_for(&self, claim: &Object, context: &Object) -> bool {
        claim.namespace() == context.namespace()
            && !claim.deleting()
            && claim.text("/spec/subnetClass") == Some(SUBNET_CLASS_PRIVATE)
            && claim.text("/spec/ipFamily") == Some(IP_FAMILY_IPV4)
            && claim.text("/spec/networkContext/name") == Some(context.name())
            && claim.at("/spec/location").is_some_and(|at| same(at, &self.at))
    }

    /// Another WorkloadDeployment of the same network may ask at the same time, under the same name: one plan asks once.
    fn ask(&self, context: &Object, name: &str, plan: &mut Plan) {
        let spec = json!({
            "subnetClass": SUBNET_CLASS_PRIVATE,
            "networkContext": { "name": context.name() },
            "location": self.at,
            "ipFamily": IP_FAMILY_IPV4,
        });
        let mut object = Object::new(name, &SUBNET_CLAIM.resource())
            .within(context.namespace())
            .data(json!({ "spec": spec }));
        object.metadata.owner_references = Some(vec![OwnerReference {
            api_version: kind::NETWORK_CONTEXT.api_version(),
            ..owner(kind::NETWORK_CONTEXT, context, false)
        }]);
        plan.actions.push(Action::create(&Plane::Cell, SUBNET_CLAIM, object));
    }
}

fn is_ready(object: &Object) -> bool {
    conditions::says(object, types::READY, "True")
}
