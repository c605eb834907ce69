//! The report for people.

use crate::figures::Figure;
use crate::peers::{Peer, Transport};
use crate::plan::MEASURED;
use crate::report::Report;

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
        let mut figures: Vec<&Figure> = report
            .figures
            .iter()
            .filter(|figure| figure.key.operation == operation && figure.key.callers == callers)
            .collect();
        figures.sort_by_key(|figure| (order(figure.key.transport), figure.key.peer));
        for figure in figures {
            println!(
                "  {:<16} {:<11} {:<10} {:>7.0} {:>7.0} {:>8.0} {:>10} {:>10.0} {:>11}",
                operation.as_str(),
                figure.key.peer.name(),
                figure.key.transport.name(),
                figure.p50_micros,
                figure.p99_micros,
                figure.calls_per_second,
                or_dash(figure.server_cpu_micros, 0),
                figure.client_cpu_micros,
                or_dash(figure.server_rss_kib.map(|kib| kib / 1024.0), 1)
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
    for figure in &report.engine {
        let lua = report
            .figures
            .iter()
            .find(|other| {
                other.key.peer == Peer::Lua && other.key.operation == figure.operation && other.key.callers == 1
            })
            .map_or(f64::NAN, |lua| lua.p50_micros);
        println!(
            "  {:<16} p50 {:>6.1}   Lua p50 {lua:>6.0}, {:.0} times as much",
            figure.operation.as_str(),
            figure.p50_micros,
            lua / figure.p50_micros
        );
    }
    println!("\nengine alone, calls about objects of 1 MiB, compute.wasm");
    for figure in &report.large {
        println!(
            "  {:<16} {:<16} CPU {:>6.1} ms   guest {:>5.1} MiB",
            figure.operation.as_str(),
            figure.shape,
            figure.cpu_millis,
            figure.guest_mib
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
