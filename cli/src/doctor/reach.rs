//! Can it be reached from here, does TLS hold, does it answer?

use jiff::Timestamp;

use super::{
    Check, Id, Verdict,
    observe::{Called, Observed, Reached, Seen},
};
use crate::endpoint::{
    certificate::{Bundle, Facts},
    dial::Presented,
};

const IDS: [Id; 8] = [
    Id::EndpointAddress,
    Id::CaBundle,
    Id::EndpointResolves,
    Id::EndpointConnects,
    Id::TlsTrusted,
    Id::TlsNames,
    Id::TlsExpiry,
    Id::CallAnswered,
];

pub(super) fn checks(observed: &Observed) -> Vec<Check> {
    let Some(reached) = &observed.endpoint else {
        return IDS.map(|id| Check::skip(id, "our webhook is not registered")).into();
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
    checks.push(calls(reached));
    checks
}

fn step<T>(id: Id, seen: Option<&Seen<T>>, show: impl Fn(&T) -> String) -> Check {
    match seen {
        Some(seen) => Check::of(id, seen.as_ref().map(show).map_err(Clone::clone)),
        None => Check::skip(id, "a step before it failed"),
    }
}

fn ca_bundle(bundle: &Seen<Option<Bundle>>, now: Timestamp) -> Verdict {
    let bundle = match bundle {
        Err(reason) => return Verdict::Fail(reason.clone()),
        Ok(None) => return Verdict::Warn("there is none: Karmada trusts the roots of its own image only".to_owned()),
        Ok(Some(bundle)) => bundle,
    };
    let facts: Vec<_> = bundle
        .certificates()
        .iter()
        .filter_map(|certificate| Facts::read(certificate))
        .collect();
    let expired: Vec<_> = facts
        .iter()
        .filter(|facts| facts.expired(now))
        .map(|facts| facts.subject.as_str())
        .collect();
    if expired.len() == facts.len() {
        return Verdict::Fail(format!("every certificate in it has expired: {}", expired.join("; ")));
    }
    if !expired.is_empty() {
        return Verdict::Warn(format!("expired, but not the only one: {}", expired.join("; ")));
    }
    Verdict::Pass(
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
                let mut checks = vec![Check::new(Id::TlsTrusted, Verdict::Fail(reason.clone()))];
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
            Some(reason) => Check::new(Id::TlsTrusted, Verdict::Fail(format!("{subject}: {reason}"))),
            None => Check::new(Id::TlsTrusted, Verdict::Pass(subject.to_owned())),
        },
        match misnomer {
            Some(_) => Check::new(
                Id::TlsNames,
                Verdict::Fail(format!("expected {server_name}, the SAN has [{names}]")),
            ),
            None => Check::new(Id::TlsNames, Verdict::Pass(names)),
        },
        Check::new(
            Id::TlsExpiry,
            facts.map_or_else(
                || Verdict::Fail("its dates cannot be read".to_owned()),
                |facts| expiry(&facts, expiry_days, now),
            ),
        ),
    ]
}

fn expiry(facts: &Facts, days: u32, now: Timestamp) -> Verdict {
    let Facts {
        not_before, not_after, ..
    } = facts;
    let left = not_after.as_second().saturating_sub(now.as_second());
    if *not_before > now {
        Verdict::Fail(format!("valid only from {not_before}: is a clock wrong?"))
    } else if left < 0 {
        Verdict::Fail(format!("expired {not_after}"))
    } else if left < i64::from(days) * 86_400 {
        Verdict::Warn(format!("ends {not_after}, in {} day(s)", left / 86_400))
    } else {
        Verdict::Pass(format!("until {not_after}"))
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
            Called::Answered => None,
            Called::NotServed(message) => Some(format!(
                "{operation} of {kind} is registered, and not served: {message}"
            )),
            Called::Failed(message) => Some(format!("{operation} of {kind}: {message}")),
        })
        .collect();
    if wrong.is_empty() {
        Check::new(
            Id::CallAnswered,
            Verdict::Pass(format!("{} operation(s)", reached.calls.len())),
        )
    } else {
        Check::new(Id::CallAnswered, Verdict::Fail(wrong.join("; ")))
    }
}
