//! A whole run.

use anyhow::Result;
use serde::Serialize;

use crate::client::{self, Measurement, Turn};
use crate::engine::EngineCall;
use crate::large::{self, LargeSummary};
use crate::memory::{self, Memory};
use crate::peers::{Peer, Peers, Target};
use crate::plan::{MEASURED, Plan, patches};
use crate::results::{EngineSummary, Key, Summary, median};
use crate::verdict::{self, Verdict};

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) plan: Plan,
    pub(crate) object_bytes: usize,
    pub(crate) summaries: Vec<Summary>,
    pub(crate) engine: Vec<EngineSummary>,
    pub(crate) large: Vec<LargeSummary>,
    pub(crate) memory: Memory,
    pub(crate) verdicts: Vec<Verdict>,
}

impl Report {
    /// Starts everything, measures, ends everything.
    pub(crate) async fn measure(plan: &Plan) -> Result<Self> {
        println!("starting the servers");
        let peers = Peers::start().await?;
        let engine = EngineCall::load()?;
        let mut samples = Samples::default();
        for round in 0..plan.rounds {
            println!("round {} of {}", round + 1, plan.rounds);
            samples.round(plan, round, &peers.targets()?, &engine)?;
        }
        drop(peers);
        println!("objects of 1 MiB");
        let large = large::measure(plan.large_calls)?;
        println!("memory over {} calls", plan.memory_calls[1]);
        let memory = memory::measure(plan).await?;
        let (summaries, of_engine) = samples.summaries();
        Ok(Self {
            plan: plan.clone(),
            object_bytes: engine.object_bytes(),
            verdicts: verdict::all(&summaries, &of_engine, &large, &memory),
            summaries,
            engine: of_engine,
            large,
            memory,
        })
    }
}

/// The measurements of the rounds so far, in the order of the first.
#[derive(Default)]
struct Samples {
    clients: Vec<(Key, Vec<Measurement>)>,
    engine: Vec<EngineSummary>,
}

impl Samples {
    fn round(&mut self, plan: &Plan, round: usize, targets: &[Target], engine: &EngineCall) -> Result<()> {
        for operation in MEASURED {
            // Another target begins in each round, so that none always follows the same one.
            let order = targets.iter().cycle().skip(round % targets.len()).take(targets.len());
            for target in order {
                // Lua takes milliseconds where it changes objects.
                let slow = target.peer == Peer::Lua && patches(operation);
                let turn = Turn {
                    operation,
                    callers: &plan.callers,
                    count: if slow { plan.count.div_ceil(4) } else { plan.count },
                    warm_up: if slow { plan.warm_up.div_ceil(4) } else { plan.warm_up },
                };
                for measurement in client::run(target, &turn)? {
                    let key = Key {
                        peer: target.peer,
                        transport: target.transport,
                        operation,
                        callers: measurement.callers,
                    };
                    self.add(key, measurement);
                }
            }
            self.add_engine(operation, engine.median(operation, plan.engine_calls)?);
        }
        Ok(())
    }

    fn add(&mut self, key: Key, measurement: Measurement) {
        match self.clients.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rounds)) => rounds.push(measurement),
            None => self.clients.push((key, vec![measurement])),
        }
    }

    fn add_engine(&mut self, operation: popcell_protocol::Operation, micros: f64) {
        match self.engine.iter_mut().find(|summary| summary.operation == operation) {
            Some(summary) => {
                summary.rounds.push(micros);
                summary.p50_micros = median(summary.rounds.clone());
            }
            None => self.engine.push(EngineSummary {
                operation,
                p50_micros: micros,
                rounds: vec![micros],
            }),
        }
    }

    fn summaries(self) -> (Vec<Summary>, Vec<EngineSummary>) {
        let summaries = self.clients.into_iter();
        let summaries = summaries.map(|(key, rounds)| Summary::of(key, rounds)).collect();
        (summaries, self.engine)
    }
}
