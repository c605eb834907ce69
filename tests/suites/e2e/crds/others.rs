//! Kinds of other owners, as our types read and write them.

use anyhow::{Context, Result, ensure};
use kube::api::{Api, ListParams, PostParams};
use popcell_api::karmada::{Cluster, PropagationPolicy, PropagationPolicySpec, ResourceBinding};
use popcell_api::kind::{self, Kind};
use popcell_api::networking::{
    IP_FAMILY_IPV4, LocalReference, Location, LocationBinding, LocationBindingSpec, LocationSpec, Network,
    NetworkBinding, NetworkBindingSpec, SUBNET_CLASS_PRIVATE, SubnetClaim, SubnetClaimSpec,
};
use popcell_api::quota::{self, ObjectReference, ResourceClaim, ResourceClaimSpec, ResourceRequest};
use popcell_api::resource_manager::{self, Project};
use popcell_api::{LocationReference, NetworkReference, ObservedCondition, conditions, labels};
use popcell_suites::environment::{DFW, Environment, SOON};
use popcell_test_support::{Plane, eventually, objects, stand_ins};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::plane_with_namespace;
use crate::planes::{BINDING, deployed};

/// Our types write what the stand-ins take, and read how new objects are born.
pub(crate) async fn stand_in(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    for kind in stand_ins::ALL {
        plane.apply(&stand_ins::crd(&kind)?).await?;
    }
    for kind in stand_ins::ALL {
        // A new kind is served a moment after its CRD is stored.
        let group = kind.api_version();
        eventually(&format!("{} is served", kind.kind), SOON, async || {
            let served = plane.client().list_api_group_resources(&group).await?.resources;
            ensure!(served.iter().any(|resource| resource.name == kind.plural), "{served:?}");
            Ok(())
        })
        .await?;
    }
    networks(&plane, namespace).await?;
    claims(&plane, namespace).await
}

async fn networks(plane: &Plane, namespace: &str) -> Result<()> {
    let location = LocationReference {
        name: "dfw-a".to_owned(),
        namespace: None,
    };
    let topology = [(labels::CITY_CODE.to_owned(), "DFW".to_owned())].into();
    // What only others write is not written whole by our types.
    let mut site = json!(Location::new(
        "dfw-a",
        &kind::LOCATION.resource(),
        LocationSpec { topology }
    ));
    site["spec"]["locationClassName"] = json!("datum-managed");
    plane.create(&site, false).await?;
    let topology = [(labels::CITY_CODE.to_owned(), "DFW".to_owned())].into();
    let binding = LocationBindingSpec {
        location_ref: Some(location.clone()),
        topology,
    };
    let binding = LocationBinding::new("dfw", &kind::LOCATION_BINDING.resource(), binding);
    make(plane, None, kind::LOCATION_BINDING, &binding).await?;
    let found = api::<LocationBinding>(plane, None, kind::LOCATION_BINDING)
        .list(&ListParams::default())
        .await?;
    ensure!(found.items.iter().any(|each| each.spec == binding.spec), "{found:?}");

    let network = Network::new("default", &kind::NETWORK.resource(), Some(kube::core::NotUsed {}));
    make(plane, Some(namespace), kind::NETWORK, &network).await?;
    let spec = NetworkBindingSpec {
        network: NetworkReference {
            name: "default".to_owned(),
            namespace: None,
        },
        location: location.clone(),
    };
    let binding = NetworkBinding::new("web-us-dfw-net-0", &kind::NETWORK_BINDING.resource(), spec);
    let made = make(plane, Some(namespace), kind::NETWORK_BINDING, &binding).await?;
    ensure!(made.spec == binding.spec);
    born(
        made.status.map(|status| status.conditions),
        conditions::READY,
        "Unknown",
        "Pending",
    )?;
    let spec = SubnetClaimSpec {
        subnet_class: SUBNET_CLASS_PRIVATE.to_owned(),
        network_context: LocalReference {
            name: "default-dfw-a".to_owned(),
        },
        location,
        ip_family: IP_FAMILY_IPV4.to_owned(),
    };
    let claim = SubnetClaim::new("default-dfw-a-0", &kind::SUBNET_CLAIM.resource(), spec);
    let made = make(plane, Some(namespace), kind::SUBNET_CLAIM, &claim).await?;
    ensure!(made.spec == claim.spec);
    born(
        made.status.map(|status| status.conditions),
        conditions::READY,
        "Unknown",
        "Pending",
    )
}

/// A claim is born refused, for a reason that is no refusal.
async fn claims(plane: &Plane, namespace: &str) -> Result<()> {
    let project = ObjectReference {
        api_group: resource_manager::GROUP.to_owned(),
        kind: resource_manager::PROJECT_KIND.to_owned(),
        name: "p1".to_owned(),
        namespace: String::new(),
    };
    let object = Project::new("p1", &kind::PROJECT.resource(), Some(kube::core::NotUsed {}));
    make(plane, None, kind::PROJECT, &object).await?;
    let spec = ResourceClaimSpec {
        consumer_ref: Some(project.clone()),
        requests: vec![ResourceRequest {
            resource_type: quota::INSTANCES.to_owned(),
            amount: 1,
        }],
        resource_ref: Some(project),
    };
    let claim = ResourceClaim::new("instance-web-0", &kind::RESOURCE_CLAIM.resource(), spec);
    let made = make(plane, Some(namespace), kind::RESOURCE_CLAIM, &claim).await?;
    ensure!(made.spec == claim.spec);
    born(
        made.status.map(|status| status.conditions),
        quota::GRANTED,
        "False",
        conditions::reasons::PENDING_EVALUATION,
    )
}

/// A policy that our types write is the one that Karmada knows; its cluster and its binding can be read.
pub(crate) async fn karmada(environment: &Environment, namespace: &str) -> Result<()> {
    let (hub, _) = deployed(environment, namespace, "DFW", DFW, 1).await?;
    let cluster = api::<Cluster>(&hub, None, kind::CLUSTER).get(DFW).await?;
    ensure!(
        !cluster.spec.id.is_empty() && cluster.spec.sync_mode == "Push",
        "{cluster:?}"
    );
    let ready = cluster.status.context("no status")?.conditions;
    ensure!(
        ready.iter().any(|each| each.type_ == "Ready" && each.status == "True"),
        "{ready:?}"
    );

    let bindings = api::<ResourceBinding>(&hub, Some(namespace), kind::RESOURCE_BINDING);
    let binding = eventually("the binding is placed", SOON, async || {
        let binding = bindings.get(BINDING).await?;
        let seen = binding
            .status
            .as_ref()
            .and_then(|status| status.scheduler_observed_generation);
        ensure!(seen.is_some() && seen == binding.metadata.generation, "{binding:?}");
        Ok(binding)
    })
    .await?;
    ensure!(
        binding.spec.clusters.len() == 1 && binding.spec.clusters[0].name == DFW,
        "{binding:?}"
    );
    ensure!(
        binding.spec.resource.kind == kind::WORKLOAD_DEPLOYMENT.kind,
        "{binding:?}"
    );

    let policies = api::<PropagationPolicy>(&hub, Some(namespace), kind::PROPAGATION_POLICY);
    let spec = objects::city_policy(namespace, "ORD")["spec"].clone();
    let spec: PropagationPolicySpec = serde_json::from_value(spec)?;
    let policy = PropagationPolicy::new("city-ord", &kind::PROPAGATION_POLICY.resource(), spec.clone());
    let mut made = policies.create(&PostParams::default(), &policy).await?;
    // The defaults that Karmada's webhook adds, and nothing else.
    for (field, default) in [
        ("priority", json!(0)),
        ("preemption", json!("Never")),
        ("schedulerName", json!("default-scheduler")),
    ] {
        let found = made.spec.rest.remove(field);
        ensure!(found == Some(default), "{field} is {found:?}");
    }
    let selector = made.spec.resource_selectors.first_mut().context("no selector")?;
    ensure!(selector.namespace.take().as_deref() == Some(namespace));
    ensure!(made.spec == spec, "{:?} is not {spec:?}", made.spec);
    Ok(())
}

fn api<K>(plane: &Plane, namespace: Option<&str>, kind: Kind) -> Api<K>
where
    K: kube::Resource<DynamicType = kube::core::ApiResource, Scope = kube::core::DynamicResourceScope>,
{
    let client = plane.client().clone();
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &kind.resource()),
        None => Api::all_with(client, &kind.resource()),
    }
}

/// What the server makes of the object.
async fn make<K>(plane: &Plane, namespace: Option<&str>, kind: Kind, object: &K) -> Result<K>
where
    K: kube::Resource<DynamicType = kube::core::ApiResource, Scope = kube::core::DynamicResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let made = api::<K>(plane, namespace, kind)
        .create(&PostParams::default(), object)
        .await;
    made.with_context(|| format!("failed to make a {}", kind.kind))
}

fn born(found: Option<Vec<ObservedCondition>>, type_: &str, status: &str, reason: &str) -> Result<()> {
    let found = found.context("no status")?;
    let condition = found.iter().find(|condition| condition.type_ == type_);
    let condition = condition.with_context(|| format!("no condition {type_} in {found:?}"))?;
    ensure!(
        condition.status == status && condition.reason == reason,
        "{condition:?}"
    );
    Ok(())
}
