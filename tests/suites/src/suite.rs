//! Tests that share one world.
//!
//! A world takes half a minute to start and a test takes seconds, so a suite starts one, when its first test runs, and ends
//! it after the last. Tests that look on run side by side, each in a namespace of its own; a test that disturbs the world
//! (restarts Karmada, moves a cluster's label) runs alone.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OnceCell, RwLock};

/// How a test treats the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// What a failed test should show of the world, such as the end of a log.
    fn last_words(&self) -> impl Future<Output = String> {
        std::future::ready(String::new())
    }
    /// Ends it, and tells what went wrong unseen by any test.
    fn end(self) -> impl Future<Output = Result<()>>;
}

struct Inner<W> {
    runtime: Runtime,
    // An error is kept as text: what failed to start once is not started again for every test.
    world: OnceCell<Result<W, String>>,
    quiet: RwLock<()>,
}

/// A suite under construction.
pub struct Suite<W> {
    inner: Arc<Inner<W>>,
    trials: Vec<Trial>,
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
            world: OnceCell::new(),
            quiet: RwLock::new(()),
        };
        Ok(Self {
            inner: Arc::new(inner),
            trials: Vec::new(),
        })
    }

    /// Adds a test. It is given the world and a namespace name that no other test has.
    #[must_use]
    pub fn test<F>(mut self, name: &'static str, manner: Manner, check: F) -> Self
    where
        F: AsyncFn(&W, &str) -> Result<()> + Send + Sync + 'static,
    {
        let inner = Arc::clone(&self.inner);
        self.trials.push(Trial::test(name, move || {
            let outcome = inner.runtime.block_on(async {
                let world = inner
                    .world
                    .get_or_init(async || W::start().await.map_err(|error| format!("{error:?}")));
                let world = world
                    .await
                    .as_ref()
                    .map_err(|error| anyhow::anyhow!("the world did not start: {error}"))?;
                let outcome = match manner {
                    Manner::Beside => {
                        let _guard = inner.quiet.read().await;
                        check(world, &namespace_of(name)).await
                    }
                    Manner::Alone => {
                        let _guard = inner.quiet.write().await;
                        check(world, &namespace_of(name)).await
                    }
                };
                match outcome {
                    Ok(()) => Ok(()),
                    // The cause comes last: of a long text, what runs the tests may show only the end.
                    Err(error) => match world.last_words().await {
                        words if words.is_empty() => Err(error),
                        words => Err(error.context(format!("{words}\n\nfailed"))),
                    },
                }
            });
            // Without the backtrace, which tells of this file only and would come after the cause.
            outcome.map_err(|error| Failed::from(format!("{error:#}")))
        }));
        self
    }

    /// Runs what the command line asks for.
    pub fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        // More would starve the control planes of a small machine.
        arguments.test_threads = arguments.test_threads.or(Some(3));
        let conclusion = libtest_mimic::run(&arguments, self.trials);
        let Some(inner) = Arc::into_inner(self.inner) else {
            return conclusion.exit_code();
        };
        let ended = match inner.world.into_inner() {
            Some(Ok(world)) => inner.runtime.block_on(world.end()),
            _ => Ok(()),
        };
        match ended {
            Err(error) if !conclusion.has_failed() => {
                eprintln!("the world did not end well: {error:?}");
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
