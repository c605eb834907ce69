//! Tests that share one environment.
//!
//! An environment takes half a minute to start and a test takes seconds, so a suite starts one, when its first test runs,
//! and ends it after the last. Tests that look on run side by side, each in a namespace of its own, in the order in which
//! they were added; those that disturb the environment (restart Karmada, move a cluster's label) follow one by one. A
//! test that disturbs one thing of the environment only holds the lock of that thing, and runs beside those that do not
//! use it.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OnceCell, RwLock};

/// How a test treats the environment. In this order they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manner {
    /// It minds its own namespace.
    Beside,
    /// It disturbs others.
    Alone,
}

/// What a suite's tests share.
pub trait Shared: Sized + Send + Sync + 'static {
    /// Starts it.
    fn start() -> impl Future<Output = Result<Self>>;
    /// What a failed test should show of the environment, such as the end of a log.
    fn last_words(&self) -> impl Future<Output = String> {
        std::future::ready(String::new())
    }
    /// Ends it, and returns an error that no test observed.
    fn end(self) -> impl Future<Output = Result<()>>;
}

struct Inner<W> {
    runtime: Runtime,
    // An error is kept as text: what failed to start once is not started again for every test.
    environment: OnceCell<Result<W, String>>,
    quiet: RwLock<()>,
}

/// A suite under construction.
pub struct Suite<W> {
    inner: Arc<Inner<W>>,
    trials: Vec<(Manner, Trial)>,
}

impl<W: Shared> Suite<W> {
    /// An empty suite; nothing is started yet.
    pub fn new() -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("failed to start a runtime")?;
        let inner = Inner {
            runtime,
            environment: OnceCell::new(),
            quiet: RwLock::new(()),
        };
        Ok(Self {
            inner: Arc::new(inner),
            trials: Vec::new(),
        })
    }

    /// Adds a test. It is given the environment and a namespace name that no other test has.
    #[must_use]
    pub fn test<F>(mut self, name: &'static str, manner: Manner, check: F) -> Self
    where
        F: AsyncFn(&W, &str) -> Result<()> + Send + Sync + 'static,
    {
        let inner = Arc::clone(&self.inner);
        let trial = Trial::test(name, move || {
            let outcome = inner.runtime.block_on(async {
                let environment = inner
                    .environment
                    .get_or_init(async || W::start().await.map_err(|error| format!("{error:?}")));
                let environment = environment
                    .await
                    .as_ref()
                    .map_err(|error| anyhow::anyhow!("the environment did not start: {error}"))?;
                // Once it has the environment, without the wait for others.
                let timed = async || {
                    let started = Instant::now();
                    let outcome = check(environment, &namespace_of(name)).await;
                    println!("took {:.1} s: {name}", started.elapsed().as_secs_f64());
                    outcome
                };
                let outcome = match manner {
                    Manner::Beside => {
                        let _guard = inner.quiet.read().await;
                        timed().await
                    }
                    Manner::Alone => {
                        let _guard = inner.quiet.write().await;
                        timed().await
                    }
                };
                match outcome {
                    Ok(()) => Ok(()),
                    // The cause comes last: of a long text, what runs the tests may show only the end.
                    Err(error) => match environment.last_words().await {
                        words if words.is_empty() => Err(error),
                        words => Err(error.context(format!("{words}\n\nfailed"))),
                    },
                }
            });
            // Without the backtrace, which tells of this file only and would come after the cause.
            outcome.map_err(|error| Failed::from(format!("{error:#}")))
        });
        self.trials.push((manner, trial));
        self
    }

    /// Keeps one share of the tests: `2/3` is every third, beginning with the second.
    fn keep(&mut self, share: &str) -> Result<()> {
        let parts = share
            .split_once('/')
            .and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        let (part, of): (usize, usize) = parts
            .filter(|(part, of)| (1..=*of).contains(part))
            .with_context(|| format!("POPCELL_SHARE: {share:?} is no share such as 1/2"))?;
        let mut number = 0;
        self.trials.retain(|_| {
            number += 1;
            number % of == part % of
        });
        Ok(())
    }

    /// Runs what the command line asks for, of the share that `POPCELL_SHARE` names (all of it where it is not set).
    pub fn run(mut self) -> ExitCode {
        self.trials.sort_by_key(|(manner, _)| *manner);
        if let Ok(share) = std::env::var("POPCELL_SHARE")
            && let Err(error) = self.keep(&share)
        {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
        let mut arguments = Arguments::from_args();
        // More would starve the control planes of a small machine.
        arguments.test_threads = arguments.test_threads.or(Some(3));
        let trials = self.trials.into_iter().map(|(_, trial)| trial).collect();
        let conclusion = libtest_mimic::run(&arguments, trials);
        let Some(inner) = Arc::into_inner(self.inner) else {
            return conclusion.exit_code();
        };
        let ended = match inner.environment.into_inner() {
            Some(Ok(environment)) => inner.runtime.block_on(environment.end()),
            _ => Ok(()),
        };
        match ended {
            Err(error) if !conclusion.has_failed() => {
                eprintln!("the environment did not end cleanly: {error:?}");
                ExitCode::FAILURE
            }
            _ => conclusion.exit_code(),
        }
    }
}

/// A DNS label of at most 63 characters; names of tests differ in their first 60.
fn namespace_of(test: &str) -> String {
    let name = test
        .replace(|char: char| !char.is_ascii_alphanumeric(), "-")
        .to_lowercase();
    name.chars().take(60).collect::<String>().trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Shared for Nothing {
        async fn start() -> Result<Self> {
            Ok(Self)
        }
        async fn end(self) -> Result<()> {
            Ok(())
        }
    }

    fn kept(share: &str) -> Result<Vec<String>> {
        let names = ["a", "b", "c", "d", "e"];
        let mut suite = names.iter().try_fold(Suite::<Nothing>::new()?, |suite, name| {
            Ok::<_, anyhow::Error>(suite.test(name, Manner::Beside, async |_, _| Ok(())))
        })?;
        suite.keep(share)?;
        Ok(suite.trials.iter().map(|(_, trial)| trial.name().to_owned()).collect())
    }

    #[test]
    fn each_test_is_in_exactly_one_share() {
        assert_eq!(kept("1/2").unwrap(), ["a", "c", "e"]);
        assert_eq!(kept("2/2").unwrap(), ["b", "d"]);
        assert_eq!(kept("1/1").unwrap().len(), 5);
    }

    #[test]
    fn a_share_that_is_none_is_refused() {
        for wrong in ["", "2", "0/2", "3/2", "a/b"] {
            assert!(
                kept(wrong).unwrap_err().to_string().contains("no share such as 1/2"),
                "{wrong}"
            );
        }
    }
}
