//! The report, for people and for programs.

use std::io::{self, Write};

use super::report::{Report, Sampled, Target};
use crate::args::CheckFormat;

pub(super) fn reports(reports: &[Report], format: CheckFormat, out: &mut dyn Write) -> io::Result<()> {
    match format {
        CheckFormat::Json => writeln!(out, "{:#}", serde_json::json!(reports)),
        CheckFormat::Text => reports.iter().try_for_each(|report| text(report, out)),
    }
}

fn text(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", report.origin)?;
    if let Some(file) = &report.module {
        let imports = if file.imports.is_empty() {
            "none".to_owned()
        } else {
            file.imports.join(", ")
        };
        writeln!(out, "  module     {}@{}", file.name, file.version)?;
        writeln!(out, "  interface  {}", file.interface)?;
        writeln!(out, "  imports    {imports}")?;
        writeln!(out, "  size       {} bytes", file.bytes)?;
        writeln!(out, "  sha256     {}", file.sha256)?;
    }
    report.targets.iter().try_for_each(|target| kind(target, out))
}

fn kind(target: &Target, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {} {}", target.api_version, target.kind)?;
    for available in &target.operations {
        let registered = match available.registered {
            Some(true) => "registered",
            Some(false) => "not registered",
            None => "served",
        };
        write!(out, "    {:<20} {registered:<15}", available.operation)?;
        if let Some(sample) = &available.sample {
            sampled(sample, out)?;
        }
        writeln!(out)?;
    }
    for off in &target.off {
        writeln!(out, "    {:<20} absent: {}", off.operation, off.means)?;
    }
    Ok(())
}

fn sampled(sample: &Sampled, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        " p50 {:>7.1} us  p99 {:>7.1} us",
        sample.p50_micros, sample.p99_micros
    )?;
    if let Some(peak) = sample.peak_memory_bytes {
        write!(out, "  {:>6} KiB", peak >> 10)?;
    }
    if sample.answer != "answered" {
        write!(out, "  ({})", sample.answer)?;
    }
    Ok(())
}
