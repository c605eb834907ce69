//! Is it registered, and as it should be?

use std::collections::BTreeSet;

use popcell_engine::Description;
use popcell_protocol::{Gvk, Operation};

use super::{
    Check, CheckResult, Id,
    observe::{Observed, Seen, questions},
};
use crate::planes::karmada::{Served, Webhook};

const IDS: [Id; 5] = [
    Id::ConfigTimeout,
    Id::ConfigContextVersion,
    Id::ConfigRulesExplicit,
    Id::ConfigRulesMatchModules,
    Id::ConfigKindsServed,
];

pub(super) fn checks(observed: &Observed) -> Vec<Check> {
    let unreadable: Vec<_> = [
        observed.configurations.as_ref().err(),
        observed.customizations.as_ref().err(),
        observed.members.as_ref().err(),
    ]
    .into_iter()
    .flatten()
    .map(String::as_str)
    .collect();
    let server = observed.server.as_str();
    let mut checks = vec![Check::of(
        Id::KarmadaReachable,
        if unreadable.is_empty() {
            Ok(server.to_owned())
        } else {
            Err(unreadable.join("; "))
        },
    )];
    if observed.configurations.is_err() {
        checks.push(Check::skip(Id::ConfigPresent, "the configurations could not be read"));
        checks.extend(IDS.map(|id| Check::skip(id, "the configurations could not be read")));
        return checks;
    }
    let (config, name) = (&observed.names.config_name, &observed.names.webhook_name);
    let Some(webhook) = observed.webhook() else {
        let missing = format!("there is no webhook {name} in ResourceInterpreterWebhookConfiguration {config}");
        checks.push(Check::new(Id::ConfigPresent, CheckResult::Fail(missing)));
        checks.extend(IDS.map(|id| Check::skip(id, "our webhook is not registered")));
        return checks;
    };
    checks.push(Check::new(
        Id::ConfigPresent,
        CheckResult::Pass(format!("{config}/{name}")),
    ));
    checks.push(Check::of(Id::ConfigTimeout, timeout(webhook)));
    checks.push(Check::of(Id::ConfigContextVersion, context_version(webhook)));
    checks.push(Check::of(Id::ConfigRulesExplicit, explicit(webhook)));
    checks.push(match &observed.modules {
        Some(modules) => Check::new(Id::ConfigRulesMatchModules, matching(webhook, modules)),
        None => Check::skip(
            Id::ConfigRulesMatchModules,
            "give --module-dir to compare with the modules",
        ),
    });
    checks.push(Check::new(Id::ConfigKindsServed, kinds(webhook, &observed.kinds)));
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
    let versions = webhook.interpreter_context_versions.join(", ");
    if webhook
        .interpreter_context_versions
        .iter()
        .any(|version| version == "v1alpha1")
    {
        Ok(versions)
    } else {
        Err(format!("expected v1alpha1, found [{versions}]"))
    }
}

fn explicit(webhook: &Webhook) -> Result<String, String> {
    let wild: Vec<_> = webhook
        .rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| !rule.wildcards().is_empty())
        .map(|(index, rule)| format!("rule {} has `*` for {}", index + 1, rule.wildcards().join(", ")))
        .collect();
    match (webhook.rules.len(), wild.is_empty()) {
        (0, _) => Err("there is no rule at all".to_owned()),
        (count, true) => Ok(format!("{count} rule(s)")),
        (_, false) => Err(wild.join("; ")),
    }
}

/// What is registered and not there fails: Karmada's calls would fail. What is there and not registered is a remark, since
/// an operator may have left it out.
fn matching(webhook: &Webhook, modules: &[Description]) -> CheckResult {
    type Named = BTreeSet<(Gvk, Operation)>;
    let all = |wanted: fn(&popcell_engine::Implemented) -> bool| -> Named {
        let targets = modules.iter().flat_map(|module| &module.targets);
        let of = |target: &popcell_engine::Target| {
            let kind = target.kind.clone();
            target
                .operations
                .iter()
                .filter(|known| wanted(known))
                .map(|known| (kind.clone(), known.operation))
                .collect::<Vec<_>>()
        };
        targets.flat_map(of).collect()
    };
    let registered: Named = questions(webhook).collect();
    let shown = |set: Vec<&(Gvk, Operation)>| {
        set.iter()
            .map(|(kind, operation)| format!("{operation} of {kind}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let missing = shown(registered.difference(&all(|_| true)).collect());
    let unregistered = shown(all(|known| known.register).difference(&registered).collect());
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
