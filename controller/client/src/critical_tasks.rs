//! Tasks without which the process is of no use.
//!
//! A task that panics dies alone: tokio reports it to the task that awaits it, and no task awaits one that is to run until
//! the end. The rest would keep running, hold the Lease and answer probes, and reconcile nothing. So its end is reported
//! here, and the program ends because of it.
//!
//! Invariant: the first end is kept, so none is lost, however late a caller asks.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::error;

/// A required task that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub task: String,
    /// The message of its panic; `None` where it just ended.
    pub panic: Option<String>,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.panic {
            Some(message) => write!(f, "{} panicked: {message}", self.task),
            None => write!(f, "{} ended by itself", self.task),
        }
    }
}

/// Who is told that a required task has ended. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CriticalTasks(Arc<watch::Sender<Option<Ended>>>);

impl CriticalTasks {
    /// The same task, which is reported when it panics, or ends before `stop`.
    pub async fn until(self, stop: CancellationToken, task: String, future: impl Future) {
        let panic = match AssertUnwindSafe(future).catch_unwind().await {
            Ok(_) if stop.is_cancelled() => return,
            Ok(_) => None,
            Err(panic) => Some(message(panic.as_ref())),
        };
        self.report(Ended { task, panic });
    }

    /// The same task, which never ends but when it is dropped.
    pub async fn endless(self, task: impl Into<String>, future: impl Future) {
        self.until(CancellationToken::new(), task.into(), future).await;
    }

    /// Waits until a required task has ended.
    pub async fn failed(&self) -> Ended {
        let mut ended = self.0.subscribe();
        match ended.wait_for(Option::is_some).await.map(|ended| ended.clone()) {
            Ok(Some(ended)) => ended,
            // Without the sender there is no task either.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    fn report(&self, ended: Ended) {
        error!("a required task ended: {ended}; the process stops");
        self.0.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(ended);
            is_first
        });
    }
}

/// What a panic said.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    const SOON: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_or_ends_is_reported_with_its_name() {
        for (number, panic) in [(1, Some("number 1")), (2, None)] {
            let (required, stop) = (CriticalTasks::default(), CancellationToken::new());
            let task = async move {
                sleep(SOON / 2).await;
                assert!(number != 1, "number {number}");
            };
            tokio::spawn(required.clone().until(stop, format!("task {number}"), task));
            assert!(timeout(SOON / 4, required.failed()).await.is_err(), "it runs");
            let ended = timeout(SOON, required.failed()).await.unwrap();
            assert_eq!((ended.task, ended.panic.as_deref()), (format!("task {number}"), panic));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_after_the_stop_is_none_but_a_panic_is() {
        let (required, stop) = (CriticalTasks::default(), CancellationToken::new());
        stop.cancel();
        required.clone().until(stop.clone(), "a".to_owned(), async {}).await;
        assert!(timeout(SOON, required.failed()).await.is_err());
        required
            .clone()
            .until(stop, "b".to_owned(), async { panic!("late") })
            .await;
        assert_eq!(required.failed().await.to_string(), "b panicked: late");
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_end_is_kept_for_whoever_asks() {
        let required = CriticalTasks::default();
        required.clone().endless("first", async {}).await;
        required.clone().endless("second", async {}).await;
        for _ in 0..2 {
            assert_eq!(required.failed().await.to_string(), "first ended by itself");
        }
    }
}
