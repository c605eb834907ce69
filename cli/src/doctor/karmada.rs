//! What Karmada has: is our webhook registered as it should be, does another interpreter answer instead, do the members fit?

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;
use popcell_core::object::{Fields, Object};
use popcell_engine::{Description, Implemented};
use popcell_protocol::{Gvk, Operation};

use super::{
    Check, CheckResult, Id,
    observe::{Observed, Seen, questions},
};
use crate::{
    planes::karmada::{Served, Webhook, pulling},
    register::shadow::{self, Shadow},
};

const UNREGISTERED: &str = "our webhook is not registered";

const OF_WEBHOOK: [Id; 5] = [
    Id::ConfigTimeout,
    Id::ConfigContextVersion,
    Id::ConfigRulesExplicit,
    Id::ConfigRulesMatchModules,
    Id::ConfigKindsServed,
];

/// Of our entry.
pub(super) fn registration(observed: &Observed) -> Vec<Check> {
    let unreadable = [
        observed.configurations.as_ref().err(),
        observed.customizations.as_ref().err(),
        observed.members.as_ref().err(),
    ];
    let unreadable = unreadable.into_iter().flatten().join("; ");
    let reachable = if unreadable.is_empty() {
        Ok(&observed.server)
    } else {
        Err(&unreadable)
    };
    let mut checks = vec![Check::of(Id::KarmadaReachable, reachable)];
    if observed.configurations.is_err() {
        let ids = [Id::ConfigPresent].into_iter().chain(OF_WEBHOOK);
        checks.extend(ids.map(|id| Check::skip(id, "the configurations could not be read")));
        return checks;
    }
    let (config, name) = (&observed.names.config_name, &observed.names.webhook_name);
    let Some(webhook) = observed.webhook() else {
        let missing = format!("there is no webhook {name} in ResourceInterpreterWebhookConfiguration {config}");
        checks.push(Check::new(Id::ConfigPresent, CheckResult::Fail(missing)));
        checks.extend(OF_WEBHOOK.map(|id| Check::skip(id, UNREGISTERED)));
        return checks;
    };
    let matches = match &observed.modules {
        Some(modules) => matching(webhook, modules),
        None => CheckResult::Skip("give --module-dir to compare with the modules".to_owned()),
    };
    checks.extend([
        Check::new(Id::ConfigPresent, CheckResult::Pass(format!("{config}/{name}"))),
        Check::of(Id::ConfigTimeout, timeout(webhook)),
        Check::of(Id::ConfigContextVersion, context_version(webhook)),
        Check::of(Id::ConfigRulesExplicit, explicit(webhook)),
        Check::new(Id::ConfigRulesMatchModules, matches),
        Check::new(Id::ConfigKindsServed, kinds(webhook, &observed.kinds)),
    ]);
    checks
}

fn timeout(webhook: &Webhook) -> Result<String, String> {
    match webhook.timeout_seconds {
        None => Err("timeoutSeconds is not set: a call may hang forever".to_owned()),
        Some(seconds @ 1..=30) => Ok(format!("{seconds} s")),
        Some(seconds) => Err(format!("timeoutSeconds is {seconds}: expected 1 to 30")),
    }
}

fn context_version(webhook: &Webhook) -> Result<String, String> {
    let versions = &webhook.interpreter_context_versions;
    if versions.iter().any(|version| version == "v1alpha1") {
        Ok(versions.join(", "))
    } else {
        Err(format!("expected v1alpha1, found [{}]", versions.join(", ")))
    }
}

fn explicit(webhook: &Webhook) -> Result<String, String> {
    let wild = (1..)
        .zip(&webhook.rules)
        .filter(|(_, rule)| !rule.wildcards().is_empty())
        .map(|(number, rule)| format!("rule {number} has `*` for {}", rule.wildcards().join(", ")))
        .join("; ");
    match (webhook.rules.len(), wild.is_empty()) {
        (0, _) => Err("there is no rule at all".to_owned()),
        (count, true) => Ok(format!("{count} rule(s)")),
        (_, false) => Err(wild),
    }
}

/// What is registered and not there fails: Karmada's calls would fail. What is there and not registered is a remark, since
/// an operator may have left it out.
fn matching(webhook: &Webhook, modules: &[Description]) -> CheckResult {
    let of_modules = |fits: fn(&Implemented) -> bool| -> BTreeSet<(Gvk, Operation)> {
        let targets = modules.iter().flat_map(|module| &module.targets);
        targets
            .flat_map(|target| target.operations.iter().map(move |known| (&target.kind, known)))
            .filter(|(_, known)| fits(known))
            .map(|(kind, known)| (kind.clone(), known.operation))
            .collect()
    };
    let (implemented, wanted) = (of_modules(|_| true), of_modules(|known| known.register));
    let registered: BTreeSet<(Gvk, Operation)> = questions(webhook).collect();
    let shown = |(kind, operation): &(Gvk, Operation)| format!("{operation} of {kind}");
    let missing = registered.difference(&implemented).map(shown).join(", ");
    let unregistered = wanted.difference(&registered).map(shown).join(", ");
    match (missing.is_empty(), unregistered.is_empty()) {
        (false, _) => CheckResult::Fail(format!("registered, but no module has it: {missing}")),
        (true, false) => CheckResult::Warn(format!("the modules would register this too: {unregistered}")),
        (true, true) => CheckResult::Pass(format!("{} operation(s)", registered.len())),
    }
}

/// A kind that is not served yet is valid: its CRD may be installed after the webhook. A status that cannot be written
/// is not: each AggregateStatus fails.
fn kinds(webhook: &Webhook, kinds: &[(Gvk, Seen<Served>)]) -> CheckResult {
    let aggregated =
        |kind: &Gvk| questions(webhook).any(|(of, operation)| of == *kind && operation == Operation::AggregateStatus);
    let (mut broken, mut absent) = (Vec::new(), Vec::new());
    for (kind, served) in kinds {
        match served {
            Err(reason) => broken.push(reason.clone()),
            Ok(Served::WithoutStatus) if aggregated(kind) => {
                broken.push(format!(
                    "{kind} has no subresource status, which AggregateStatus writes"
                ));
            }
            Ok(Served::Not) => absent.push(kind.to_string()),
            Ok(Served::WithoutStatus | Served::WithStatus) => {}
        }
    }
    match (kinds.is_empty(), broken.is_empty(), absent.is_empty()) {
        (true, ..) => CheckResult::Skip("no rule names a kind".to_owned()),
        (_, false, _) => CheckResult::Fail(broken.join("; ")),
        (_, _, false) => CheckResult::Warn(format!("not installed: {}", absent.join(", "))),
        _ => CheckResult::Pass(format!("{} kind(s)", kinds.len())),
    }
}

/// Of others that answer before us.
pub(super) fn precedence(observed: &Observed) -> Vec<Check> {
    let ids = [Id::PrecedenceCustomization, Id::PrecedenceWebhook];
    let Some(webhook) = observed.webhook() else {
        return ids.map(|id| Check::skip(id, UNREGISTERED)).into();
    };
    let asked = questions(webhook).collect_vec();
    let judged = |id, shadows: Vec<Shadow>| {
        let list = shadows.iter().join("; ");
        Check::of(
            id,
            if list.is_empty() {
                Ok("none".to_owned())
            } else {
                Err(list)
            },
        )
    };
    let customizations = match &observed.customizations {
        Ok(found) => judged(Id::PrecedenceCustomization, shadow::by_customization(&asked, found)),
        Err(_) => Check::skip(Id::PrecedenceCustomization, "the customizations could not be read"),
    };
    let configurations = observed.configurations.as_deref().unwrap_or_default();
    let (config, name) = (&observed.names.config_name, &observed.names.webhook_name);
    let before = shadow::by_webhook(&asked, configurations, config, name);
    vec![customizations, judged(Id::PrecedenceWebhook, before)]
}

/// Of the member clusters.
pub(super) fn members(observed: &Observed) -> Vec<Check> {
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
        None => Check::skip(Id::MembersPull, UNREGISTERED),
    };
    vec![pull, Check::new(Id::MembersCity, cities(members, &observed.city_label))]
}

fn reachable_for_agents(members: &[Object], by_service: bool) -> Result<String, String> {
    let pull = pulling(members);
    match (pull.is_empty(), by_service) {
        (true, _) => Ok("there is no Pull member".to_owned()),
        (false, false) => Ok(format!("by URL; run this check beside the agent of {pull} too")),
        (false, true) => Err(format!(
            "registered by Service, which the agent of {pull} cannot resolve"
        )),
    }
}

/// Clusters by the spelling of their city.
type Spellings<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// Two clusters of one city are legal (placement takes one); two spellings of one city are two cities to Karmada.
fn cities(members: &[Object], label: &str) -> CheckResult {
    let mut cities: BTreeMap<String, Spellings<'_>> = BTreeMap::new();
    for member in members {
        if let Some(city) = member.label(label) {
            let spellings = cities.entry(city.to_lowercase()).or_default();
            spellings.entry(city).or_default().push(member.name());
        }
    }
    let shown = |spellings: &Spellings<'_>| {
        let each = spellings.iter();
        each.map(|(city, clusters)| format!("{city} on {}", clusters.join(", ")))
            .join(" and ")
    };
    let those = |fits: fn(&Spellings<'_>) -> bool| cities.values().filter(|one| fits(one)).map(shown).join("; ");
    let split = those(|spellings| spellings.len() > 1);
    let shared = those(|spellings| spellings.values().any(|clusters| clusters.len() > 1));
    let unnamed = members.iter().filter(|member| member.label(label).is_none());
    let unnamed = unnamed.map(Fields::name).join(", ");
    if !split.is_empty() {
        CheckResult::Fail(format!("one city in two spellings: {split}"))
    } else if !shared.is_empty() {
        CheckResult::Warn(format!(
            "several clusters of one city, of which each object goes to one only: {shared}"
        ))
    } else if !unnamed.is_empty() {
        CheckResult::Warn(format!("no label {label} on {unnamed}"))
    } else {
        CheckResult::Pass(format!("{} city or cities", cities.len()))
    }
}
