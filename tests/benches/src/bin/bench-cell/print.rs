//! The report for people.

use std::collections::BTreeMap;

use popcell_benches::{Effort, Times};

use crate::results::{Memory, Report, Who};

/// Prints the whole report.
pub(crate) fn report(report: &Report) {
    ordered(report);
    println!("\n| ms | p50 | p99 | samples |");
    println!("| --- | --: | --: | --: |");
    times("grant in the project -> gate gone in the cell", &report.grants);
    times("provider's word -> counted in the cell", &report.changed.to_deployment);
    times("provider's word -> copy on the hub", &report.changed.to_hub);
    memory(&report.memory);
    let started = &report.started;
    println!(
        "\n{} WorkloadDeployments of one instance, all made at once: ready and reported on the hub after {:.1} s; \
         for each:",
        started.deployments, started.seconds
    );
    effort(&started.effort);
    println!("\none of {} changes its status; for each:", report.plan.most());
    effort(&report.changed.effort);
    println!(
        "\nidle for {} s with {}: {:.0} KiB more, {:.0} page faults; in all:",
        report.idle.seconds,
        report.plan.most(),
        report.idle.grown_kib,
        report.idle.page_faults
    );
    effort(&report.idle.effort);
}

fn ordered(report: &Report) {
    println!("\n{} instances, one after the other", report.plan.slots);
    println!("| who | start s | of the least | a step p50 ms | p99 | roll s | of the least |");
    println!("| --- | --: | --: | --: | --: | --: | --: |");
    let least = report.ordered.iter().find(|one| one.who == Who::BareRequests);
    for one in &report.ordered {
        let of = |mine: f64, of: Option<f64>| of.map_or(f64::NAN, |least| mine / least);
        println!(
            "| {} | {:.2} | {:.1} | {:.1} | {:.1} | {:.2} | {:.1} |",
            one.who.name(),
            one.start_seconds,
            of(one.start_seconds, least.map(|least| least.start_seconds)),
            one.steps.p50,
            one.steps.p99,
            one.roll_seconds,
            of(one.roll_seconds, least.map(|least| least.roll_seconds))
        );
    }
}

fn times(what: &str, times: &Times) {
    println!(
        "| {what} | {:.1} | {:.1} | {} |",
        times.p50,
        times.p99,
        times.samples.len()
    );
}

fn memory(all: &[Memory]) {
    println!("\nmemory of a fresh process that has listed all, at rest");
    println!("| who | objects with one instance | resident MiB | peak MiB | KiB for each |");
    println!("| --- | --: | --: | --: | --: |");
    for one in all {
        let empty = all.iter().find(|other| other.who == one.who && other.deployments == 0);
        let share = empty.filter(|_| one.deployments > 0).map_or("-".to_owned(), |empty| {
            let grown = one.resident_kib - empty.resident_kib;
            format!("{:.1}", popcell_benches::counted::share(grown, one.deployments))
        });
        println!(
            "| {} | {} | {:.1} | {:.1} | {share} |",
            one.who.name(),
            one.deployments,
            one.resident_kib / 1024.0,
            one.peak_kib / 1024.0
        );
    }
}

fn effort(effort: &Effort) {
    let list = |what: &str, counts: &BTreeMap<String, f64>| {
        let counts = counts.iter().map(|(name, count)| format!("{name} {count:.2}"));
        let counts: Vec<String> = counts.collect();
        let counts = if counts.is_empty() {
            "none".to_owned()
        } else {
            counts.join(", ")
        };
        println!("  {what}: {counts}");
    };
    list("requests", &effort.requests);
    list("writes", &effort.writes);
    list("reconciles", &effort.reconciles);
}
