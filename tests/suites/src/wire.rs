//! Karmada's own client (tests/lab/cmd/conformance) as a child process: rows in, answers out.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use popcell_test_support::artifacts;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::net::{TcpListener, TcpStream};

/// One call.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// Comes back with the answer; the client sets it.
    pub id: u64,
    /// Where to call.
    pub url: String,
    /// Authority of the server's certificate.
    pub ca_file: String,
    /// `timeoutSeconds` of the webhook configuration.
    pub timeout_seconds: u32,
    /// Adds parameters and unknown fields to the client's request, on its way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub amend: bool,
    /// Karmada's spelling.
    pub operation: String,
    /// The object, with apiVersion and kind.
    pub object: Value,
    /// Retain only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Value>,
    /// ReviseReplica only.
    pub replicas: i32,
    /// AggregateStatus only.
    pub aggregated_status: Vec<Value>,
}

/// What Karmada's client made of the answer.
#[derive(Debug, Deserialize)]
pub struct Answer {
    id: u64,
    /// Whether Karmada took it.
    pub ok: bool,
    /// What Karmada would write into an event.
    #[serde(default)]
    pub error: String,
    /// The answer, as text: numbers keep their digits.
    pub result: Option<Box<RawValue>>,
}

impl Answer {
    /// The answer of a call that succeeded.
    pub fn value(&self) -> Result<Value> {
        ensure!(self.ok, "Karmada's client refused the answer: {}", self.error);
        let result = self.result.as_ref().context("no result")?;
        serde_json::from_str(result.get()).context("the result is no JSON")
    }

    /// The text of a call that failed.
    pub fn refusal(&self) -> Result<&str> {
        ensure!(!self.ok, "Karmada's client took the answer: {:?}", self.result);
        Ok(&self.error)
    }
}

/// The running client.
pub struct WireClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl WireClient {
    /// Starts it; it ends with this value.
    pub fn start() -> Result<Self> {
        let program = artifacts::lab_programs()?.join("conformance");
        let child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.with_context(|| format!("failed to start {}", program.display()))?;
        let input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Self {
            child,
            input,
            output,
            calls: 0,
        })
    }

    /// One call.
    pub fn call(&mut self, row: &Row) -> Result<Answer> {
        self.calls += 1;
        let row = Row {
            id: self.calls,
            ..row.clone()
        };
        let mut line = serde_json::to_vec(&row).context("failed to write a row")?;
        line.push(b'\n');
        self.input
            .write_all(&line)
            .context("the client takes no rows any more")?;
        let mut text = String::new();
        self.output
            .read_line(&mut text)
            .context("the client gives no answers any more")?;
        let answer: Answer = serde_json::from_str(&text).with_context(|| format!("the client answered {text:?}"))?;
        if answer.id != row.id {
            bail!("the client answered row {} instead of {}", answer.id, row.id);
        }
        Ok(answer)
    }
}

impl Drop for WireClient {
    fn drop(&mut self) {
        // It ends by itself when its input closes; this is for one that hangs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address of this machine that is not loopback: for those Karmada's client speaks HTTP/1.1, as it does in production,
/// and for loopback HTTP/2.
pub fn outer_address() -> Result<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context("failed to open a socket")?;
    // Nothing is sent: connecting only asks the system which address it would use.
    socket
        .connect((Ipv4Addr::new(192, 0, 2, 1), 9))
        .context("this machine has no address but loopback")?;
    match socket.local_addr().context("no local address")?.ip() {
        std::net::IpAddr::V4(address) if !address.is_loopback() => Ok(address),
        address => bail!("this machine has only {address}"),
    }
}

/// Carries connections from a free port of `from` to `to` as long as the runtime lives; answers the port.
pub async fn relay(from: Ipv4Addr, to: (Ipv4Addr, u16)) -> Result<u16> {
    let listener = TcpListener::bind((from, 0)).await.context("failed to listen")?;
    let port = listener.local_addr().context("no local address")?.port();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                if let Ok(mut far) = TcpStream::connect(to).await {
                    // Whichever side closes ends the call there.
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    });
    Ok(port)
}

/// A file's path as text.
pub fn text(path: &Path) -> String {
    path.display().to_string()
}
