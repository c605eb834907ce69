//! Tests that share one world.
//!
//! A world takes half a minute to start and a test takes seconds, so a suite starts one, when its first test runs, and ends
//! it after the last. Tests that look on run side by side, each in a namespace of its own, in the order in which they were
//! added; those that disturb the world (restart Karmada, move a cluster's label) follow one by one. A test that disturbs one
//! thing of the world only holds the lock of that thing, and runs beside those that do not use it.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OnceCell, RwLock};

/// How many of the slowest tests are named at the end.
const SLOWEST: usize = 10;

/// How a test treats the world. In this order they run.
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
    /// What each test took once it had the world, without the wait for others.
    took: Mutex<Vec<(Duration, &'static str)>>,
}

impl<W> Inner<W> {
    async fn timed(&self, name: &'static str, test: impl Future<Output = Result<()>>) -> Result<()> {
        let began = Instant::now();
        let outcome = test.await;
        // One step of a list: there is no half-done state that a panic could leave.
        let mut took = self.took.lock().unwrap_or_else(PoisonError::into_inner);
        took.push((began.elapsed(), name));
        outcome
    }

    fn name_the_slowest(&self) {
        let mut took = self.took.lock().unwrap_or_else(PoisonError::into_inner);
        took.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        for (time, name) in took.iter().take(SLOWEST) {
            eprintln!("{:>6.1} s {name}", time.as_secs_f64());
        }
    }
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
            world: OnceCell::new(),
            quiet: RwLock::new(()),
            took: Mutex::default(),
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
        let trial = Trial::test(name, move || {
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
                        inner.timed(name, check(world, &namespace_of(name))).await
                    }
                    Manner::Alone => {
                        let _guard = inner.quiet.write().await;
                        inner.timed(name, check(world, &namespace_of(name))).await
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
        });
        self.trials.push((manner, trial));
        self
    }

    /// Runs what the command line asks for.
    pub fn run(mut self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        // More would starve the control planes of a small machine.
        arguments.test_threads = arguments.test_threads.or(Some(3));
        self.trials.sort_by_key(|(manner, _)| *manner);
        let trials = self.trials.into_iter().map(|(_, trial)| trial).collect();
        let conclusion = libtest_mimic::run(&arguments, trials);
        self.inner.name_the_slowest();
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
