//! Everything that the checks look at, looked at once.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use itertools::{Itertools as _, iproduct};
use jiff::Timestamp;
use popcell_core::object::Object;
use popcell_engine::Description;
use popcell_protocol::{Gvk, Operation};

use crate::{
    args::{planes::Doctor, reach::Names},
    endpoint::{
        Endpoint,
        call::{AskError, Connection, Sample},
        certificate::Bundle,
        dial::{self, DialError, Presented, Trust},
    },
    exit::Failure,
    planes::{
        Karmada, PlaneError,
        karmada::{Configuration, Customization, Served, Webhook},
    },
};

/// What a step gave, or why it failed.
pub type Seen<T> = Result<T, String>;

/// Everything that was seen.
#[derive(Debug)]
pub struct Observed {
    /// URL of the Karmada API server.
    pub server: String,
    /// The names that we look for.
    pub names: Names,
    /// Label of Clusters that names their city.
    pub city_label: String,
    /// Warn so many days before a certificate ends.
    pub expiry_days: u32,
    /// The time of the look.
    pub now: Timestamp,
    /// Seconds by which the clock of the Karmada API server is ahead of ours.
    pub server_skew: Option<i64>,
    /// All webhook configurations.
    pub configurations: Seen<Vec<Configuration>>,
    /// All customizations.
    pub customizations: Seen<Vec<Customization>>,
    /// All members.
    pub members: Seen<Vec<Object>>,
    /// What the modules say, when there was a folder of them.
    pub modules: Option<Vec<Description>>,
    /// Each exact kind of our rules.
    pub kinds: Vec<(Gvk, Seen<Served>)>,
    /// Our webhook, step by step; `None` when it is not registered.
    pub endpoint: Option<Reached>,
}

/// How far we got on the way to the webhook.
#[derive(Debug)]
pub struct Reached {
    /// The address.
    pub address: Seen<Endpoint>,
    /// The caBundle; `None` inside = the system's roots.
    pub bundle: Seen<Option<Bundle>>,
    /// Addresses of the host.
    pub resolved: Option<Seen<Vec<SocketAddr>>>,
    /// Whether the port accepts.
    pub connected: Option<Seen<()>>,
    /// Whether TLS was agreed on.
    pub handshake: Option<Seen<()>>,
    /// The certificate that was shown.
    pub presented: Option<Presented>,
    /// One answer per registered kind and operation.
    pub calls: Vec<(Gvk, Operation, Called)>,
    /// What each call may take.
    pub limit: Duration,
    /// Seconds by which the webhook's clock is ahead of ours.
    pub skew: Option<i64>,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Called {
    /// An answer, or a refusal of the minimal object, after this time.
    Answered(Duration),
    /// No module has it.
    NotServed(String),
    /// No answer.
    Failed(String),
}

impl Observed {
    /// Our webhook, if it is registered.
    pub fn webhook(&self) -> Option<&Webhook> {
        let mut configurations = self.configurations.as_ref().ok()?.iter();
        let ours = configurations.find(|found| found.name == self.names.config_name)?;
        ours.webhook(&self.names.webhook_name)
    }
}

/// Looks at everything.
pub async fn observe(args: &Doctor, modules: Option<Vec<Description>>) -> Result<Observed, Failure> {
    let karmada = Karmada::open(&args.cluster).await?;
    let seen = |error: PlaneError| error.to_string();
    let mut observed = Observed {
        server: karmada.server().to_owned(),
        names: args.names.clone(),
        city_label: args.city_label.clone(),
        expiry_days: args.expiry_days,
        now: Timestamp::now(),
        // Whoever does not answer this answers nothing else either, and is reported for that.
        server_skew: karmada.skew().await.ok().flatten(),
        configurations: karmada.configurations().await.map_err(seen),
        customizations: karmada.customizations().await.map_err(seen),
        members: karmada.members().await.map_err(seen),
        modules,
        kinds: Vec::new(),
        endpoint: None,
    };
    if let Some(webhook) = observed.webhook().cloned() {
        for kind in questions(&webhook).map(|(kind, _)| kind).unique() {
            let served = karmada.served(&kind).await.map_err(seen);
            observed.kinds.push((kind, served));
        }
        observed.endpoint = Some(reach(&karmada, &webhook).await);
    }
    Ok(observed)
}

async fn reach(karmada: &Karmada, webhook: &Webhook) -> Reached {
    // A webhook without a deadline is a fault of its own; looking at it must end all the same.
    let seconds = webhook.timeout_seconds.filter(|seconds| *seconds >= 0);
    let limit = Duration::from_secs(seconds.unwrap_or(5).clamp(1, 30).unsigned_abs());
    let mut reached = Reached {
        address: address(karmada, webhook).await,
        bundle: bundle(webhook),
        resolved: None,
        connected: None,
        handshake: None,
        presented: None,
        calls: Vec::new(),
        limit,
        skew: None,
    };
    let Ok(endpoint) = reached.address.clone() else {
        return reached;
    };
    let addresses = dial::resolve(&endpoint, limit).await.map_err(|error| error.to_string());
    reached.resolved = Some(addresses.clone());
    let Ok(addresses) = addresses else { return reached };
    let tcp = match dial::connect(&endpoint, &addresses, limit).await {
        Ok(tcp) => tcp,
        Err(error) => {
            reached.connected = Some(Err(error.to_string()));
            return reached;
        }
    };
    reached.connected = Some(Ok(()));
    match dial::handshake(&endpoint, tcp, &trust(&reached.bundle), limit).await {
        Ok(session) => {
            reached.presented.clone_from(&session.presented);
            reached.handshake = Some(Ok(()));
            (reached.calls, reached.skew) = call(&endpoint, session, webhook, limit).await;
        }
        Err(error) => {
            reached.handshake = Some(Err(error.to_string()));
            if let DialError::Handshake { presented, .. } = error {
                reached.presented = presented.map(|presented| *presented);
            }
        }
    }
    reached
}

async fn address(karmada: &Karmada, webhook: &Webhook) -> Seen<Endpoint> {
    match (&webhook.client_config.url, &webhook.client_config.service) {
        (Some(url), None) => Endpoint::parse(url),
        (None, Some(reference)) => {
            let found = karmada.service(reference).await.map_err(|error| error.to_string())?;
            Endpoint::of_service(reference, found.as_ref())
        }
        _ => Err("clientConfig needs exactly one of url and service".to_owned()),
    }
}

fn bundle(webhook: &Webhook) -> Seen<Option<Bundle>> {
    let text = webhook.client_config.ca_bundle.as_deref().unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    let pem = BASE64_STANDARD
        .decode(text)
        .map_err(|error| format!("caBundle is not base64: {error}"))?;
    Bundle::parse(&pem).map(Some).map_err(|error| error.to_string())
}

/// A bundle that cannot be read trusts no certificate; the handshake is tried all the same, to see the certificate.
fn trust(bundle: &Seen<Option<Bundle>>) -> Trust {
    match bundle {
        Ok(None) => Trust::System,
        Ok(Some(bundle)) => Trust::Bundle(bundle.clone()),
        Err(_) => Trust::Bundle(Bundle::default()),
    }
}

async fn call(
    endpoint: &Endpoint,
    session: dial::Session,
    webhook: &Webhook,
    limit: Duration,
) -> (Vec<(Gvk, Operation, Called)>, Option<i64>) {
    let mut calls = Vec::new();
    let mut connection = match Connection::over(endpoint, session, limit).await {
        Ok(connection) => connection,
        Err(error) => {
            let first = questions(webhook)
                .map(|(kind, operation)| (kind, operation, Called::Failed(error.to_string())))
                .take(1);
            return (first.collect(), None);
        }
    };
    for (kind, operation) in questions(webhook) {
        let sample = Sample::of(&kind);
        let start = Instant::now();
        let called = match connection.ask(&sample.question(operation)).await {
            Err(AskError::Refused { code, message }) if crate::register::not_served(code) => Called::NotServed(message),
            Ok(_) | Err(AskError::Refused { .. }) => Called::Answered(start.elapsed()),
            Err(error) => {
                // The next question would only wait on the same broken session.
                calls.push((kind, operation, Called::Failed(error.to_string())));
                break;
            }
        };
        calls.push((kind, operation, called));
    }
    (calls, connection.skew())
}

/// Every exact kind and operation of the rules; what `*` stands for is unknown.
pub(super) fn questions(webhook: &Webhook) -> impl Iterator<Item = (Gvk, Operation)> + '_ {
    let exact = |list: &'_ [String]| list.iter().filter(|entry| *entry != "*").cloned().collect::<Vec<_>>();
    webhook.rules.iter().flat_map(move |rule| {
        let operations = rule.operations.iter().filter_map(|operation| operation.parse().ok());
        iproduct!(
            exact(&rule.api_groups),
            exact(&rule.api_versions),
            exact(&rule.kinds),
            operations
        )
        .map(|(group, version, kind, operation)| (Gvk::new(group, version, kind), operation))
    })
}
