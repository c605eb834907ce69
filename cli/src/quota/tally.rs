//! Claims by what became of them, and the sums of what they ask for. Pure but for the writing.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use jiff::Timestamp;
use popcell_api::{
    conditions::reasons,
    labels, names,
    quota::{GRANTED, INSTANCES, MEMORY, VCPUS},
};
use popcell_core::{
    conditions::{of, text},
    object::{Fields as _, Object},
};
use serde_json::{Value, json};

use crate::console::{age, write_table};

/// Resource types that Instances claim, with the unit that follows a number.
const TYPES: [(&str, &str); 3] = [(INSTANCES, ""), (VCPUS, "m"), (MEMORY, "Mi")];

/// What became of a claim, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// The quota system refused it.
    Denied,
    /// There is no decision.
    Waiting,
    /// The Instance may start.
    Granted,
}

impl State {
    const ALL: [Self; 3] = [Self::Denied, Self::Waiting, Self::Granted];

    fn word(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Waiting => "waiting",
            Self::Granted => "granted",
        }
    }

    /// As cells take the condition: a claim is born False with this reason.
    fn of(claim: &Object) -> Self {
        let said = of(claim, GRANTED).map(|one| (text(one, "status"), text(one, "reason")));
        match said {
            Some(("True", _)) => Self::Granted,
            Some(("False", reason)) if reason != reasons::PENDING_EVALUATION => Self::Denied,
            _ => Self::Waiting,
        }
    }
}

/// Amounts of [`TYPES`].
type Amounts = [i64; TYPES.len()];

/// One claim. By its order the first are shown where not all are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    namespace: String,
    instance: String,
    cell: String,
    created: Option<Timestamp>,
    amounts: Amounts,
    why: String,
}

/// All claims of Instances.
pub(super) struct Tally {
    /// How many rows are kept of each state.
    limit: usize,
    states: BTreeMap<State, Group>,
}

/// Those of one state.
#[derive(Default)]
struct Group {
    /// How many there are.
    count: usize,
    sums: Amounts,
    /// The first of them, by namespace and name.
    rows: BTreeSet<Row>,
}

impl Tally {
    /// Of no claims.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            states: State::ALL.into_iter().map(|state| (state, Group::default())).collect(),
        }
    }

    /// Counts a claim, if it is one of an Instance; others use the same quota system.
    pub(super) fn add(&mut self, claim: &Object) {
        let Some(amounts) = amounts(claim) else { return };
        let group = self.states.entry(State::of(claim)).or_default();
        group.count += 1;
        for (sum, amount) in group.sums.iter_mut().zip(amounts) {
            *sum = sum.saturating_add(amount);
        }
        group.rows.insert(Row::of(claim, amounts));
        if group.rows.len() > self.limit {
            group.rows.pop_last();
        }
    }

    fn rows(&self) -> impl Iterator<Item = (State, &Row)> {
        let groups = self.states.iter();
        groups.flat_map(|(state, group)| group.rows.iter().map(move |row| (*state, row)))
    }

    /// What is not listed, by state.
    pub(super) fn hidden(&self) -> Vec<String> {
        let groups = self.states.iter();
        groups
            .filter(|(_, group)| group.count > group.rows.len())
            .map(|(state, group)| {
                format!(
                    "{} of {} {} claims are listed",
                    group.rows.len(),
                    group.count,
                    state.word()
                )
            })
            .collect()
    }

    /// Two tables: claims, and sums.
    pub(super) fn text(&self, now: Timestamp, out: &mut dyn Write) -> io::Result<()> {
        let heads = [
            "NAMESPACE",
            "INSTANCE",
            "CELL",
            "STATE",
            "VCPUS",
            "MEMORY",
            "AGE",
            "REASON",
        ];
        let mut lines = vec![heads.map(str::to_owned)];
        for (state, row) in self.rows() {
            let or_none = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
            let [_, vcpus, memory] = shown(row.amounts);
            lines.push([
                or_none(&row.namespace),
                or_none(&row.instance),
                or_none(&row.cell),
                state.word().to_owned(),
                vcpus,
                memory,
                age(row.created, now),
                row.why.clone(),
            ]);
        }
        if lines.len() > 1 {
            write_table(&lines, out)?;
            writeln!(out)?;
        }
        let heads = ["STATE", "CLAIMS", "INSTANCES", "VCPUS", "MEMORY"];
        let mut lines = vec![heads.map(str::to_owned)];
        for (state, group) in self.states.iter().rev() {
            let [instances, vcpus, memory] = shown(group.sums);
            let count = group.count.to_string();
            lines.push([state.word().to_owned(), count, instances, vcpus, memory]);
        }
        write_table(&lines, out)
    }

    /// For programs: amounts are in the units of the resource types.
    pub(super) fn json(&self) -> Value {
        let named = |amounts: Amounts| -> BTreeMap<&str, i64> {
            TYPES.into_iter().map(|(type_, _)| type_).zip(amounts).collect()
        };
        let sums = self.states.iter().map(|(state, group)| {
            let sums = json!({ "claims": group.count, "amounts": named(group.sums) });
            (state.word(), sums)
        });
        let claims = self.rows().map(|(state, row)| {
            json!({
                "namespace": row.namespace,
                "instance": row.instance,
                "cell": Some(&row.cell).filter(|cell| !cell.is_empty()),
                "state": state.word(),
                "reason": Some(&row.why).filter(|why| !why.is_empty()),
                "created": row.created.map(|time| time.to_string()),
                "amounts": named(row.amounts),
            })
        });
        json!({ "sums": sums.collect::<BTreeMap<_, _>>(), "claims": claims.collect::<Vec<_>>() })
    }
}

impl Row {
    fn of(claim: &Object, amounts: Amounts) -> Self {
        let name = claim.name();
        let why = of(claim, GRANTED).filter(|one| text(one, "status") != "True");
        let why = why.map(|one| match (text(one, "reason"), text(one, "message")) {
            (reason, "") => reason.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        });
        Self {
            namespace: claim.namespace().to_owned(),
            instance: name
                .strip_prefix(names::RESOURCE_CLAIM_PREFIX)
                .unwrap_or(name)
                .to_owned(),
            cell: claim.label(labels::SOURCE_CLUSTER).unwrap_or_default().to_owned(),
            created: claim.created(),
            amounts,
            why: why.unwrap_or_default(),
        }
    }
}

/// What a claim asks for; `None` where that is nothing of ours.
fn amounts(claim: &Object) -> Option<Amounts> {
    let mut amounts = [0_i64; TYPES.len()];
    let mut is_ours = false;
    for request in claim.items("/spec/requests") {
        let type_ = text(request, "resourceType");
        let amount = request.get("amount").and_then(Value::as_i64).unwrap_or_default();
        for (sum, _) in amounts.iter_mut().zip(TYPES).filter(|(_, (ours, _))| *ours == type_) {
            *sum = sum.saturating_add(amount);
            is_ours = true;
        }
    }
    is_ours.then_some(amounts)
}

/// Numbers with their units.
fn shown(amounts: Amounts) -> [String; TYPES.len()] {
    let mut shown = amounts.map(|amount| amount.to_string());
    for (text, (_, unit)) in shown.iter_mut().zip(TYPES) {
        text.push_str(unit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(name: &str, granted: &Value, requests: &Value) -> Object {
        let condition = json!({ "type": "Granted", "status": granted[0], "reason": granted[1], "message": granted[2] });
        let status = if granted.is_null() {
            json!({})
        } else {
            json!({ "conditions": [condition] })
        };
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "shop", "creationTimestamp": "2026-01-01T12:00:00Z",
                "labels": { "compute.datumapis.com/source-cluster": "dfw-01" } },
            "spec": { "requests": requests }, "status": status,
        }))
        .unwrap()
    }

    fn asked(vcpus: i64) -> Value {
        json!([{ "resourceType": INSTANCES, "amount": 1 }, { "resourceType": VCPUS, "amount": vcpus },
            { "resourceType": MEMORY, "amount": 2048 }])
    }

    fn text_of(tally: &Tally) -> String {
        let mut out = Vec::new();
        tally.text("2026-01-01T12:05:00Z".parse().unwrap(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn claims_are_listed_with_the_worst_first_and_add_up() {
        let mut tally = Tally::new(100);
        for (name, granted, vcpus) in [
            ("instance-web-0", json!(["True", "QuotaAvailable", "ok"]), 1000),
            ("instance-web-1", json!(["False", "QuotaExceeded", "3 of 3"]), 1000),
            ("instance-web-2", json!(["False", "PendingEvaluation", ""]), 500),
            ("instance-web-3", json!(null), 500),
        ] {
            tally.add(&claim(name, &granted, &asked(vcpus)));
        }
        let expected = "\
NAMESPACE  INSTANCE  CELL    STATE    VCPUS  MEMORY  AGE  REASON
shop       web-1     dfw-01  denied   1000m  2048Mi  5m   QuotaExceeded: 3 of 3
shop       web-2     dfw-01  waiting  500m   2048Mi  5m   PendingEvaluation
shop       web-3     dfw-01  waiting  500m   2048Mi  5m
shop       web-0     dfw-01  granted  1000m  2048Mi  5m

STATE    CLAIMS  INSTANCES  VCPUS  MEMORY
granted  1       1          1000m  2048Mi
waiting  2       2          1000m  4096Mi
denied   1       1          1000m  2048Mi
";
        assert_eq!(text_of(&tally), expected);
        let json = tally.json();
        assert_eq!(json["sums"]["waiting"]["amounts"][VCPUS], 1000);
        assert_eq!(json["claims"][0]["instance"], "web-1");
        assert_eq!(tally.hidden(), Vec::<String>::new());
    }

    #[test]
    fn as_many_rows_are_kept_as_are_shown_and_sums_are_of_all() {
        let mut tally = Tally::new(2);
        for number in [3, 1, 4, 0, 2] {
            let name = format!("instance-web-{number}");
            tally.add(&claim(&name, &json!(["True", "QuotaAvailable", ""]), &asked(i64::MAX)));
        }
        let rows: Vec<_> = tally.rows().map(|(_, row)| row.instance.clone()).collect();
        assert_eq!(rows, ["web-0", "web-1"]);
        assert_eq!(tally.json()["sums"]["granted"]["claims"], 5);
        assert_eq!(tally.json()["sums"]["granted"]["amounts"][VCPUS], i64::MAX);
        assert_eq!(tally.hidden(), ["2 of 5 granted claims are listed"]);
    }

    #[test]
    fn claims_of_other_services_are_skipped() {
        let mut tally = Tally::new(100);
        let other = json!([{ "resourceType": "dns.example.org/zones", "amount": 1 }]);
        tally.add(&claim("zone-a", &json!(null), &other));
        tally.add(&claim("empty", &json!(null), &json!(null)));
        assert_eq!(tally.rows().count(), 0);
        assert!(text_of(&tally).starts_with("STATE"), "{}", text_of(&tally));
    }
}
