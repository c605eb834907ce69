//! How a machine is at a time after its start, and what the provider says of it.

use std::time::Duration;

use kube::api::DynamicObject;
use popcell_api::conditions::{self, messages, reasons};
use serde_json::{Value, json};

use super::super::draft::Draft;
use super::behaviour::{Behaviour, Failure};

/// What the provider says: status, reason and message of a condition.
type Said = (&'static str, &'static str, String);

/// The condition that `Available` was before its rename.
const RUNNING: &str = "Running";

/// How a machine is.
#[derive(Debug, PartialEq)]
pub(super) struct Phase {
    programmed: Said,
    available: Said,
    /// It runs, or has run: it has addresses, and its template is known.
    made: bool,
}

impl Phase {
    /// How a machine is `elapsed` after its start, and after how long to look again. It takes `start` to come up, and
    /// comes or goes after each `flap` where it does that.
    pub(super) fn at(
        instance: &DynamicObject,
        behaviour: &Behaviour,
        elapsed: Duration,
        (start, flap): (Duration, Duration),
    ) -> (Self, Option<Duration>) {
        if let Some(complaint) = &behaviour.complaint {
            return (Self::waiting(reasons::CONFIGURATION_ERROR, complaint.clone()), None);
        }
        if elapsed < start {
            let starting = Self::waiting(reasons::PROVISIONING, "The machine is starting".to_owned());
            return (starting, Some(start.saturating_sub(elapsed)));
        }
        if let Some((reason, message)) = obstacle(instance, behaviour) {
            return (Self::waiting(reason, message), None);
        }
        if behaviour.has(Failure::Flapping) && !flap.is_zero() {
            let since = elapsed.saturating_sub(start).as_nanos();
            let turn = since / flap.as_nanos();
            let left = flap.as_nanos() - since % flap.as_nanos();
            let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
            let phase = if turn.is_multiple_of(2) {
                Self::up()
            } else {
                Self::down(reasons::FAILED, "The machine ended by itself")
            };
            return (phase, Some(left));
        }
        (Self::up(), None)
    }

    /// How a machine is while it is torn down.
    pub(super) fn ending() -> Self {
        Self::down(reasons::STOPPING, "The machine is being torn down")
    }

    fn up() -> Self {
        Self {
            available: ("True", reasons::AVAILABLE, messages::INSTANCE_AVAILABLE.to_owned()),
            ..Self::down("", "")
        }
    }

    fn down(reason: &'static str, message: &str) -> Self {
        Self {
            programmed: ("True", reasons::PROGRAMMED, messages::INSTANCE_PROGRAMMED.to_owned()),
            available: ("False", reason, message.to_owned()),
            made: true,
        }
    }

    /// As the provider translates a pod that waits: nobody can say yet what becomes of it.
    fn waiting(reason: &'static str, message: String) -> Self {
        Self {
            programmed: (
                "Unknown",
                reasons::PROGRAMMING_IN_PROGRESS,
                "The machine is being made".to_owned(),
            ),
            available: ("Unknown", reason, message),
            made: false,
        }
    }

    /// Says it in the Instance's status: what is the provider's own, and what a wrong provider adds.
    pub(super) fn say(&self, draft: &mut Draft<'_>, instance: &DynamicObject, behaviour: &Behaviour) {
        let mut say = |type_: &str, (status, reason, message): &Said| draft.condition(type_, status, reason, message);
        say(conditions::PROGRAMMED, &self.programmed);
        if behaviour.has(Failure::OldContract) {
            let (status, reason, message) = &self.available;
            let reason = if *status == "True" { RUNNING } else { reason };
            say(RUNNING, &(*status, reason, message.clone()));
        } else {
            say(conditions::AVAILABLE, &self.available);
        }
        if behaviour.has(Failure::WritesReady) {
            let (status, reason, _) = &self.available;
            say(
                conditions::READY,
                &(*status, *reason, "The provider says so".to_owned()),
            );
        }
        // While it is torn down what it was made from stays.
        if !self.made || instance.metadata.deletion_timestamp.is_some() {
            return;
        }
        let hash = instance.data.pointer("/spec/controller/templateHash");
        if let Some(hash) = hash.filter(|hash| hash.is_string()) {
            draft.set("controller", json!({ "observedTemplateHash": hash }));
        }
        draft.set("networkInterfaces", addresses(instance));
    }
}

/// What keeps the machine from coming up.
fn obstacle(instance: &DynamicObject, behaviour: &Behaviour) -> Option<(&'static str, String)> {
    let image = instance
        .data
        .pointer("/spec/runtime/sandbox/containers/0/image")
        .and_then(Value::as_str)
        .unwrap_or("of its disk");
    let table = [
        (
            Failure::ImageUnavailable,
            reasons::IMAGE_UNAVAILABLE,
            format!("Failed to pull image {image}: not found"),
        ),
        (
            Failure::CrashLoop,
            reasons::INSTANCE_CRASHING,
            "The program ended with status 1, again and again".to_owned(),
        ),
        (
            Failure::ConfigurationError,
            reasons::CONFIGURATION_ERROR,
            "The machine cannot be made as it is described".to_owned(),
        ),
        (
            Failure::NetworkFailure,
            reasons::NETWORK_FAILED_TO_CREATE,
            "The site has no network for the machine".to_owned(),
        ),
    ];
    let met = table.into_iter().find(|(failure, ..)| behaviour.has(*failure));
    met.map(|(_, reason, message)| (reason, message))
}

/// Addresses for each interface: a private one made from the uid, and one of the range for documentation.
fn addresses(instance: &DynamicObject) -> Value {
    let interfaces = instance
        .data
        .pointer("/spec/networkInterfaces")
        .and_then(Value::as_array);
    let uid = instance.metadata.uid.as_deref().unwrap_or_default();
    let count = interfaces.map_or(0, Vec::len);
    let address = |index: usize| {
        let seed = format!("{uid}/{index}");
        // FNV-1a: any spread would do, as long as it is the same after a restart.
        let number = seed.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        let [first, second, third, fourth] = number.to_be_bytes();
        json!({ "assignments": {
            "networkIP": format!("10.{first}.{second}.{third}"),
            "externalIP": format!("203.0.113.{fourth}"),
        } })
    };
    (0..count).map(address).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::super::FAIL;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const PACE: (Duration, Duration) = (SECOND, SECOND);

    fn instance() -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "compute.datumapis.com/v1alpha",
            "kind": "Instance",
            "metadata": { "name": "web-0", "uid": "u1", "generation": 3, "resourceVersion": "9" },
            "spec": {
                "runtime": { "sandbox": { "containers": [{ "name": "web", "image": "registry.example.com/web:1" }] } },
                "networkInterfaces": [{ "network": { "name": "default" } }],
                "controller": { "templateHash": "h1" },
            },
        }))
        .unwrap()
    }

    fn behaviour(failures: &str) -> Behaviour {
        Behaviour::of(Some(&[(FAIL.to_owned(), failures.to_owned())].into()))
    }

    /// Type, status and reason of each condition that is written.
    fn said(instance: &DynamicObject, phase: &Phase, behaviour: &Behaviour) -> (Vec<[String; 3]>, Value) {
        let mut draft = Draft::of(instance, Timestamp::UNIX_EPOCH);
        phase.say(&mut draft, instance, behaviour);
        let status = draft.patch().unwrap()["status"].take();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let conditions = status["conditions"].as_array().unwrap().iter();
        let conditions = conditions.map(|one| [text(&one["type"]), text(&one["status"]), text(&one["reason"])]);
        (conditions.collect(), status)
    }

    fn after(failures: &str, elapsed: Duration) -> (Vec<[String; 3]>, Value, Option<Duration>) {
        let (instance, behaviour) = (instance(), behaviour(failures));
        let (phase, again) = Phase::at(&instance, &behaviour, elapsed, PACE);
        let (conditions, status) = said(&instance, &phase, &behaviour);
        (conditions, status, again)
    }

    #[test]
    fn a_machine_starts_and_then_runs_what_it_was_made_from() {
        let (conditions, status, again) = after("", SECOND / 4);
        assert_eq!(
            conditions,
            [
                ["Programmed", "Unknown", "ProgrammingInProgress"],
                ["Available", "Unknown", "Provisioning"]
            ]
        );
        assert_eq!(again, Some(SECOND * 3 / 4));
        assert!(
            status["controller"].is_null() && status["networkInterfaces"].is_null(),
            "{status}"
        );
        let (conditions, status, again) = after("", SECOND);
        assert_eq!(
            conditions,
            [["Programmed", "True", "Programmed"], ["Available", "True", "Available"]]
        );
        assert_eq!(again, None);
        assert_eq!(status["controller"], json!({ "observedTemplateHash": "h1" }));
        let interfaces = status["networkInterfaces"].as_array().unwrap();
        assert_eq!(interfaces.len(), 1);
        assert!(
            interfaces[0]["assignments"]["networkIP"]
                .as_str()
                .unwrap()
                .starts_with("10.")
        );
    }

    #[test]
    fn each_failure_is_reported_as_the_provider_translates_it() {
        for (failure, reason, word) in [
            ("image-unavailable", "ImageUnavailable", "registry.example.com/web:1"),
            ("crash-loop", "InstanceCrashing", "status 1"),
            ("configuration-error", "ConfigurationError", "described"),
            ("network-failure", "NetworkFailedToCreate", "no network"),
            ("nonsense", "ConfigurationError", "nonsense"),
        ] {
            let (conditions, status, again) = after(failure, SECOND * 2);
            assert_eq!(
                conditions,
                [
                    ["Programmed", "Unknown", "ProgrammingInProgress"],
                    ["Available", "Unknown", reason]
                ],
                "{failure}"
            );
            let message = status["conditions"][1]["message"].as_str().unwrap();
            assert!(message.contains(word), "{message}");
            assert!(again.is_none() && status["controller"].is_null(), "{status}");
        }
    }

    #[test]
    fn a_machine_that_flaps_is_up_first() {
        for (millis, status, again) in [
            (1000, "True", 1000),
            (1900, "True", 100),
            (2100, "False", 900),
            (3000, "True", 1000),
        ] {
            let (conditions, _, next) = after("flapping", Duration::from_millis(millis));
            assert_eq!(conditions[1][1], status, "after {millis} ms");
            assert_eq!(next, Some(Duration::from_millis(again)));
        }
    }

    #[test]
    fn only_a_wrong_provider_writes_what_is_not_its_own() {
        let types = |failures: &str| {
            let written = after(failures, SECOND).0;
            written.into_iter().map(|[type_, ..]| type_).collect::<Vec<_>>()
        };
        for failure in Failure::ALL {
            let expected: &[&str] = match failure {
                Failure::WritesReady => &["Programmed", "Available", "Ready"],
                Failure::OldContract => &["Programmed", "Running"],
                _ => &["Programmed", "Available"],
            };
            assert_eq!(types(failure.name()), expected, "{failure:?}");
        }
        assert_eq!(types("old-contract,writes-ready"), ["Programmed", "Running", "Ready"]);
        assert_eq!(after("old-contract", SECOND).0[1], ["Running", "True", "Running"]);
    }

    #[test]
    fn a_machine_of_an_empty_instance_is_reported_without_a_panic() {
        for data in [
            json!({}),
            json!({ "spec": null, "status": null }),
            json!({ "spec": { "controller": null, "networkInterfaces": null }, "status": { "conditions": null } }),
        ] {
            let mut bare = instance();
            bare.data = data;
            let behaviour = behaviour("");
            let (conditions, status) = said(&bare, &Phase::up(), &behaviour);
            assert_eq!(conditions.len(), 2);
            assert!(status["controller"].is_null(), "{status}");
        }
    }

    #[test]
    fn a_teardown_is_reported_and_forgets_nothing() {
        let mut dying = instance();
        dying.metadata = serde_json::from_value(json!({
            "name": "web-0", "uid": "u1", "deletionTimestamp": "2026-01-01T00:00:00Z",
        }))
        .unwrap();
        let (conditions, status) = said(&dying, &Phase::ending(), &behaviour("stuck-teardown"));
        assert_eq!(conditions[1], ["Available", "False", "Stopping"]);
        assert!(
            status["controller"].is_null() && status["networkInterfaces"].is_null(),
            "{status}"
        );
    }
}
