//! A program of ours as a process, on an address of its own.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::eventually;
use crate::guarded::Guarded;
use crate::probe::{get, sum_of};

/// Lines of the log that a failure shows, and characters of each: patches are long.
const LAST_LINES: usize = 60;
const LAST_CHARACTERS: usize = 400;

/// Which program it is, and how it is run.
pub trait Program {
    /// What messages call it, such as `webhook`.
    const NAME: &'static str;
    /// How long it may take until it is ready.
    const START: Duration;
    /// Makes a place for it.
    fn place(&self) -> Result<Place>;
    /// The program's file, and its arguments at that place. It is built when needed.
    fn command(&self, place: &Place) -> Result<(PathBuf, Vec<String>)>;
}

/// Where a program runs: its address, ports, and a directory with its files and its log.
#[derive(Debug)]
pub struct Place {
    pub(crate) address: Ipv4Addr,
    /// Of the TLS listener.
    pub(crate) port: u16,
    pub(crate) health_port: u16,
    pub(crate) metrics_port: u16,
    pub(crate) dir: TempDir,
}

impl Place {
    /// A path in the directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// A running program. It ends with this value, or with this process. Its place stays the same through [`Running::stop`],
/// [`Running::kill`] and [`Running::start_again`].
#[derive(Debug)]
pub struct Running<P> {
    pub(crate) spec: P,
    pub(crate) place: Place,
    process: Option<Guarded>,
}

impl<P: Program> Running<P> {
    /// Builds the program when needed, starts it and waits until it is ready.
    ///
    /// # Errors
    /// With the program's log, when it ends instead.
    pub async fn start(spec: P) -> Result<Self> {
        let mut running = Self::unstarted(spec)?;
        running.start_again().await?;
        Ok(running)
    }

    /// One that is still to be started, for what its configuration says of its address.
    pub fn unstarted(spec: P) -> Result<Self> {
        Ok(Self {
            place: spec.place()?,
            spec,
            process: None,
        })
    }

    /// Starts the program after its end, at the same address, and waits until it is ready.
    pub async fn start_again(&mut self) -> Result<()> {
        self.launch()?;
        self.ready().await
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// With the program's log, when it ends instead.
    pub async fn ready(&mut self) -> Result<()> {
        let health = (self.place.address, self.place.health_port);
        let process = self.process.as_mut().with_context(absent::<P>)?;
        let what = format!("the {} is ready", P::NAME);
        let ready = eventually(&what, P::START, async || {
            if let Some(status) = process.try_wait()? {
                return Ok(Err(status));
            }
            let (code, body) = get(health, "/readyz").await?;
            ensure!(code == 200, "/readyz answers {code}: {body}");
            Ok(Ok(()))
        });
        match ready.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(status)) => bail!("the {} ended with {status}:\n{}", P::NAME, self.last_words()),
            Err(error) => Err(error.context(format!("the {} wrote:\n{}", P::NAME, self.last_words()))),
        }
    }

    /// Starts the program after its end; it may take a while until it is ready.
    pub fn launch(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "the {} runs already", P::NAME);
        let (program, arguments) = self.spec.command(&self.place)?;
        self.process = Some(Guarded::spawn(&program, &arguments, &self.log_file())?);
        Ok(())
    }

    /// Ends the program gracefully (SIGTERM) and answers its exit status.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.process.take().with_context(absent::<P>)?.terminate()
    }

    /// Ends the program as [`Running::stop`] does.
    ///
    /// # Errors
    /// With the program's log, when it had ended before or does not end well.
    pub fn end(&mut self) -> Result<()> {
        self.expect_alive()?;
        let status = self.stop()?;
        ensure!(
            status.success(),
            "the {} ended with {status}:\n{}",
            P::NAME,
            self.last_words()
        );
        Ok(())
    }

    /// Ends the program without warning (SIGKILL).
    pub fn kill(&mut self) -> Result<()> {
        let mut process = self.process.take().with_context(absent::<P>)?;
        process.signal("KILL")?;
        process.wait().map(|_| ())
    }

    /// Sends a signal by its name, such as `STOP` and `CONT`.
    pub fn signal(&self, name: &str) -> Result<()> {
        self.process.as_ref().with_context(absent::<P>)?.signal(name)
    }

    /// Process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Guarded::pid)
    }

    /// Fails when it ended by itself.
    pub fn expect_alive(&mut self) -> Result<()> {
        match self.process.as_mut().with_context(absent::<P>)?.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the {} ended with {status}:\n{}", P::NAME, self.last_words()),
        }
    }

    /// The exit status when it ended by itself; then it can be started again.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.process.as_mut().with_context(absent::<P>)?.try_wait()?;
        if status.is_some() {
            self.process = None;
        }
        Ok(status)
    }

    /// What it has written since the first start.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read(self.log_file())
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    /// The end of its log, for a failure to show.
    #[must_use]
    pub fn last_words(&self) -> String {
        let log = self.log();
        let cut = |line: &str| line.chars().take(LAST_CHARACTERS).collect::<String>();
        let lines: Vec<String> = log.lines().map(cut).collect();
        lines
            .get(lines.len().saturating_sub(LAST_LINES)..)
            .unwrap_or_default()
            .join("\n")
    }

    /// Fails at a line of its log that contains one of these texts, such as those in which API servers refuse.
    pub fn expect_log_without(&self, texts: &[&str]) -> Result<()> {
        let log = self.log();
        let mut found = log.lines().filter(|line| texts.iter().any(|text| line.contains(text)));
        match found.next() {
            None => Ok(()),
            Some(line) => bail!("its log has, and {} times more: {line}", found.count()),
        }
    }

    /// Its own address.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.place.address
    }

    /// Status and body of a page of the health port, such as `/livez` or `/readyz`.
    pub async fn health(&self, path: &str) -> Result<(u16, String)> {
        get((self.place.address, self.place.health_port), path).await
    }

    /// The page of its metrics.
    pub async fn metrics(&self) -> Result<String> {
        let (code, body) = get((self.place.address, self.place.metrics_port), "/metrics").await?;
        ensure!(code == 200, "/metrics answers {code}: {body}");
        Ok(body)
    }

    /// The sum of the samples of one metric whose labels contain every text of `with`, such as `kind="Widget"`.
    pub async fn metric(&self, name: &str, with: &[&str]) -> Result<f64> {
        Ok(sum_of(&self.metrics().await?, name, with))
    }

    fn log_file(&self) -> PathBuf {
        self.place.file("program.log")
    }
}

fn absent<P: Program>() -> String {
    format!("the {} does not run", P::NAME)
}

/// A directory for a program.
pub(crate) fn directory(program: &str) -> Result<TempDir> {
    let dir = tempfile::Builder::new()
        .prefix(&format!("popcell-{program}-"))
        .tempdir();
    dir.with_context(|| format!("failed to make a directory for the {program}"))
}
