//! What holds for one Instance, over generated conditions, gates and claims.
//!
//! Why: `docs/decisions/28-laws.md`.

use proptest::prelude::*;

use super::*;

const TYPES: [&str; 6] = ["Programmed", "Available", "Ready", "QuotaGranted", "Running", "Other"];
const REASONS: [&str; 14] = [
    "Pending",
    "PendingProgramming",
    "PendingQuota",
    "PendingEvaluation",
    "QuotaAvailable",
    "QuotaExceeded",
    "QuotaBackendUnavailable",
    "QuotaNoBudget",
    "ImageUnavailable",
    "InstanceCrashing",
    "Provisioning",
    "Odd",
    "no reason!",
    "",
];

fn status() -> impl Strategy<Value = &'static str> + Clone {
    prop::sample::select(vec!["True", "False", "Unknown", ""])
}

fn conditions() -> impl Strategy<Value = Vec<Value>> {
    let one = (status(), prop::sample::select(REASONS.to_vec()), 0..5_i64);
    let all: Vec<_> = TYPES
        .into_iter()
        .map(|type_| {
            prop::option::of(one.clone()).prop_map(move |one| {
                one.map(|(status, reason, generation)| {
                    let mut condition = condition(type_, status, reason, "m");
                    condition["observedGeneration"] = json!(generation);
                    condition
                })
            })
        })
        .collect();
    all.prop_map(|all| all.into_iter().flatten().collect::<Vec<_>>())
        .prop_shuffle()
}

fn instances() -> impl Strategy<Value = Object> {
    let gates = prop::sample::subsequence(vec!["Network", "Quota", "ReferencedData", "Other"], 0..=4).prop_shuffle();
    let finalizers = prop::sample::subsequence(vec![UPSTREAMS[0], UPSTREAMS[1], "other"], 0..=3);
    (gates, conditions(), finalizers, any::<bool>(), 0..8_u8).prop_map(|(gates, conditions, finalizers, going, odd)| {
        let mut one = instance(&gates, json!(conditions));
        one.metadata.finalizers = Some(finalizers.into_iter().map(str::to_owned).collect());
        if going {
            one.metadata.deletion_timestamp = Some(Time(now()));
        }
        match odd {
            0 => one.data["status"] = json!(null),
            1 => one.data["spec"]["controller"] = json!(null),
            2 => one.metadata.generation = None,
            _ => {}
        }
        one
    })
}

#[derive(Clone, Debug)]
struct Said {
    which: usize,
    claim: Object,
    remembered: bool,
    grace: u64,
    data: Observed<Option<&'static str>>,
}

fn said() -> impl Strategy<Value = Said> {
    let parts = (
        status(),
        prop::sample::select(REASONS.to_vec()),
        any::<bool>(),
        any::<bool>(),
    );
    let data = prop::sample::select(vec![
        Observed::Unknown,
        Observed::Known(None),
        Observed::Known(Some("Secret key is not in city DFW")),
    ]);
    (0..16_usize, parts, any::<bool>(), 0..10_u64, data).prop_map(
        |(which, (status, reason, going, other), remembered, grace, data)| {
            let mut claim = claim(status, reason, "m");
            if going {
                claim.metadata.deletion_timestamp = Some(Time(now()));
            }
            if other {
                claim.data["spec"]["requests"] = json!([]);
            }
            Said {
                which,
                claim,
                remembered,
                grace,
                data,
            }
        },
    )
}

impl Said {
    fn quota(&self) -> Quota<'_> {
        match self.which {
            0 => Quota::Disabled,
            1 => Quota::NoProject,
            2 => Quota::BadProject,
            3 => Quota::Unknown(None),
            4 => Quota::Unknown(Some("away")),
            5 => Quota::Refused {
                reason: "QuotaMisconfigured",
                message: "m",
            },
            6 => Quota::Absent,
            7 => Quota::Foreign(&self.claim),
            _ => Quota::Claim(&self.claim),
        }
    }

    fn look(&self, instance: &Object) -> Plan {
        let deployment = deployment(self.remembered.then_some("0"));
        decide(&Observation {
            deployment: Some(&deployment),
            gates_rejected: false,
            data: self.data,
            no_budget_grace: Duration::from_secs(self.grace),
            ..seen(instance, self.quota())
        })
    }
}

/// Conditions of others, and ours of a provider while nothing is laid over them.
fn of_others(instance: &Object) -> Vec<Value> {
    let ours = |one: &Value| {
        let laid_over = conditions::text(one, "reason") == "PendingQuota";
        match conditions::text(one, "type") {
            "Ready" | "QuotaGranted" => true,
            "Programmed" | "Available" => laid_over || conditions::text(one, "message") == CONTROLLER,
            _ => false,
        }
    };
    let mut all: Vec<Value> = instance
        .items("/status/conditions")
        .iter()
        .filter(|one| !ours(one))
        .cloned()
        .collect();
    all.sort_by_key(Value::to_string);
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// What was carried out leaves nothing to do. A gate that went is a new generation, which is reported once more.
    #[test]
    fn a_second_reconcile_plans_nothing(one in instances(), said in said()) {
        let plan = said.look(&one);
        let Some(mut then) = applied(&one, &plan) else { return Ok(()) };
        if gates_of(&then) != gates_of(&one) {
            let follow_up = said.look(&then);
            prop_assert!(follow_up.actions.is_empty(), "{follow_up:#?}");
            then = applied(&then, &follow_up).unwrap();
        }
        let second = said.look(&then);
        prop_assert!(second.is_unchanged() && second.notes.is_empty(), "{second:#?}");
    }

    /// A gate goes with a grant only, and what waits is looked at again.
    #[test]
    fn a_gate_goes_with_a_grant_and_what_waits_is_not_forgotten(one in instances(), said in said()) {
        let plan = said.look(&one);
        let Some(then) = applied(&one, &plan) else { return Ok(()) };
        let granted = then.at("/status").is_some_and(|_| reported(&then, "QuotaGranted").0 == "True");
        let opened = gates_of(&then) != gates_of(&one);
        prop_assert!(!opened || (granted && !one.deleting()));
        let kept: Vec<_> = gates_of(&one).into_iter().filter(|gate| !opened || *gate != "Quota").collect();
        prop_assert_eq!(gates_of(&then), kept);
        let waits = !one.deleting() && (!granted || has_gate(&then, gates::QUOTA));
        prop_assert_eq!(plan.requeue.is_some(), waits);
    }

    /// Conditions of others stay, in any order; an Instance without gates has nothing laid over it.
    #[test]
    fn only_owned_conditions_change(one in instances(), said in said()) {
        let Some(then) = applied(&one, &said.look(&one)) else { return Ok(()) };
        if gates_of(&one).is_empty() {
            prop_assert_eq!(of_others(&then), of_others(&one));
            let by_others = reported(&then, "Other").1 == "PendingQuota";
            prop_assert!(by_others || reported(&then, "Ready").1 != "PendingQuota");
        } else {
            let gated = |one: &Object| {
                let mut others = of_others(one);
                others.retain(|one| !["Programmed", "Available"].contains(&conditions::text(one, "type")));
                others
            };
            prop_assert_eq!(gated(&then), gated(&one));
        }
        prop_assert_eq!(then.at("/status/controller"), one.at("/status/controller"));
        let mut turned = one.clone();
        if let Some(list) = turned.data["status"]["conditions"].as_array_mut() {
            list.reverse();
        }
        let turned = applied(&turned, &said.look(&turned)).unwrap();
        prop_assert_eq!(reported(&turned, "Ready"), reported(&then, "Ready"));
    }
}
