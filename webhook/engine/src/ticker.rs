//! The clock of deadlines: an OS thread that moves wasmtime's epoch.
//!
//! It follows the monotonic clock, so that deadlines do not drift by the inexactness of sleeping, but it never makes up
//! for more than a few ticks: a process that was stopped (SIGSTOP, CPU quota) must not find its calls expired.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use wasmtime::EngineWeak;

use crate::limits::InstanceLimiter;

/// The grain of deadlines. Finer ones cost: with 1 ms the ticker took a fourteenth of the time of a busy server. Coarser
/// ones too: the fast path takes up to two ticks of a call's time before a slot takes over.
pub(crate) const TICK: Duration = Duration::from_millis(4);
/// The most ticks that one waking may bring.
const CATCH_UP: u32 = 2;
/// So many ticks without a call, and the ticker sleeps until there is one.
const IDLE: u32 = 25;

/// Starts the thread. It ends when the gate is closed or the engine is gone; the result is cancelled then, and after a
/// panic.
pub(crate) fn start(engine: EngineWeak, limiter: Arc<InstanceLimiter>) -> std::io::Result<CancellationToken> {
    let ended = CancellationToken::new();
    let end = ended.clone().drop_guard();
    thread::Builder::new().name("popcell-ticker".into()).spawn(move || {
        let _end = end;
        run(&engine, &limiter);
    })?;
    Ok(ended)
}

/// How many ticks make sure that a call gets at least `time`. The tick under way counts for nothing.
pub(crate) fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(TICK.as_nanos()))
        .unwrap_or(u64::MAX - 1)
        .saturating_add(1)
}

fn run(engine: &EngineWeak, limiter: &InstanceLimiter) {
    let mut last = Instant::now();
    let mut idle = 0;
    loop {
        thread::sleep(TICK);
        let Some(engine) = engine.upgrade() else { return };
        let due = due(last.elapsed());
        last = if due.forget {
            Instant::now()
        } else {
            last + TICK * due.ticks
        };
        for _ in 0..due.ticks {
            engine.increment_epoch();
        }
        drop(engine);
        idle = if limiter.is_idle() { idle + 1 } else { 0 };
        if idle >= IDLE {
            if !limiter.wait_for_call() {
                return;
            }
            last = Instant::now();
            idle = 0;
        }
    }
}

struct Due {
    ticks: u32,
    /// The rest of the time that passed is not made up for.
    forget: bool,
}

fn due(elapsed: Duration) -> Due {
    let passed = elapsed.as_nanos() / TICK.as_nanos();
    let ticks = u32::try_from(passed).unwrap_or(u32::MAX);
    Due {
        ticks: ticks.min(CATCH_UP),
        forget: ticks > CATCH_UP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_does_not_tick_in_a_burst() {
        let stopped = due(Duration::from_secs(5));
        assert_eq!(stopped.ticks, CATCH_UP);
        assert!(stopped.forget);
    }

    #[test]
    fn late_wakings_of_the_ticker_do_not_add_up() {
        // Each sleep takes 1.6 ticks; the time that is not ticked stays due.
        let (mut owed, mut ticked) = (Duration::ZERO, 0);
        for _ in 0..100 {
            owed += TICK * 8 / 5;
            let due = due(owed);
            owed -= TICK * due.ticks;
            ticked += due.ticks;
        }
        assert_eq!(ticked, 160);
    }

    /// The tolerance of the case. A machine that is too busy to wake the clock adds its own, which no test can ask away.
    #[test]
    fn a_loop_ends_within_50_ms_while_the_ticker_is_enqueued() {
        const TOLERANCE: Duration = Duration::from_millis(50);
        for time in [100, 900, 1500, 30_000].map(Duration::from_millis) {
            for late in [0, 60, 1000, 3900].map(Duration::from_micros) {
                // The call starts right after a tick: it has nothing of the one under way.
                let (mut now, mut owed, mut ticked) = (Duration::ZERO, Duration::ZERO, 0);
                while ticked < ticks(time) {
                    now += TICK + late;
                    owed += TICK + late;
                    let due = due(owed);
                    owed -= if due.forget { owed } else { TICK * due.ticks };
                    ticked += u64::from(due.ticks);
                }
                assert!(
                    (time..=time + TOLERANCE).contains(&now),
                    "{time:?} became {now:?} with {late:?}"
                );
            }
        }
    }

    #[test]
    fn a_call_gets_at_least_its_time() {
        assert_eq!(ticks(2 * TICK), 3);
        assert_eq!(ticks(Duration::from_micros(1)), 2);
        assert_eq!(ticks(Duration::MAX), u64::MAX);
    }
}
