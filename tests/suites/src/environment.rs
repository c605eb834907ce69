//! The environment of the e2e suite: a hub with Push and Pull members, and our webhook registered in it.

use std::time::Duration;

use anyhow::{Context, Result};
use popcell_test_support::lab::HUB;
use popcell_test_support::{Lab, LabSpec, Member, Webhook, WebhookSpec, artifacts};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::definitions;
use crate::suite::Shared;
use crate::trust::Trust;

/// How long anything may take to reach its place. Karmada repeats failed items after at most 5 s in the lab; the rest is
/// room for a busy machine.
pub const SOON: Duration = Duration::from_secs(90);

/// A Push member in Dallas.
pub const DFW: &str = "dfw";
/// A Pull member in Chicago: its own agent calls the webhook.
pub const ORD: &str = "ord";
/// A Push member of no city, for tests that give it one.
pub const SPARE: &str = "spare";

/// An API server beside Karmada, with nothing on it.
pub const ONE: &str = "one";

/// A real Karmada and our webhook.
pub struct Environment {
    /// The planes.
    pub lab: Lab,
    /// The webhook; its address and authority stay the same when it is stopped and started again.
    pub webhook: Mutex<Webhook>,
    /// The hub's trust in tokens of other clusters.
    pub trust: Trust,
    // Held: it ends with its value.
    _files: TempDir,
}

/// Starts a webhook and registers it in the hub.
pub async fn webhook(lab: &Lab, spec: WebhookSpec) -> Result<Webhook> {
    let webhook = Webhook::start(spec).await?;
    let registered = webhook.register(lab.kubeconfig(HUB)?, &[]);
    registered.context("failed to register the webhook")?;
    Ok(webhook)
}

impl Shared for Environment {
    async fn start() -> Result<Self> {
        let examples = artifacts::lab_programs()?.join("karmada-example-crds");
        let files = tempfile::tempdir().context("failed to make a directory")?;
        let trust = Trust::in_none(files.path())?;
        let spec = LabSpec::karmada()
            .hub_flag("kube-apiserver", &trust.flag())
            .plane(ONE)
            .notices_soon()
            .member(Member::push(DFW).city("DFW"))
            .member(Member::pull(ORD).city("ORD"))
            .member(Member::push(SPARE))
            .crds(examples)
            // Fail-over is off by default; the tests show what our policies do where somebody has switched it on.
            .hub_flag("karmada-controller-manager", "--feature-gates=Failover=true")
            .hub_flag("karmada-controller-manager", "--enable-no-execute-taint-eviction=true");
        let lab = Lab::start(&spec).await?;
        definitions::hub(&lab.hub().await?).await?;
        // Few slots: nothing that Karmada asks in these tests may need more.
        let modules = WebhookSpec::with_modules(&["compute", "karmada-example"])?;
        let webhook = Mutex::new(webhook(&lab, modules.flag("--slots=2")).await?);
        Ok(Self {
            lab,
            webhook,
            trust,
            _files: files,
        })
    }

    async fn end(self) -> Result<()> {
        self.lab.expect_alive().await?;
        self.lab.end().await
    }
}
