//! The lab's supervisor program, its input and its output.
//!
//! The supervisor lives as long as its standard input is open, and ends every program of the lab before it ends. So a
//! test that is killed leaves nothing behind, whatever it was doing.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::events::{Answer, Event, Ready};

pub(super) struct Supervisor {
    child: Child,
    input: Option<ChildStdin>,
    events: UnboundedReceiver<Event>,
    log: PathBuf,
}

impl Supervisor {
    /// Starts the program; `log` takes what it complains about.
    pub(super) fn spawn(program: &Path, spec: &Path, log: PathBuf) -> Result<Self> {
        let errors = std::fs::File::create(&log).with_context(|| format!("failed to create {}", log.display()))?;
        let mut child = Command::new(program)
            .arg("run")
            .arg("--spec")
            .arg(spec)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .with_context(|| format!("failed to start {}", program.display()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the supervisor has no output")?;
        let (sender, events) = unbounded_channel();
        thread::spawn(move || read(BufReader::new(output), &sender));
        Ok(Self {
            child,
            input,
            events,
            log,
        })
    }

    /// Waits until everything serves, and reports progress on standard error.
    pub(super) async fn ready(&mut self) -> Result<Ready> {
        let progress = &mut |what: &str| eprintln!("lab: {what}");
        loop {
            if let Some(ready) = self.next().await?.while_starting(progress)? {
                return Ok(ready);
            }
        }
    }

    /// Writes one line and waits for its answer.
    pub(super) async fn command(&mut self, line: &str) -> Result<Answer> {
        let input = self.input.as_mut().context("the lab has ended")?;
        writeln!(input, "{line}").with_context(|| format!("failed to write `{line}` to the supervisor"))?;
        loop {
            match self.next().await? {
                Event::Done(answer) => return Ok(*answer),
                Event::Error { message } => bail!("failed to `{line}` in the lab: {message}"),
                Event::Failed { process, message, log } => {
                    eprintln!("lab: {}", death(&process, &message, &log));
                }
                Event::Step { .. } | Event::Ready(_) | Event::Other => {}
            }
        }
    }

    /// Programs that ended by themselves since somebody last looked.
    pub(super) fn deaths(&mut self) -> Vec<String> {
        let mut deaths = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            if let Event::Failed { process, message, log } = event {
                deaths.push(death(&process, &message, &log));
            }
        }
        deaths
    }

    async fn next(&mut self) -> Result<Event> {
        if let Some(event) = self.events.recv().await {
            return Ok(event);
        }
        let complaint = std::fs::read_to_string(&self.log).unwrap_or_default();
        bail!("the supervisor ended ({}):\n{complaint}", self.log.display())
    }

    /// Closes the input and waits until everything has ended. May be called twice.
    pub(super) fn end(&mut self) -> Result<ExitStatus> {
        drop(self.input.take());
        self.child.wait().context("failed to wait for the supervisor")
    }
}

fn read(lines: impl BufRead, events: &UnboundedSender<Event>) {
    for line in lines.lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(event) => {
                if events.send(event).is_err() {
                    return;
                }
            }
            Err(error) => eprintln!("lab: a line that is no event ({error}): {line}"),
        }
    }
}

/// One line about a program that ended by itself, and the end of its log.
pub(super) fn death(process: &str, message: &str, log: &str) -> String {
    let subject = if process.is_empty() {
        message.to_owned()
    } else {
        format!("{process} {message}")
    };
    if log.is_empty() {
        subject
    } else {
        format!("{subject}; its log ends with:\n{log}")
    }
}
