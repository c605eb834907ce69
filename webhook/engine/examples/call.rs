//! What one call costs, in a fresh instance, on an object of 2.8 KB:
//! `cargo run --release -p popcell-engine --example call -- target/modules/compute.wasm [calls]`.

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use popcell_engine::{Call, Engine, Implemented, Module, Settings};
use popcell_protocol::{Gvk, StatusItem};
use serde_json::json;
use serde_json::value::RawValue;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), calls) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: call MODULE.wasm [CALLS]");
        return ExitCode::from(2);
    };
    let calls = calls.and_then(|calls| calls.parse().ok()).unwrap_or(20_000);
    match measure(Path::new(&file), calls) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(file: &Path, calls: usize) -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::new(&Settings::default())?;
    let started = Instant::now();
    let module = engine.load_file(file)?;
    println!(
        "{} ({} bytes), allocator {}, loaded in {:.0?}",
        module.label(),
        module.size(),
        engine.allocator(),
        started.elapsed()
    );
    let target = module.description().targets.first().ok_or("the module has no target")?;
    let object = object(&target.kind);
    println!(
        "object of {} bytes, {calls} calls each, a fresh instance for every call",
        object.len()
    );
    println!(
        "{:<20} {:>8} {:>8} {:>8}  result",
        "operation", "min us", "p50 us", "p99 us"
    );
    for Implemented { operation, .. } in &target.operations {
        let status = RawValue::from_string(r#"{"replicas":1,"readyReplicas":1,"observedGeneration":2}"#.into())?;
        let items = ["dfw", "ord", "iad"].map(|name| item(name, &status));
        let call = Call {
            observed: Some(&object),
            replicas: 3,
            items: &items,
            ..Call::new(*operation, &target.kind, &object)
        };
        report(&module, &call, calls);
    }
    Ok(())
}

fn report(module: &Module, call: &Call<'_>, calls: usize) {
    let budget = Duration::from_secs(1);
    let result = module.call(call, budget).map_or_else(|error| error.label(), |_| "ok");
    let mut times: Vec<Duration> = (0..calls)
        .map(|_| {
            let started = Instant::now();
            // The result was looked at above; here only its cost matters.
            let _ = black_box(module.call(black_box(call), budget));
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    let at = |share: usize| {
        times
            .get(times.len() * share / 100)
            .map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    println!(
        "{:<20} {:>8.1} {:>8.1} {:>8.1}  {result}",
        call.operation.as_str(),
        at(0),
        at(50),
        at(99)
    );
}

fn item<'a>(name: &'a str, status: &'a RawValue) -> StatusItem<'a> {
    StatusItem {
        cluster_name: name.into(),
        status: Some(status),
        applied: true,
        applied_message: "".into(),
        health: None,
    }
}

/// An object as a member cluster holds it: most of it is `managedFields`.
fn object(kind: &Gvk) -> Vec<u8> {
    let fields: serde_json::Map<String, serde_json::Value> = (0..62)
        .map(|number| (format!("f:field{number:02}"), json!({"f:name": {}})))
        .collect();
    let object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {
            "name": "edge-dfw", "namespace": "ns-3f0c8a52-90f4-4b0e-8f0e-0a5f0e3a0001", "generation": 2,
            "uid": "5b6f0f34-1111-4222-8333-444455556666", "resourceVersion": "81234",
            "annotations": {"resourcetemplate.karmada.io/generation": "2"},
            "labels": {"compute.datumapis.com/city-code": "DFW", "karmada.io/managed": "true"},
            "managedFields": [{"manager": "karmada", "operation": "Update", "fieldsV1": {"f:spec": fields}}],
        },
        "spec": {
            "replicas": 1, "cityCode": "DFW",
            "scaleSettings": {"minReplicas": 1, "maxReplicas": 3},
            "template": {"spec": {"runtime": {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}}},
        },
        "status": {
            "replicas": 1, "readyReplicas": 1, "currentReplicas": 1, "updatedReplicas": 1, "desiredReplicas": 1,
            "observedGeneration": 2,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "Available", "message": "1 of 1 instances ready",
                 "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 2},
                {"type": "ReplicasReady", "status": "True", "reason": "Ready", "message": "",
                 "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 2},
            ],
        },
    });
    object.to_string().into_bytes()
}
