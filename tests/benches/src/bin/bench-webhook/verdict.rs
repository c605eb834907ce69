//! What is required of the values.

use popcell_protocol::Operation;
use serde::Serialize;

use crate::large::LargeSummary;
use crate::memory::Memory;
use crate::peers::{Peer, Transport};
use crate::plan::{MEASURED, patches};
use crate::results::{EngineSummary, Key, Summary};

/// How far the memory of a server may move while it is called flat.
const FLAT: f64 = 1.05;

/// One requirement with what was measured. It is met when the ratio is not above the limit.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) requirement: &'static str,
    /// What it was measured with, such as `Retain, http/1.1, 16 callers`.
    pub(crate) of: String,
    pub(crate) ratio: f64,
    pub(crate) limit: f64,
    pub(crate) met: bool,
}

impl Verdict {
    fn new(requirement: &'static str, of: String, ratio: f64, limit: f64) -> Self {
        Self {
            requirement,
            of,
            ratio,
            limit,
            met: ratio <= limit,
        }
    }
}

/// All requirements. One whose values are missing is not met.
pub(crate) fn all(
    summaries: &[Summary],
    engine: &[EngineSummary],
    large: &[LargeSummary],
    memory: &Memory,
) -> Vec<Verdict> {
    let mut verdicts: Vec<_> = MEASURED
        .into_iter()
        .flat_map(|operation| {
            let ours = summaries
                .iter()
                .filter(move |summary| summary.key.peer == Peer::Popcell && summary.key.operation == operation);
            ours.flat_map(|ours| of_server(summaries, ours))
        })
        .collect();
    verdicts.sort_by_key(|verdict| verdict.requirement);
    verdicts.push(of_engine(summaries, engine));
    verdicts.extend(of_large(large));
    verdicts.push(of_memory(memory));
    verdicts
}

/// The dearest call decides; without any there is no verdict that is met.
fn of_large(large: &[LargeSummary]) -> [Verdict; 2] {
    let most = |requirement, value: fn(&LargeSummary) -> f64, limit: f64| {
        let dearest = large.iter().max_by(|one, other| value(one).total_cmp(&value(other)));
        let of = dearest.map_or_else(String::new, |summary| {
            format!("{}, {}", summary.operation.as_str(), summary.shape)
        });
        Verdict::new(requirement, of, dearest.map_or(f64::NAN, value) / limit, 1.0)
    };
    [
        most(
            "CPU of a call about 1 MiB, to 30 ms",
            |summary| summary.cpu_millis,
            30.0,
        ),
        most(
            "guest memory of a call about 1 MiB, to 16 MiB",
            |summary| summary.guest_mib,
            16.0,
        ),
    ]
}

fn of_server(summaries: &[Summary], ours: &Summary) -> Vec<Verdict> {
    let key = ours.key;
    let callers = if key.callers == 1 { "caller" } else { "callers" };
    let of = format!(
        "{}, {}, {} {callers}",
        key.operation.as_str(),
        key.transport.name(),
        key.callers
    );
    let server_of = |peer| {
        let theirs = find(summaries, Key { peer, ..key });
        ratio(
            ours.server_cpu_micros,
            theirs.and_then(|summary| summary.server_cpu_micros),
        )
    };
    let share = if patches(key.operation) { 6.0 } else { 4.0 };
    let mut verdicts = vec![
        Verdict::new(
            "CPU of the server, to the Go webhook's",
            of.clone(),
            server_of(Peer::GoWebhook),
            1.0 / share,
        ),
        Verdict::new(
            "CPU of the server, to the no-op echo's",
            of.clone(),
            server_of(Peer::Echo),
            2.0,
        ),
    ];
    if patches(key.operation) {
        let lua = Key {
            peer: Peer::Lua,
            transport: Transport::InProcess,
            ..key
        };
        let lua = find(summaries, lua).map(Summary::total_cpu_micros);
        verdicts.push(Verdict::new(
            "CPU of client and server, to Lua's",
            of,
            ratio(Some(ours.total_cpu_micros()), lua),
            0.5,
        ));
    }
    verdicts
}

fn of_engine(summaries: &[Summary], engine: &[EngineSummary]) -> Verdict {
    let operation = Operation::InterpretHealth;
    let ours = engine.iter().find(|summary| summary.operation == operation);
    let lua = find(
        summaries,
        Key {
            peer: Peer::Lua,
            transport: Transport::InProcess,
            operation,
            callers: 1,
        },
    );
    Verdict::new(
        "median time of an engine call, to Lua's",
        format!("{}, in process", operation.as_str()),
        ratio(
            ours.map(|summary| summary.p50_micros),
            lua.map(|summary| summary.p50_micros),
        ),
        1.0 / 15.0,
    )
}

fn of_memory(memory: &Memory) -> Verdict {
    let (first, last) = (memory.after.first(), memory.after.last());
    Verdict::new(
        "memory after many calls, to after few",
        format!(
            "{} and {} calls",
            last.map_or(0, |sample| sample.calls),
            first.map_or(0, |sample| sample.calls)
        ),
        ratio(last.map(|sample| sample.kib), first.map(|sample| sample.kib)),
        FLAT,
    )
}

/// The summary of a key.
pub(crate) fn find(summaries: &[Summary], key: Key) -> Option<&Summary> {
    summaries.iter().find(|summary| summary.key == key)
}

fn ratio(ours: Option<f64>, theirs: Option<f64>) -> f64 {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => ours / theirs,
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Sample;

    #[test]
    fn a_missing_summary_meets_nothing() {
        let verdict = of_engine(&[], &[]);
        assert!(verdict.ratio.is_nan() && !verdict.met);
    }

    #[test]
    fn the_dearest_large_call_decides() {
        let summary = |cpu_millis, guest_mib| LargeSummary {
            shape: "deep",
            operation: Operation::Retain,
            cpu_millis,
            guest_mib,
        };
        let [cpu, memory] = of_large(&[summary(3.0, 15.0), summary(31.0, 2.0)]);
        assert!(!cpu.met && memory.met);
        assert_eq!(cpu.of, "Retain, deep");
        assert!(of_large(&[]).iter().all(|verdict| !verdict.met));
    }

    #[test]
    fn memory_that_grows_is_not_flat() {
        let of = |kib| {
            of_memory(&Memory {
                idle_kib: 1.0,
                after: vec![Sample { calls: 10, kib: 100.0 }, Sample { calls: 200, kib }],
            })
        };
        assert!(of(104.0).met && of(60.0).met);
        assert!(!of(106.0).met);
    }
}
