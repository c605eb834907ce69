//! Whether the server keeps memory from call to call.

use anyhow::{Context, Result};
use popcell_test_support::process::resident_kib;
use serde::Serialize;

use crate::client::{self, Turn};
use crate::peers;
use crate::plan::{MEASURED, Plan};

/// Resident memory of a server of ours that did nothing else.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Memory {
    /// Ready, never called.
    pub(crate) idle_kib: f64,
    /// By number of calls so far.
    pub(crate) after: Vec<Sample>,
}

/// Resident memory after a number of calls.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) calls: usize,
    pub(crate) kib: f64,
}

/// Calls a fresh server with 16 callers, all operations in turn.
pub(crate) async fn measure(plan: &Plan) -> Result<Memory> {
    let (webhook, target) = peers::fresh_popcell().await?;
    let pid = webhook.pid().context("popcell-webhook does not run")?;
    let idle_kib = resident_kib(pid)?;
    let mut made = 0;
    let mut after = Vec::new();
    for calls in plan.memory_calls {
        let share = (calls - made).div_ceil(MEASURED.len());
        for operation in MEASURED {
            let turn = Turn {
                operation,
                callers: &[16],
                count: share,
                warm_up: 0,
            };
            client::run(&target, &turn)?;
            made += share;
        }
        let kib = resident_kib(pid)?;
        after.push(Sample { calls: made, kib });
    }
    Ok(Memory { idle_kib, after })
}
