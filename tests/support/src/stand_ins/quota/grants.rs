//! A budget that is written down on the project's API server, where people can change it: the sum of its ResourceGrants.

use std::collections::BTreeMap;

use futures::StreamExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_all};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::watch;

use super::Setting;
use super::budget::{Amounts, Budget};
use crate::kind::RESOURCE_GRANT;

/// Grants by namespace and name.
type Grants = BTreeMap<(String, String), Amounts>;

/// Sets the budget to what is granted, and again whenever that changes. While nothing is granted nothing is judged: claims
/// wait as they do in a project without AllowanceBucket.
pub(super) async fn follow(client: Client, setting: watch::Sender<Setting>) {
    let all = Api::<DynamicObject>::all_with(client, &RESOURCE_GRANT.resource());
    let mut events = watch_all(all, watcher::Config::default()).default_backoff().boxed();
    let (mut grants, mut listing) = (Grants::new(), Grants::new());
    while let Some(event) = events.next().await {
        let key = |grant: &DynamicObject| (grant.namespace().unwrap_or_default(), grant.name_any());
        match event {
            Ok(Event::Apply(grant)) => {
                grants.insert(key(&grant), granted(&grant));
            }
            Ok(Event::Delete(grant)) => {
                grants.remove(&key(&grant));
            }
            Ok(Event::Init) => {
                listing.clear();
                continue;
            }
            Ok(Event::InitApply(grant)) => {
                listing.insert(key(&grant), granted(&grant));
                continue;
            }
            Ok(Event::InitDone) => grants = std::mem::take(&mut listing),
            // The server is unreachable: the watcher connects again by itself.
            Err(_) => continue,
        }
        let (budget, on) = (sum(&grants), !grants.is_empty());
        setting.send_modify(|setting| *setting = Setting { budget, on });
    }
}

fn sum(grants: &Grants) -> Budget {
    let sum = grants.values().fold(Amounts::default(), |sum, one| sum.plus(*one));
    Budget {
        instances: Some(sum.instances),
        vcpus: Some(sum.vcpus),
        memory: Some(sum.memory),
    }
}

/// What one grant allows. Resources that compute does not use are not ours to count.
fn granted(grant: &DynamicObject) -> Amounts {
    let mut granted = Amounts::default();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for allowance in list(&grant.data["spec"]["allowances"]) {
        let Some(amount) = granted.of(allowance["resourceType"].as_str().unwrap_or_default()) else {
            continue;
        };
        for bucket in list(&allowance["buckets"]) {
            *amount = amount.saturating_add(bucket["amount"].as_i64().unwrap_or(0));
        }
    }
    granted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn buckets_and_grants_add_up() {
        let grant: DynamicObject =
            serde_json::from_value(json!({ "metadata": { "name": "it" }, "spec": { "allowances": [
            { "resourceType": "compute.datumapis.com/instances", "buckets": [{ "amount": 2 }, { "amount": 1 }] },
            { "resourceType": "compute.datumapis.com/memory", "buckets": [{ "amount": 2048 }] },
            { "resourceType": "example.com/gpus", "buckets": [{ "amount": 9 }] },
        ] } }))
            .unwrap();
        let one = granted(&grant);
        assert_eq!(
            one,
            Amounts {
                instances: 3,
                vcpus: 0,
                memory: 2048
            }
        );
        let key = |name: &str| ("default".to_owned(), name.to_owned());
        let two = sum(&[(key("a"), one), (key("b"), one)].into());
        assert_eq!((two.instances, two.vcpus, two.memory), (Some(6), Some(0), Some(4096)));
        let bare: DynamicObject =
            serde_json::from_value(json!({ "metadata": { "name": "it" }, "spec": null })).unwrap();
        assert_eq!(granted(&bare), Amounts::default());
    }
}
