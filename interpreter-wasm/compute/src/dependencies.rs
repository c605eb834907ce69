//! What has to be in a cell before the instances of a template can run there (InterpretDependency): the Networks of its
//! interfaces, and the ConfigMaps and Secrets that its containers, volumes and image pulls name; and what an earlier template named,
//! until no Instance is of that one any more. Each comes once, ordered by kind and name.
//!
//! All are in the object's own namespace: Karmada attaches what an object depends on to that object's namespace. A Network
//! of another namespace is skipped; the cell reports it on the object. Karmada skips what does not exist on the hub, and
//! distributes it once it does.
//!
//! A name that no object can have is refused by its place, and so is a template that names more than [`MOST`] objects:
//! an answer without them would take them out of the cells.

use std::collections::BTreeSet;

use popcell_contract::previous_references;
use popcell_sdk::names::{is_dns_label, is_dns_subdomain};
use popcell_sdk::prelude::*;

/// The most objects that one template may name: what the host takes in one answer.
const MOST: usize = 1000;

const SPEC: &str = "/spec/template/spec";
const INTERFACES: &str = "/spec/template/spec/networkInterfaces";
const CONTAINERS: &str = "/spec/template/spec/runtime/sandbox/containers";
const PULL_SECRETS: &str = "/spec/template/spec/runtime/sandbox/imagePullSecrets";
const VOLUMES: &str = "/spec/template/spec/volumes";

/// Group and version, and kind.
type Kind = (&'static str, &'static str);

const CONFIG_MAP: Kind = ("v1", "ConfigMap");
const SECRET: Kind = ("v1", "Secret");
const NETWORK: Kind = ("networking.datumapis.com/v1alpha", "Network");

/// The dependencies of a resource template.
pub(crate) fn interpret(object: &Object) -> Result<Vec<Dependency>> {
    let mut found = Found {
        object,
        names: BTreeSet::new(),
    };
    found.networks()?;
    found.each(CONTAINERS, Found::environment)?;
    found.each(PULL_SECRETS, |found, secret| {
        found.add(SECRET, &format!("{secret}/name"))
    })?;
    found.each(VOLUMES, |found, volume| {
        found.add(CONFIG_MAP, &format!("{volume}/configMap/name"))?;
        found.add(SECRET, &format!("{volume}/secret/secretName"))
    })?;
    found.previous();
    if found.names.len() > MOST {
        let message = format!(
            "names {} objects that its cell needs, more than {MOST}",
            found.names.len()
        );
        return Err(Error::invalid(SPEC, message));
    }
    let dependency = |((api_version, kind), name): (Kind, String)| Dependency {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: object.namespace().map(str::to_owned),
        name: Some(name),
        label_selector: None,
    };
    Ok(found.names.into_iter().map(dependency).collect())
}

struct Found<'a> {
    object: &'a Object,
    names: BTreeSet<(Kind, String)>,
}

impl Found<'_> {
    fn networks(&mut self) -> Result<()> {
        self.each(INTERFACES, |found, interface| {
            let namespace = found.object.text(&format!("{interface}/network/namespace"))?;
            let elsewhere = namespace.is_some_and(|one| !one.is_empty() && Some(one) != found.object.namespace());
            if elsewhere {
                return Ok(());
            }
            found.add(NETWORK, &format!("{interface}/network/name"))
        })
    }

    /// What an earlier template named; what no object can be called is left out, since the controller writes it and no user.
    fn previous(&mut self) {
        let text = self
            .object
            .annotation(previous_references::ANNOTATION)
            .unwrap_or_default();
        for (plural, name) in previous_references::parse(text) {
            let kind = match plural {
                "networks" if is_dns_label(name) => NETWORK,
                "configmaps" if is_dns_subdomain(name) => CONFIG_MAP,
                "secrets" if is_dns_subdomain(name) => SECRET,
                _ => continue,
            };
            self.names.insert((kind, name.to_owned()));
        }
    }

    fn environment(&mut self, container: &str) -> Result<()> {
        self.each(&format!("{container}/env"), |found, variable| {
            found.add(CONFIG_MAP, &format!("{variable}/valueFrom/configMapKeyRef/name"))?;
            found.add(SECRET, &format!("{variable}/valueFrom/secretKeyRef/name"))
        })?;
        self.each(&format!("{container}/envFrom"), |found, source| {
            found.add(CONFIG_MAP, &format!("{source}/configMapRef/name"))?;
            found.add(SECRET, &format!("{source}/secretRef/name"))
        })
    }

    /// Looks at each item of a list, which is given by its place.
    fn each(&mut self, list: &str, mut look: impl FnMut(&mut Self, &str) -> Result<()>) -> Result<()> {
        let length = self.object.items(list)?.map_or(0, <[Json]>::len);
        (0..length).try_for_each(|index| look(self, &format!("{list}/{index}")))
    }

    fn add(&mut self, kind: Kind, place: &str) -> Result<()> {
        let Some(name) = self.object.text(place)?.filter(|name| !name.is_empty()) else {
            return Ok(());
        };
        let is_name = if kind == NETWORK {
            is_dns_label
        } else {
            is_dns_subdomain
        };
        if !is_name(name) {
            let message = format!("expected the name of a {}, found {name:?}", kind.1);
            return Err(Error::invalid(place, message));
        }
        self.names.insert((kind, name.to_owned()));
        Ok(())
    }
}
