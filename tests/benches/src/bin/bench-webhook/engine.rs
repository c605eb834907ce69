//! The engine without a server: the call that our webhook makes, in this process.

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use popcell_engine::{Call, Engine, Module, Settings};
use popcell_protocol::{Gvk, Health, Operation, StatusItem};
use popcell_test_support::artifacts;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client;

/// The module and the objects, as the server would have them.
pub(crate) struct EngineCall {
    module: Module,
    kind: Gvk,
    object: Vec<u8>,
    observed: Vec<u8>,
    items: Vec<Reported>,
}

struct Reported {
    cluster: String,
    status: Box<RawValue>,
}

impl EngineCall {
    /// Loads the module that the server serves too, with the server's settings.
    pub(crate) fn load() -> Result<Self> {
        let file = artifacts::modules()?.join("karmada-example.wasm");
        let engine = Engine::new(&Settings::default()).context("failed to start the engine")?;
        let module = engine.load_file(&file).context("failed to load the module")?;
        Ok(Self {
            module,
            kind: Gvk::new("workload.example.io", "v1alpha1", "Workload"),
            object: read("object.yaml")?.to_string().into_bytes(),
            observed: read("observed.yaml")?.to_string().into_bytes(),
            items: reported(&read("items.yaml")?)?,
        })
    }

    /// Bytes of the object as JSON.
    pub(crate) fn object_bytes(&self) -> usize {
        self.object.len()
    }

    /// Median time of a call in a fresh instance, in microseconds.
    pub(crate) fn median(&self, operation: Operation, calls: usize) -> Result<f64> {
        let items: Vec<_> = self.items.iter().map(Reported::item).collect();
        let mut call = Call::new(operation, &self.kind, &self.object);
        match operation {
            Operation::Retain => call.observed = Some(&self.observed),
            Operation::ReviseReplica => call.replicas = 2,
            Operation::AggregateStatus => call.items = &items,
            _ => {}
        }
        let budget = Duration::from_secs(5);
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let started = Instant::now();
            let answer = black_box(self.module.call(black_box(&call), budget));
            times.push(started.elapsed());
            answer.with_context(|| format!("the engine failed at {operation:?}"))?;
        }
        times.sort_unstable();
        let median = times.get(times.len() / 2).context("no call was made")?;
        Ok(median.as_secs_f64() * 1e6)
    }
}

impl Reported {
    fn item(&self) -> StatusItem<'_> {
        StatusItem {
            cluster_name: self.cluster.as_str().into(),
            status: Some(&self.status),
            applied: true,
            applied_message: "".into(),
            health: Some(Health::Healthy),
        }
    }
}

fn read(name: &str) -> Result<Value> {
    let file = client::objects().join(name);
    let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("failed to read {}", file.display()))
}

fn reported(items: &Value) -> Result<Vec<Reported>> {
    let items = items.as_array().context("items.yaml is no list")?;
    items
        .iter()
        .map(|item| {
            let cluster = item.get("clusterName").and_then(Value::as_str);
            let status = item.get("status").context("an item has no status")?;
            Ok(Reported {
                cluster: cluster.context("an item has no clusterName")?.to_owned(),
                status: RawValue::from_string(status.to_string()).context("failed to write a status")?,
            })
        })
        .collect()
}
