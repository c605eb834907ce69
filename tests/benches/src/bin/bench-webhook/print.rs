//! The report for people.

use crate::peers::{Peer, Transport};
use crate::plan::MEASURED;
use crate::report::Report;
use crate::results::Summary;

/// Prints the whole report.
pub(crate) fn report(report: &Report) {
    let plan = &report.plan;
    println!(
        "object of {} bytes; medians of {} rounds of {} calls; us unless said",
        report.object_bytes, plan.rounds, plan.count
    );
    for &callers in &plan.callers {
        println!("\n{callers} {}", if callers == 1 { "caller" } else { "callers" });
        table(report, callers);
    }
    engine_and_memory(report);
    verdicts(report);
}

fn table(report: &Report, callers: usize) {
    println!(
        "  {:<16} {:<11} {:<10} {:>7} {:>7} {:>8} {:>10} {:>10} {:>11}",
        "operation", "who", "over", "p50", "p99", "calls/s", "server CPU", "client CPU", "server MiB"
    );
    for operation in MEASURED {
        let mut summaries: Vec<&Summary> = report
            .summaries
            .iter()
            .filter(|summary| summary.key.operation == operation && summary.key.callers == callers)
            .collect();
        summaries.sort_by_key(|summary| (order(summary.key.transport), summary.key.peer));
        for summary in summaries {
            println!(
                "  {:<16} {:<11} {:<10} {:>7.0} {:>7.0} {:>8.0} {:>10} {:>10.0} {:>11}",
                operation.as_str(),
                summary.key.peer.name(),
                summary.key.transport.name(),
                summary.p50_micros,
                summary.p99_micros,
                summary.calls_per_second,
                or_dash(summary.server_cpu_micros, 0),
                summary.client_cpu_micros,
                or_dash(summary.server_rss_kib.map(|kib| kib / 1024.0), 1)
            );
        }
    }
}

/// Lua between the two wires would tear the table apart.
fn order(transport: Transport) -> u8 {
    match transport {
        Transport::InProcess => 0,
        Transport::Http1 => 1,
        Transport::Http2 => 2,
    }
}

fn or_dash(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn engine_and_memory(report: &Report) {
    println!("\nengine alone, in this process, a fresh instance for every call");
    for summary in &report.engine {
        let lua = report
            .summaries
            .iter()
            .find(|other| {
                other.key.peer == Peer::Lua && other.key.operation == summary.operation && other.key.callers == 1
            })
            .map_or(f64::NAN, |lua| lua.p50_micros);
        println!(
            "  {:<16} p50 {:>6.1}   Lua p50 {lua:>6.0}, {:.0} times as much",
            summary.operation.as_str(),
            summary.p50_micros,
            lua / summary.p50_micros
        );
    }
    println!("\nengine alone, calls about objects of 1 MiB, compute.wasm");
    for summary in &report.large {
        println!(
            "  {:<16} {:<16} CPU {:>6.1} ms   guest {:>5.1} MiB",
            summary.operation.as_str(),
            summary.shape,
            summary.cpu_millis,
            summary.guest_mib
        );
    }
    println!("\nresident memory of popcell-webhook, 16 callers over http/1.1");
    println!("  ready            {:>6.1} MiB", report.memory.idle_kib / 1024.0);
    for sample in &report.memory.after {
        println!("  {:>7} calls    {:>6.1} MiB", sample.calls, sample.kib / 1024.0);
    }
}

fn verdicts(report: &Report) {
    println!("\nrequired");
    let mut last = "";
    for verdict in &report.verdicts {
        if verdict.requirement != last {
            println!("  {}", verdict.requirement);
            last = verdict.requirement;
        }
        println!(
            "    {:<6} {:<42} {:.3}, at most {:.3}",
            if verdict.met { "met" } else { "MISSED" },
            verdict.of,
            verdict.ratio,
            verdict.limit
        );
    }
    let met = report.verdicts.iter().filter(|verdict| verdict.met).count();
    println!("  {met} of {} met", report.verdicts.len());
}
