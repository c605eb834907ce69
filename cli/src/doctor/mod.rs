//! `popcell doctor`: what is wrong with the webhook, seen from where the command runs. Looking ([`observe`]) is apart from
//! judging ([`verdicts`]), which is pure.

mod karmada;
pub mod observe;
mod reach;
mod verdict;

pub use verdict::{Check, CheckResult, Id};

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use crate::{
    args::{DoctorFormat, planes::Doctor},
    console::Console,
    exit::{Exit, Outcome},
    register,
};
use observe::Observed;

/// Runs the command.
pub fn run(args: &Doctor, console: &mut Console) -> Outcome {
    let modules = match &args.module_dir {
        Some(folder) => Some(register::load(Some(folder), args.allow_core_kinds)?),
        None => None,
    };
    let descriptions: Option<Vec<_>> =
        modules.map(|modules| modules.iter().map(|module| module.description().clone()).collect());
    let runtime = crate::runtime()?;
    let end = args.wait.and_then(|wait| Instant::now().checked_add(wait));
    let mut reported = Vec::new();
    loop {
        let observed = runtime.block_on(observe::observe(args, descriptions.clone()))?;
        let checks = verdicts(&observed);
        let failed = failed(&checks);
        if failed.is_empty() || end.is_none_or(|end| Instant::now() >= end) {
            print(&observed.server, &checks, args.output, &mut console.out)?;
            return Ok(if failed.is_empty() { Exit::Success } else { Exit::Failed });
        }
        if failed != reported {
            writeln!(console.err, "waiting for {}", failed.join(", "))?;
            reported = failed;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Between two looks: a look is some 15 requests.
const PAUSE: Duration = Duration::from_secs(1);

fn failed(checks: &[Check]) -> Vec<&'static str> {
    checks
        .iter()
        .filter(|check| check.failed())
        .map(|check| check.id.as_str())
        .collect()
}

/// Every check over what was seen, in the order of [`Id::ALL`].
pub fn verdicts(observed: &Observed) -> Vec<Check> {
    let mut checks = karmada::registration(observed);
    checks.extend(reach::checks(observed));
    checks.extend(karmada::precedence(observed));
    checks.extend(karmada::members(observed));
    checks
}

fn print(server: &str, checks: &[Check], format: DoctorFormat, out: &mut dyn Write) -> io::Result<()> {
    if format == DoctorFormat::Json {
        return json(server, checks, out);
    }
    let mut category = "";
    for check in checks {
        let (id, (word, found)) = (check.id.as_str(), check.result.parts());
        let is_wrong = check.failed() || matches!(check.result, CheckResult::Warn(_));
        if format == DoctorFormat::Short {
            if !is_wrong {
                continue;
            }
            writeln!(out, "{word:<5} {id}: {found}")?;
        } else {
            if check.id.category() != category {
                category = check.id.category();
                writeln!(out, "{category}")?;
            }
            writeln!(out, "  {word:<5} {id:<28} {found}")?;
        }
        if is_wrong {
            writeln!(out, "        -> {} (docs/troubleshooting.md#{id})", check.id.fix())?;
        }
    }
    let count = |wanted: &str| checks.iter().filter(|check| check.result.parts().0 == wanted).count();
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
        let (result, found) = check.result.parts();
        serde_json::json!({
            "id": check.id.as_str(), "category": check.id.category(), "about": check.id.about(),
            "verdict": result, "found": found, "remedy": check.id.fix(),
        })
    };
    let ok = !checks.iter().any(Check::failed);
    let report =
        serde_json::json!({ "server": server, "ok": ok, "checks": checks.iter().map(one).collect::<Vec<_>>() });
    writeln!(out, "{report:#}")
}

#[cfg(test)]
mod tests;
