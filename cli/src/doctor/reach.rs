//! Can it be reached from here, does TLS hold, does it answer?

use itertools::Itertools as _;
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
    let address = reached.address.as_ref().map(ToString::to_string).map_err(Clone::clone);
    let mut checks = vec![
        Check::of(Id::EndpointAddress, address),
        Check::new(Id::CaBundle, ca_bundle(&reached.bundle, observed.now)),
        step(Id::EndpointResolves, reached.resolved.as_ref(), |addresses| {
            addresses.iter().join(", ")
        }),
        step(Id::EndpointConnects, reached.connected.as_ref(), |()| {
            "the port accepts".to_owned()
        }),
    ];
    checks.extend(certificate(reached, observed.expiry_days, observed.now));
    checks.push(Check::new(Id::ClockSkew, clocks(observed.server_skew, reached.skew)));
    checks.push(Check::new(Id::CallAnswered, calls(reached)));
    checks
}

/// Of what could not be looked at.
const SKIPPED: &str = "a step before it failed";

fn step<T>(id: Id, seen: Option<&Seen<T>>, show: impl Fn(&T) -> String) -> Check {
    match seen {
        Some(seen) => Check::of(id, seen.as_ref().map(show).map_err(Clone::clone)),
        None => Check::skip(id, SKIPPED),
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
    let invalid = facts.iter().filter_map(|facts| {
        let Facts {
            subject,
            not_before,
            not_after,
            ..
        } = facts;
        if facts.expired(now) {
            Some(format!("{subject}: expired {not_after}"))
        } else {
            (*not_before > now).then(|| format!("{subject}: valid only from {not_before}"))
        }
    });
    let invalid: Vec<String> = invalid.collect();
    if invalid.len() == facts.len() {
        return CheckResult::Fail(format!("no certificate in it is valid now: {}", invalid.join("; ")));
    }
    if !invalid.is_empty() {
        return CheckResult::Warn(format!("not valid now, but not the only one: {}", invalid.join("; ")));
    }
    CheckResult::Pass(facts.iter().map(|facts| &facts.subject).join("; "))
}

fn certificate(reached: &Reached, expiry_days: u32, now: Timestamp) -> Vec<Check> {
    let ids = [Id::TlsTrusted, Id::TlsNames, Id::TlsExpiry];
    let handshake = reached
        .handshake
        .as_ref()
        .and_then(|handshake| handshake.as_ref().err());
    let Some(presented) = &reached.presented else {
        let Some(reason) = handshake else {
            return ids.map(|id| Check::skip(id, SKIPPED)).into();
        };
        return ids
            .map(|id| match id {
                Id::TlsTrusted => Check::new(id, CheckResult::Fail(reason.clone())),
                id => Check::skip(id, "no certificate was shown"),
            })
            .into();
    };
    let Presented {
        certificate,
        distrust,
        misnomer,
    } = presented;
    let facts = Facts::read(certificate);
    let subject = facts.as_ref().map_or("a certificate", |facts| facts.subject.as_str());
    let names = facts.as_ref().map(|facts| facts.names.join(", ")).unwrap_or_default();
    let address = reached.address.as_ref();
    let server_name = address
        .map(|endpoint| endpoint.server_name.as_str())
        .unwrap_or_default();
    // What breaks after the certificate was accepted (an alert, ALPN) is a matter of trust too.
    let broken = handshake.filter(|_| misnomer.is_none());
    let trusted = match distrust.as_ref().or(broken) {
        Some(reason) => Err(format!("{subject}: {reason}")),
        None => Ok(subject),
    };
    let of_host = match misnomer {
        Some(_) => Err(format!("expected {server_name}, the SAN has [{names}]")),
        None => Ok(names),
    };
    let valid = match &facts {
        Some(facts) => expiry(facts, expiry_days, now),
        None => CheckResult::Fail("its dates cannot be read".to_owned()),
    };
    vec![
        Check::of(Id::TlsTrusted, trusted),
        Check::of(Id::TlsNames, of_host),
        Check::new(Id::TlsExpiry, valid),
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
    let known = [("the Karmada API server", server), ("the webhook", webhook)];
    let known: Vec<(&str, i64)> = known.into_iter().filter_map(|(who, skew)| Some((who, skew?))).collect();
    // The two of them have to agree with each other, too.
    let values = || known.iter().map(|(_, skew)| *skew).chain([0]);
    let spread = values().max().unwrap_or(0).abs_diff(values().min().unwrap_or(0));
    let mut found = known.iter().map(|(who, skew)| match skew {
        0 => format!("{who} agrees with this machine"),
        1.. => format!("{who} is {skew} s ahead of this machine"),
        behind => format!("{who} is {} s behind this machine", behind.unsigned_abs()),
    });
    let found = found.join(", ");
    match (known.is_empty(), spread) {
        (true, _) => CheckResult::Skip("no server sent a Date header".to_owned()),
        (false, SKEW_TO_FAIL..) => CheckResult::Fail(found),
        (false, SKEW_TO_WARN..) => CheckResult::Warn(found),
        (false, _) => CheckResult::Pass(found),
    }
}

fn calls(reached: &Reached) -> CheckResult {
    if reached.handshake.as_ref().is_none_or(Result::is_err) {
        return CheckResult::Skip(SKIPPED.to_owned());
    }
    let (mut wrong, mut slowest) = (Vec::new(), None);
    for (kind, operation, called) in &reached.calls {
        let what = format!("{operation} of {kind}");
        match called {
            Called::Answered(took) => slowest = slowest.max(Some((*took, what))),
            Called::NotServed(message) => wrong.push(format!("{what} is registered, and not served: {message}")),
            Called::Failed(message) => wrong.push(format!("{what}: {message}")),
        }
    }
    let (count, limit) = (reached.calls.len(), reached.limit);
    match slowest {
        _ if count == 0 => CheckResult::Skip("no rule names a kind and an operation".to_owned()),
        _ if !wrong.is_empty() => CheckResult::Fail(wrong.join("; ")),
        // Karmada gives up at the deadline, and from other places the way may be longer.
        Some((took, what)) if took > limit / 2 => CheckResult::Warn(format!("{what} took {took:.1?} of {limit:?}")),
        slowest => CheckResult::Pass(format!(
            "{count} operation(s), the slowest in {:.1?} of {limit:?}",
            slowest.map(|(took, _)| took).unwrap_or_default(),
        )),
    }
}
