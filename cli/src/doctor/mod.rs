//! `popcell doctor`: what is wrong with the webhook, seen from where the command runs. Looking ([`observe`]) is apart from
//! judging ([`verdicts`]), which is pure.

mod configuration;
mod members;
pub mod observe;
mod precedence;
mod print;
mod reach;
mod verdict;

pub use verdict::{Check, CheckResult, Id};

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use crate::{
    args::planes::Doctor,
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
            print::checks(&observed.server, &checks, args.output, &mut console.out)?;
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
        .filter(|check| matches!(check.result, CheckResult::Fail(_)))
        .map(|check| check.id.as_str())
        .collect()
}

/// Every check over what was seen, in the order of [`Id::ALL`].
pub fn verdicts(observed: &Observed) -> Vec<Check> {
    let mut checks = configuration::checks(observed);
    checks.extend(reach::checks(observed));
    checks.extend(precedence::checks(observed));
    checks.extend(members::checks(observed));
    checks
}

#[cfg(test)]
mod tests;
