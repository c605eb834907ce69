//! The report.

use std::io::{self, Write};

use super::{Check, Verdict};
use crate::args::DoctorFormat;

pub(super) fn checks(server: &str, checks: &[Check], format: DoctorFormat, out: &mut dyn Write) -> io::Result<()> {
    match format {
        DoctorFormat::Json => json(server, checks, out),
        DoctorFormat::Table => table(checks, out),
        DoctorFormat::Short => short(checks, out),
    }
}

fn parts(verdict: &Verdict) -> (&'static str, &str) {
    match verdict {
        Verdict::Pass(found) => ("ok", found),
        Verdict::Warn(found) => ("warn", found),
        Verdict::Fail(found) => ("fail", found),
        Verdict::Skip(found) => ("skip", found),
    }
}

fn table(checks: &[Check], out: &mut dyn Write) -> io::Result<()> {
    let mut category = "";
    for check in checks {
        if check.id.category() != category {
            category = check.id.category();
            writeln!(out, "{category}")?;
        }
        let (word, found) = parts(&check.verdict);
        writeln!(out, "  {word:<5} {:<28} {found}", check.id.as_str())?;
        remedy(check, out)?;
    }
    summary(checks, out)
}

fn short(checks: &[Check], out: &mut dyn Write) -> io::Result<()> {
    for check in checks
        .iter()
        .filter(|check| matches!(check.verdict, Verdict::Fail(_) | Verdict::Warn(_)))
    {
        let (word, found) = parts(&check.verdict);
        writeln!(out, "{word:<5} {}: {found}", check.id.as_str())?;
        remedy(check, out)?;
    }
    summary(checks, out)
}

fn remedy(check: &Check, out: &mut dyn Write) -> io::Result<()> {
    if matches!(check.verdict, Verdict::Fail(_) | Verdict::Warn(_)) {
        writeln!(
            out,
            "        -> {} (docs/troubleshooting.md#{})",
            check.id.remedy(),
            check.id.as_str()
        )?;
    }
    Ok(())
}

fn summary(checks: &[Check], out: &mut dyn Write) -> io::Result<()> {
    let count = |wanted: &str| checks.iter().filter(|check| parts(&check.verdict).0 == wanted).count();
    writeln!(
        out,
        "{} ok, {} warnings, {} failed, {} skipped",
        count("ok"),
        count("warn"),
        count("fail"),
        count("skip")
    )
}

fn json(server: &str, checks: &[Check], out: &mut dyn Write) -> io::Result<()> {
    let one = |check: &Check| {
        let (verdict, found) = parts(&check.verdict);
        serde_json::json!({
            "id": check.id.as_str(), "category": check.id.category(), "about": check.id.about(),
            "verdict": verdict, "found": found, "remedy": check.id.remedy(),
        })
    };
    let ok = !checks.iter().any(|check| matches!(check.verdict, Verdict::Fail(_)));
    let report =
        serde_json::json!({ "server": server, "ok": ok, "checks": checks.iter().map(one).collect::<Vec<_>>() });
    writeln!(out, "{report:#}")
}
