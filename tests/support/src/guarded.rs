//! A child process that ends when we do.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs the program beside a watcher that reads our end of a pipe: when it closes, because we close it or because this
/// process is gone in whatever way, the program gets SIGTERM. Its exit status becomes the shell's. Once the program has
/// ended the watcher is ended too, since its process id may then be another process's.
const GUARD: &str = r#"
exec 3>&1 1>&2 4<&0
"$@" </dev/null 3>&- 4<&- &
program=$!
echo "$program" >&3
exec 3>&-
{ cat <&4 >/dev/null; kill -TERM "$program" 2>/dev/null; } &
watcher=$!
wait "$program"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
"#;

/// A child process that gets SIGTERM when this value is dropped, or when this process ends in whatever way.
#[derive(Debug)]
pub struct Guarded {
    shell: Child,
    input: Option<ChildStdin>,
    pid: u32,
    log: PathBuf,
}

impl Guarded {
    /// Starts the program; what it writes is appended to `log`.
    pub fn spawn(program: &Path, arguments: &[String], log: &Path) -> Result<Self> {
        let output = OpenOptions::new().create(true).append(true).open(log);
        let output = output.with_context(|| format!("failed to open {}", log.display()))?;
        let mut shell = Command::new("sh")
            .args(["-c", GUARD, "sh"])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(output)
            .spawn()
            .with_context(|| format!("failed to start {}", program.display()))?;
        let input = shell.stdin.take();
        let mut line = String::new();
        let stdout = shell.stdout.take().context("the shell has no output")?;
        BufReader::new(stdout)
            .read_line(&mut line)
            .context("failed to read a process id")?;
        let pid = line
            .trim()
            .parse()
            .with_context(|| format!("not a process id: {line:?}"))?;
        Ok(Self {
            shell,
            input,
            pid,
            log: log.to_owned(),
        })
    }

    /// The program's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What the program has written so far.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read(&self.log)
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    /// The exit status, once the program has ended. A program that was ended by signal n has status 128 + n.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        self.shell.try_wait().context("failed to ask for the exit status")
    }

    /// Sends SIGTERM and waits for the end.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        drop(self.input.take());
        self.wait()
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        // `Child::wait` would close the input, which is the sign for SIGTERM: it was taken out.
        self.shell.wait().context("failed to wait for a process")
    }

    /// Sends a signal by its name, such as `KILL`, `STOP` or `TERM`.
    pub fn signal(&self, name: &str) -> Result<()> {
        let sent = Command::new("kill").args(["-s", name, &self.pid.to_string()]).status();
        let sent = sent.context("failed to start kill")?;
        ensure!(sent.success(), "failed to send SIG{name} to process {}", self.pid);
        Ok(())
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // An error leaves nothing to do: the watcher acts once the pipe is closed.
        let _ = self.terminate();
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    fn script(text: &str, log: &Path) -> Guarded {
        Guarded::spawn(Path::new("sh"), &["-c".to_owned(), text.to_owned()], log).unwrap()
    }

    fn runs(pid: u32) -> bool {
        Path::new("/proc").join(pid.to_string()).exists()
    }

    #[test]
    fn the_exit_status_is_the_programs() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut ended = script("echo hello; exit 7", log.path());
        assert_eq!(ended.wait().unwrap().code(), Some(7));
        assert_eq!(ended.log(), "hello\n");
    }

    #[test]
    fn terminate_sends_sigterm() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut asleep = script("trap 'exit 3' TERM; while :; do sleep 0.05; done", log.path());
        // The trap is set once the loop runs; a signal before that ends the shell with 128 + 15.
        while !std::fs::read_to_string(format!("/proc/{}/stat", asleep.pid()))
            .unwrap()
            .contains(" S ")
        {}
        let code = asleep.terminate().unwrap().code();
        assert!(matches!(code, Some(3 | 143)), "{code:?}");
        assert!(!runs(asleep.pid()));
    }

    #[test]
    fn a_dropped_value_leaves_no_process() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let asleep = script("exec sleep 600", log.path());
        let pid = asleep.pid();
        assert!(runs(pid));
        drop(asleep);
        assert!(!runs(pid));
    }

    /// Nothing is dropped in a process that is killed, as by a crash of a test.
    #[test]
    fn a_killed_test_leaves_no_process() {
        let mut test = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "guarded::tests::holding_a_process",
                "--ignored",
                "--nocapture",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(test.stdout.take().unwrap()).lines();
        let pid = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_once("pid is ")?.1.parse::<u32>().ok())
            .unwrap();
        assert!(runs(pid));
        test.kill().unwrap();
        test.wait().unwrap();
        for _ in 0..200 {
            if !runs(pid) {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("process {pid} still runs");
    }

    #[test]
    #[ignore = "run by a_killed_test_leaves_no_process"]
    fn holding_a_process() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let asleep = script("exec sleep 600", log.path());
        println!("pid is {}", asleep.pid());
        sleep(Duration::from_mins(10));
    }

    #[test]
    fn a_killed_program_is_seen() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut asleep = script("exec sleep 600", log.path());
        asleep.signal("KILL").unwrap();
        assert_eq!(asleep.wait().unwrap().code(), Some(137));
    }
}
