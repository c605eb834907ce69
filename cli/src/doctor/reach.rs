//! Can it be reached from here, does TLS hold, does it answer?

use jiff::Timestamp;

use super::{
    Check, CheckResult, Id,
    observe::{Called, Observed, Reached, Seen},
};
use crate::endpoint::{
    certificate::{Bundle, Facts},
    dial::Presented,
};

const IDS: [Id; 9] = [
    Id::EndpointAddress,
    Id::CaBundle,
    Id::EndpointResolves,
    Id::EndpointConnects,
    Id::TlsTrusted,
    Id::TlsNames,
    Id::TlsExpiry,
    Id::ClockSkew,
    Id::CallAnswered,
];

pub(super) fn checks(observed: &Observed) -> Vec<Check> {
    let Some(reached) = &observed.endpoint else {
        let unregistered = |id| match id {
            Id::ClockSkew => Check::new(id, clocks(observed.server_skew, None)),
            id => Check::skip(id, "our webhook is not registered"),
        };
        return IDS.map(unregistered).into();
    };
    let mut checks = vec![
        Check::of(
            Id::EndpointAddress,
            reached.address.as_ref().map(ToString::to_string).map_err(Clone::clone),
        ),
        Check::new(Id::CaBundle, ca_bundle(&reached.bundle, observed.now)),
    ];
    checks.push(step(Id::EndpointResolves, reached.resolved.as_ref(), |addresses| {
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }));
    checks.push(step(Id::EndpointConnects, reached.connected.as_ref(), |()| {
        "the port accepts".to_owned()
    }));
    checks.extend(certificate(reached, observed.expiry_days, observed.now));
    checks.push(Check::new(Id::ClockSkew, clocks(observed.server_skew, reached.skew)));
    checks.push(calls(reached));
    checks
}

fn step<T>(id: Id, seen: Option<&Seen<T>>, show: impl Fn(&T) -> String) -> Check {
    match seen {
        Some(seen) => Check::of(id, seen.as_ref().map(show).map_err(Clone::clone)),
        None => Check::skip(id, "a step before it failed"),
    }
}

fn ca_bundle(bundle: &Seen<Option<Bundle>>, now: Timestamp) -> CheckResult {
    let bundle = match bundle {
        Err(reason) => return CheckResult::Fail(reason.clone()),
        Ok(None) => {
            return CheckResult::Warn("there is none: Karmada trusts the roots of its own image only".to_owned());
        }
        Ok(Some(bundle)) => bundle,
    };
    let facts: Vec<_> = bundle
        .certificates()
        .iter()
        .filter_map(|certificate| Facts::read(certificate))
        .collect();
    let invalid: Vec<_> = facts
        .iter()
        .filter_map(|facts| {
            let why = if facts.expired(now) {
                format!("expired {}", facts.not_after)
            } else if facts.not_before > now {
                format!("valid only from {}", facts.not_before)
            } else {
                return None;
            };
            Some(format!("{}: {why}", facts.subject))
        })
        .collect();
    if invalid.len() == facts.len() {
        return CheckResult::Fail(format!("no certificate in it is valid now: {}", invalid.join("; ")));
    }
    if !invalid.is_empty() {
        return CheckResult::Warn(format!("not valid now, but not the only one: {}", invalid.join("; ")));
    }
    CheckResult::Pass(
        facts
            .iter()
            .map(|facts| facts.subject.as_str())
            .collect::<Vec<_>>()
            .join("; "),
    )
}

fn certificate(reached: &Reached, expiry_days: u32, now: Timestamp) -> Vec<Check> {
    let ids = [Id::TlsTrusted, Id::TlsNames, Id::TlsExpiry];
    let Some(presented) = &reached.presented else {
        let handshake = reached
            .handshake
            .as_ref()
            .and_then(|handshake| handshake.as_ref().err());
        return match handshake {
            Some(reason) => {
                let mut checks = vec![Check::new(Id::TlsTrusted, CheckResult::Fail(reason.clone()))];
                checks.extend([Id::TlsNames, Id::TlsExpiry].map(|id| Check::skip(id, "no certificate was shown")));
                checks
            }
            None => ids.map(|id| Check::skip(id, "a step before it failed")).into(),
        };
    };
    let Presented {
        certificate,
        distrust,
        misnomer,
    } = presented;
    let facts = Facts::read(certificate);
    let subject = facts.as_ref().map_or("a certificate", |facts| facts.subject.as_str());
    let names = facts.as_ref().map(|facts| facts.names.join(", ")).unwrap_or_default();
    let server_name = reached
        .address
        .as_ref()
        .map(|endpoint| endpoint.server_name.as_str())
        .unwrap_or_default();
    // What breaks after the certificate was accepted (an alert, ALPN) is a matter of trust too.
    let broken = reached
        .handshake
        .as_ref()
        .and_then(|handshake| handshake.as_ref().err())
        .filter(|_| misnomer.is_none());
    vec![
        match distrust.as_ref().or(broken) {
            Some(reason) => Check::new(Id::TlsTrusted, CheckResult::Fail(format!("{subject}: {reason}"))),
            None => Check::new(Id::TlsTrusted, CheckResult::Pass(subject.to_owned())),
        },
        match misnomer {
            Some(_) => Check::new(
                Id::TlsNames,
                CheckResult::Fail(format!("expected {server_name}, the SAN has [{names}]")),
            ),
            None => Check::new(Id::TlsNames, CheckResult::Pass(names)),
        },
        Check::new(
            Id::TlsExpiry,
            facts.map_or_else(
                || CheckResult::Fail("its dates cannot be read".to_owned()),
                |facts| expiry(&facts, expiry_days, now),
            ),
        ),
    ]
}

fn expiry(facts: &Facts, days: u32, now: Timestamp) -> CheckResult {
    let Facts {
        not_before, not_after, ..
    } = facts;
    let left = not_after.as_second().saturating_sub(now.as_second());
    if *not_before > now {
        CheckResult::Fail(format!("valid only from {not_before}: is a clock wrong?"))
    } else if left < 0 {
        CheckResult::Fail(format!("expired {not_after}"))
    } else if left < i64::from(days) * 86_400 {
        CheckResult::Warn(format!("ends {not_after}, in {} day(s)", left / 86_400))
    } else {
        CheckResult::Pass(format!("until {not_after}"))
    }
}

/// From here on a clock is worth a remark: nothing that is issued needs to be valid sooner.
const SKEW_TO_WARN: u64 = 10;

/// From here on certificates and tokens that were just issued are refused.
const SKEW_TO_FAIL: u64 = 300;

fn clocks(server: Option<i64>, webhook: Option<i64>) -> CheckResult {
    let known: Vec<(&str, i64)> = [("the Karmada API server", server), ("the webhook", webhook)]
        .into_iter()
        .filter_map(|(who, skew)| Some((who, skew?)))
        .collect();
    // The two of them have to agree with each other, too.
    let values = || known.iter().map(|(_, skew)| *skew).chain([0]);
    let spread = values().max().unwrap_or(0).abs_diff(values().min().unwrap_or(0));
    let found = known
        .iter()
        .map(|(who, skew)| match skew {
            0 => format!("{who} agrees with this machine"),
            1.. => format!("{who} is {skew} s ahead of this machine"),
            behind => format!("{who} is {} s behind this machine", behind.unsigned_abs()),
        })
        .collect::<Vec<_>>()
        .join(", ");
    match (known.is_empty(), spread) {
        (true, _) => CheckResult::Skip("no server sent a Date header".to_owned()),
        (false, SKEW_TO_FAIL..) => CheckResult::Fail(found),
        (false, SKEW_TO_WARN..) => CheckResult::Warn(found),
        (false, _) => CheckResult::Pass(found),
    }
}

fn calls(reached: &Reached) -> Check {
    if reached.handshake.as_ref().is_none_or(Result::is_err) {
        return Check::skip(Id::CallAnswered, "a step before it failed");
    }
    if reached.calls.is_empty() {
        return Check::skip(Id::CallAnswered, "no rule names a kind and an operation");
    }
    let wrong: Vec<_> = reached
        .calls
        .iter()
        .filter_map(|(kind, operation, called)| match called {
            Called::Answered(_) => None,
            Called::NotServed(message) => Some(format!(
                "{operation} of {kind} is registered, and not served: {message}"
            )),
            Called::Failed(message) => Some(format!("{operation} of {kind}: {message}")),
        })
        .collect();
    let slowest = reached
        .calls
        .iter()
        .filter_map(|(kind, operation, called)| match called {
            Called::Answered(took) => Some((*took, kind, operation)),
            _ => None,
        });
    let result = match slowest.max_by_key(|(took, ..)| *took) {
        _ if !wrong.is_empty() => CheckResult::Fail(wrong.join("; ")),
        // Karmada gives up at the deadline, and from other places the way may be longer.
        Some((took, kind, operation)) if took > reached.limit / 2 => {
            CheckResult::Warn(format!("{operation} of {kind} took {took:.1?} of {:?}", reached.limit))
        }
        slowest => CheckResult::Pass(format!(
            "{} operation(s), the slowest in {:.1?} of {:?}",
            reached.calls.len(),
            slowest.map(|(took, ..)| took).unwrap_or_default(),
            reached.limit
        )),
    };
    Check::new(Id::CallAnswered, result)
}
