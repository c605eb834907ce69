//! What is measured, running.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use popcell_suites::peer::Peer as Running;
use popcell_suites::wire::outer_address;
use popcell_test_support::{Webhook, WebhookSpec, workspace};
use serde::Serialize;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Peer {
    /// Karmada's example interpreter webhook, in Go.
    GoWebhook,
    /// Karmada's interpreter of Lua, in the process of the client.
    Lua,
    /// popcell-webhook with the module of the same kind.
    Popcell,
    /// TLS, HTTP and a constant answer.
    Echo,
}

impl Peer {
    /// As tables name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::GoWebhook => "Go webhook",
            Self::Lua => "Lua",
            Self::Popcell => "popcell",
            Self::Echo => "no-op echo",
        }
    }
}

/// How calls reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Transport {
    /// HTTP/1.1 over TLS, on an address that is not loopback: what Karmada's client does in production.
    Http1,
    /// HTTP/2 over TLS: what it does with loopback addresses.
    Http2,
    /// No wire at all.
    InProcess,
}

impl Transport {
    /// As tables name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
            Self::InProcess => "in process",
        }
    }
}

/// Where the client calls.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) peer: Peer,
    pub(crate) transport: Transport,
    pub(crate) place: Place,
}

/// An address, or scripts.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A webhook.
    Server { url: String, ca_file: PathBuf, pid: u32 },
    /// A ResourceInterpreterCustomization.
    Scripts(PathBuf),
}

/// The running servers. They end with this value.
pub(crate) struct Peers {
    wires: Vec<Wire>,
}

struct Wire {
    transport: Transport,
    go: Running,
    popcell: Webhook,
    echo: Running,
}

impl Peers {
    /// Starts each server once for each transport.
    pub(crate) async fn start() -> Result<Self> {
        let mut wires = Vec::new();
        for (transport, address) in [
            (Transport::Http1, outer_address()?),
            (Transport::Http2, Ipv4Addr::LOCALHOST),
        ] {
            wires.push(Wire {
                transport,
                go: Running::example(address).await?,
                popcell: Webhook::start(spec()?.at(address)).await?,
                echo: Running::echo(&beside_us("echo")?, address).await?,
            });
        }
        Ok(Self { wires })
    }

    /// All targets in the order of their turns.
    pub(crate) fn targets(&self) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        for wire in &self.wires {
            let mut add = |peer, url, ca_file, pid| {
                let place = Place::Server { url, ca_file, pid };
                targets.push(Target {
                    peer,
                    transport: wire.transport,
                    place,
                });
            };
            add(Peer::GoWebhook, wire.go.url(), wire.go.ca_file(), wire.go.pid());
            add(
                Peer::Popcell,
                wire.popcell.url(),
                wire.popcell.ca_file(),
                wire.popcell.pid().context("popcell-webhook does not run")?,
            );
            add(Peer::Echo, wire.echo.url(), wire.echo.ca_file(), wire.echo.pid());
        }
        targets.push(Target {
            peer: Peer::Lua,
            transport: Transport::InProcess,
            place: Place::Scripts(workspace::root().join("tests/lab/testdata/lua/workload.yaml")),
        });
        Ok(targets)
    }
}

/// Our server in the optimised build, with the module for the kind that is measured.
fn spec() -> Result<WebhookSpec> {
    Ok(WebhookSpec::with_modules(&["karmada-example"])?.program(beside_us("popcell-webhook")?))
}

/// A program that was built with this one, in the same way.
fn beside_us(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe()
        .context("failed to find this program")?
        .with_file_name(name);
    ensure!(
        program.is_file(),
        "there is no {}: start the benchmark with cargo xtask bench webhook, which builds it",
        program.display()
    );
    Ok(program)
}

/// A server of ours that nobody has called yet, reached as in production.
pub(crate) async fn fresh_popcell() -> Result<(Webhook, Target)> {
    let webhook = Webhook::start(spec()?.at(outer_address()?)).await?;
    let target = Target {
        peer: Peer::Popcell,
        transport: Transport::Http1,
        place: Place::Server {
            url: webhook.url(),
            ca_file: webhook.ca_file(),
            pid: webhook.pid().context("popcell-webhook does not run")?,
        },
    };
    Ok((webhook, target))
}
