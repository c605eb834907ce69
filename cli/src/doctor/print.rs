//! The report.

use std::io::{self, Write};

use super::{Check, CheckResult};
use crate::args::DoctorFormat;

pub(super) fn checks(server: &str, checks: &[Check], format: DoctorFormat, out: &mut dyn Write) -> io::Result<()> {
    match format {
        DoctorFormat::Json => json(server, checks, out),
        DoctorFormat::Table => table(checks, out),
        DoctorFormat::Short => short(checks, out),
    }
}

fn parts(result: &CheckResult) -> (&'static str, &str) {
    match result {
        CheckResult::Pass(found) => ("ok", found),
        CheckResult::Warn(found) => ("warn", found),
        CheckResult::Fail(found) => ("fail", found),
        CheckResult::Skip(found) => ("skip", found),
    }
}

fn table(checks: &[Check], out: &mut dyn Write) -> io::Result<()> {
    let mut category = "";
    for check in checks {
        if check.id.category() != category {
            category = check.id.category();
            writeln!(out, "{category}")?;
        }
        let (word, found) = parts(&check.result);
        writeln!(out, "  {word:<5} {:<28} {found}", check.id.as_str())?;
        fix(check, out)?;
    }
    summary(checks, out)
}

fn short(checks: &[Check], out: &mut dyn Write) -> io::Result<()> {
    for check in checks
        .iter()
        .filter(|check| matches!(check.result, CheckResult::Fail(_) | CheckResult::Warn(_)))
    {
        let (word, found) = parts(&check.result);
        writeln!(out, "{word:<5} {}: {found}", check.id.as_str())?;
        fix(check, out)?;
    }
    summary(checks, out)
}

fn fix(check: &Check, out: &mut dyn Write) -> io::Result<()> {
    if matches!(check.result, CheckResult::Fail(_) | CheckResult::Warn(_)) {
        writeln!(
            out,
            "        -> {} (docs/troubleshooting.md#{})",
            check.id.fix(),
            check.id.as_str()
        )?;
    }
    Ok(())
}

fn summary(checks: &[Check], out: &mut dyn Write) -> io::Result<()> {
    let count = |wanted: &str| checks.iter().filter(|check| parts(&check.result).0 == wanted).count();
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
        let (result, found) = parts(&check.result);
        serde_json::json!({
            "id": check.id.as_str(), "category": check.id.category(), "about": check.id.about(),
            "verdict": result, "found": found, "remedy": check.id.fix(),
        })
    };
    let ok = !checks.iter().any(|check| matches!(check.result, CheckResult::Fail(_)));
    let report =
        serde_json::json!({ "server": server, "ok": ok, "checks": checks.iter().map(one).collect::<Vec<_>>() });
    writeln!(out, "{report:#}")
}
