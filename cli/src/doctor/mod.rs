//! `popcell doctor`: what is wrong with the webhook, seen from where the command runs. Looking ([`observe`]) is apart from
//! judging ([`verdicts`]), which is pure.

mod configuration;
mod members;
pub mod observe;
mod precedence;
mod print;
mod reach;
mod verdict;

pub use verdict::{Check, Id, Verdict};

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
    let descriptions = modules.map(|modules| modules.iter().map(|module| module.description().clone()).collect());
    let observed = crate::runtime()?.block_on(observe::observe(args, descriptions))?;
    let checks = verdicts(&observed);
    print::checks(&observed.server, &checks, args.output, &mut console.out)?;
    let failed = checks.iter().any(|check| matches!(check.verdict, Verdict::Fail(_)));
    Ok(if failed { Exit::Failed } else { Exit::Success })
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
