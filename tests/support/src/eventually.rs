//! Waiting for a condition instead of for a time.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use tokio::time::{Instant, sleep, timeout_at};

const PAUSE: Duration = Duration::from_millis(100);

/// Looks again and again until `look` answers `Ok`, and answers that.
///
/// `look` answers an error while the condition does not hold; what it says is "what was seen instead". A look that
/// itself takes longer than the deadline is given up.
///
/// # Errors
/// After `deadline`: names `what` was awaited and what was seen last.
pub async fn eventually<T>(what: &str, deadline: Duration, mut look: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let end = Instant::now() + deadline;
    let mut last: Option<anyhow::Error> = None;
    loop {
        match timeout_at(end, look()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(seen)) => last = Some(seen),
            Err(_) => break,
        }
        if Instant::now() + PAUSE >= end {
            break;
        }
        sleep(PAUSE).await;
    }
    let seen = last.unwrap_or_else(|| anyhow!("the first look did not end"));
    Err(seen).with_context(|| format!("failed to see within {deadline:?}: {what}; seen last"))
}

/// Looks for the whole of `period` and fails as soon as `look` does: for what must not happen.
///
/// # Errors
/// What `look` answered, when it answered an error.
pub async fn always(what: &str, period: Duration, mut look: impl AsyncFnMut() -> Result<()>) -> Result<()> {
    let end = Instant::now() + period;
    while Instant::now() < end {
        look()
            .await
            .with_context(|| format!("failed to hold for {period:?}: {what}"))?;
        sleep(PAUSE).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::{bail, ensure};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_what_was_seen_at_last() {
        let mut looks = 0;
        let seen = eventually("three looks", Duration::from_secs(1), async || {
            looks += 1;
            ensure!(looks == 3, "{looks} looks");
            Ok(looks)
        });
        assert_eq!(seen.await.unwrap(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_says_what_was_seen_last() {
        let never: Result<()> = eventually("the end", Duration::from_secs(1), async || bail!("a middle")).await;
        let message = format!("{:#}", never.unwrap_err());
        assert!(message.contains("the end") && message.contains("a middle"), "{message}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_hangs_is_given_up() {
        let hung: Result<()> = eventually("an answer", Duration::from_secs(1), std::future::pending).await;
        assert!(format!("{:#}", hung.unwrap_err()).contains("the first look did not end"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_must_not_happen_is_reported_at_once() {
        let mut looks = 0;
        let broken = always("quiet", Duration::from_mins(1), async || {
            looks += 1;
            ensure!(looks < 3, "noise");
            Ok(())
        });
        assert!(format!("{:#}", broken.await.unwrap_err()).contains("noise"));
        always("quiet", Duration::from_secs(1), async || Ok(())).await.unwrap();
    }
}
