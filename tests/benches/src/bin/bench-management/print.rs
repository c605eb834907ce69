//! The report for people.

use crate::plan::LARGE_BYTES;
use crate::results::{Memory, Report};

/// Milo's controller-manager in production, which engages projects with the library of upstream's compute operator
/// (milo-os/milo, pull request 632): projects, and its working set in KiB.
const UPSTREAM: (f64, f64) = (395.0, 5.51 * 1024.0 * 1024.0);

/// Prints the whole report.
pub(crate) fn report(report: &Report) {
    memory(&report.memory);
    large(report);
    latencies(report);
    noisy(report);
    requests(report);
}

fn memory(all: &[Memory]) {
    let idle = all
        .iter()
        .find(|each| each.projects == 0)
        .map_or(f64::NAN, |each| each.resident_kib);
    let upstream = UPSTREAM.1 / UPSTREAM.0;
    println!("\nmemory, every project engaged and idle");
    println!(
        "| projects | over | resident MiB | peak MiB | KiB a project | upstream / popcell | files | threads | engaged after |"
    );
    println!("| --: | --- | --: | --: | --: | --: | --: | --: | --: |");
    for each in all {
        let (mut share, mut ratio) = ("-".to_owned(), "-".to_owned());
        if each.projects > 0 {
            #[expect(clippy::cast_precision_loss, reason = "there are few")]
            let of_one = (each.resident_kib - idle) / each.projects as f64;
            share = format!("{of_one:.0}");
            ratio = format!("{:.0}", upstream / of_one);
        }
        println!(
            "| {} | {} | {:.1} | {:.1} | {share} | {ratio} | {} | {:.0} | {:.1} s |",
            each.projects,
            each.way.name(),
            each.resident_kib / 1024.0,
            each.peak_kib / 1024.0,
            each.open_files,
            each.threads,
            each.engaged_after_seconds
        );
    }
    println!("upstream: {:.1} MiB a project, not idle", upstream / 1024.0);
}

fn latencies(report: &Report) {
    println!("\n| ms | engaged | p50 | p99 | samples |");
    println!("| --- | --: | --: | --: | --: |");
    for each in &report.latencies {
        println!(
            "| {} | {} | {:.1} | {:.1} | {} |",
            each.what,
            each.engaged,
            each.times.p50,
            each.times.p99,
            each.times.samples.len()
        );
    }
}

fn large(report: &Report) {
    let [without, with] = &report.large;
    println!(
        "\n{} WorkloadDeployments of {:.1} MB in one project: {:.1} MiB more at rest (wanted: less than 60), {:.1} at the peak",
        report.plan.large,
        f64::from(LARGE_BYTES) / 1e6,
        (with.resident_kib - without.resident_kib) / 1024.0,
        (with.peak_kib - without.peak_kib) / 1024.0
    );
}

fn noisy(report: &Report) {
    let quiet = report.noisy.first().map_or(f64::NAN, |first| first.times.p99);
    println!(
        "\n| Workload -> hub WD, of another project's {} that fail, ms | p50 | p99 | of the quiet p99 (wanted: 2 at most) |",
        report.plan.failing
    );
    println!("| --- | --: | --: | --: |");
    for each in &report.noisy {
        println!(
            "| {} | {:.1} | {:.1} | {:.1} |",
            each.what,
            each.times.p50,
            each.times.p99,
            each.times.p99 / quiet
        );
    }
}

fn requests(report: &Report) {
    println!(
        "\n| requests for each of {} | project | of them writes | hub | of them writes |",
        report.plan.objects
    );
    println!("| --- | --: | --: | --: | --: |");
    for each in &report.requests {
        println!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} |",
            each.what,
            each.effort.requests_to("project"),
            each.effort.writes_to("project"),
            each.effort.requests_to("hub"),
            each.effort.writes_to("hub")
        );
    }
    for each in &report.requests {
        println!("\n{}", each.what);
        for (request, count) in each.effort.writes.iter().chain(&each.seen) {
            println!("  {count:>6.2} {request}");
        }
    }
}
