//! Do the members fit?

use std::collections::BTreeMap;

use super::{Check, CheckResult, Id, observe::Observed};
use crate::planes::karmada::Member;

pub(super) fn checks(observed: &Observed) -> Vec<Check> {
    let Ok(members) = &observed.members else {
        return [Id::MembersPull, Id::MembersCity]
            .map(|id| Check::skip(id, "the clusters could not be read"))
            .into();
    };
    let pull = match observed.webhook() {
        Some(webhook) => Check::of(
            Id::MembersPull,
            reachable_for_agents(members, webhook.client_config.service.is_some()),
        ),
        None => Check::skip(Id::MembersPull, "our webhook is not registered"),
    };
    vec![pull, Check::new(Id::MembersCity, cities(members, &observed.city_label))]
}

fn reachable_for_agents(members: &[Member], by_service: bool) -> Result<String, String> {
    let pull = Member::pulling(members);
    match (pull.is_empty(), by_service) {
        (true, _) => Ok("there is no Pull member".to_owned()),
        (false, false) => Ok(format!("by URL; run this check beside the agent of {pull} too")),
        (false, true) => Err(format!(
            "registered by Service, which the agent of {pull} cannot resolve"
        )),
    }
}

/// Two clusters of one city are legal (placement takes one); two spellings of one city are two cities to Karmada.
fn cities(members: &[Member], label: &str) -> CheckResult {
    let mut spellings: BTreeMap<String, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for member in members {
        if let Some(city) = member.labels.get(label) {
            spellings
                .entry(city.to_lowercase())
                .or_default()
                .entry(city)
                .or_default()
                .push(&member.name);
        }
    }
    let shown = |cities: &BTreeMap<&str, Vec<&str>>| {
        cities
            .iter()
            .map(|(city, clusters)| format!("{city} on {}", clusters.join(", ")))
            .collect::<Vec<_>>()
            .join(" and ")
    };
    let split: Vec<_> = spellings
        .values()
        .filter(|cities| cities.len() > 1)
        .map(shown)
        .collect();
    let shared: Vec<_> = spellings
        .values()
        .filter(|cities| cities.values().any(|clusters| clusters.len() > 1))
        .map(shown)
        .collect();
    let unnamed: Vec<_> = members
        .iter()
        .filter(|member| !member.labels.contains_key(label))
        .map(|member| member.name.as_str())
        .collect();
    if !split.is_empty() {
        CheckResult::Fail(format!("one city in two spellings: {}", split.join("; ")))
    } else if !shared.is_empty() {
        CheckResult::Warn(format!(
            "several clusters of one city, of which each object goes to one only: {}",
            shared.join("; ")
        ))
    } else if !unnamed.is_empty() {
        CheckResult::Warn(format!("no label {label} on {}", unnamed.join(", ")))
    } else {
        CheckResult::Pass(format!("{} city or cities", spellings.len()))
    }
}
