//! Our webhook with a module that misbehaves, and Karmada's client.

use std::path::PathBuf;

use anyhow::{Context, Result};
use popcell_module_build::{BuildRequest, build};
use popcell_suites::suite::Shared;
use popcell_suites::wire::{Answer, Row, WireClient, outer_address, relay, text};
use popcell_test_support::{Webhook, WebhookSpec, workspace};
use tokio::sync::Mutex;

/// What a call may take at the most, in whole seconds, as Karmada's configuration says it.
pub(crate) const TIMEOUT: u32 = 5;

/// Every module of this repository.
pub(crate) const MODULES: [&str; 3] = ["compute", "karmada-example", "cloneset"];

/// One webhook, reached in two ways.
pub(crate) struct Environment {
    pub(crate) webhook: Webhook,
    h1: String,
    h2: String,
    client: Mutex<WireClient>,
}

impl Shared for Environment {
    async fn start() -> Result<Self> {
        let outer = outer_address()?;
        let spec = WebhookSpec::with_modules(&MODULES)?
            .module(misbehaving()?)
            .san(&outer.to_string())
            .flag("--slots=2");
        let webhook = Webhook::start(spec).await?;
        let port = relay(outer, webhook.endpoint()).await?;
        Ok(Self {
            h1: format!("https://{outer}:{port}/interpret"),
            h2: webhook.url(),
            webhook,
            client: Mutex::new(WireClient::start()?),
        })
    }

    async fn end(mut self) -> Result<()> {
        let status = self.webhook.stop()?;
        anyhow::ensure!(
            status.success(),
            "the webhook ended with {status}:\n{}",
            self.webhook.log()
        );
        Ok(())
    }
}

impl Environment {
    /// The call over both protocols: HTTP/1.1 first.
    pub(crate) async fn both(&self, row: &Row) -> Result<[Answer; 2]> {
        Ok([self.over(&self.h1, row).await?, self.over(&self.h2, row).await?])
    }

    /// The call over HTTP/1.1, as Karmada makes it in production.
    pub(crate) async fn call(&self, row: &Row) -> Result<Answer> {
        self.over(&self.h1, row).await
    }

    async fn over(&self, url: &str, row: &Row) -> Result<Answer> {
        let row = self.addressed(url, row);
        self.client.lock().await.call(&row)
    }

    /// The row with the way to our webhook, for a client of the test's own.
    pub(crate) fn addressed_h1(&self, row: &Row) -> Row {
        self.addressed(&self.h1, row)
    }

    fn addressed(&self, url: &str, row: &Row) -> Row {
        Row {
            url: url.to_owned(),
            ca_file: text(&self.webhook.ca_file()),
            timeout_seconds: if row.timeout_seconds == 0 {
                TIMEOUT
            } else {
                row.timeout_seconds
            },
            ..row.clone()
        }
    }
}

/// The fixture module: what it does is said by an annotation of the object.
fn misbehaving() -> Result<PathBuf> {
    let request = BuildRequest {
        manifest_dir: workspace::root().join("tests/fixtures-guest"),
        target_dir: workspace::target_dir().join("guest"),
        output: workspace::target_dir().join("fixtures/misbehaving.wasm"),
    };
    let built = build(&request, &mut |_| {}).context("failed to build the fixture module")?;
    Ok(built.output)
}
