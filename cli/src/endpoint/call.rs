//! One POST of a question, and its answer; and questions about a minimal object, to see whether a server answers for a kind.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use popcell_protocol::{
    Gvk, Operation,
    client::{Answer, Question, Reason, decode, encode, excerpt},
};
use serde_json::value::RawValue;

use super::{
    Endpoint, clock,
    dial::{self, DialError, Trust},
};

/// More than any answer that Karmada could store.
const MAX_ANSWER: usize = 32 << 20;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No session.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The session broke, or the answer is not HTTP.
    #[error("failed to call {endpoint}: {reason}")]
    Http {
        /// Where.
        endpoint: String,
        /// What happened.
        reason: String,
    },
    /// Something answered, but not as an interpreter does.
    #[error("failed to understand the answer of {endpoint}: {reason}")]
    Protocol {
        /// Where.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The interpreter understood, and says no.
    #[error("{message}")]
    Refused {
        /// As the webhook gave it; Karmada only prints it.
        code: i32,
        /// One line.
        message: String,
    },
}

/// An open connection to a webhook.
pub struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    endpoint: Endpoint,
    limit: Duration,
    asked: u32,
    skew: Option<i64>,
}

impl Connection {
    /// Resolves, connects and shakes hands. `limit` holds for each step and later for each call.
    pub async fn open(endpoint: &Endpoint, trust: &Trust, limit: Duration) -> Result<Self, AskError> {
        let addresses = dial::resolve(endpoint, limit).await?;
        let tcp = dial::connect(endpoint, &addresses, limit).await?;
        let session = dial::handshake(endpoint, tcp, trust, limit).await?;
        Self::over(endpoint, session, limit).await
    }

    /// Speaks HTTP over a session.
    pub async fn over(endpoint: &Endpoint, session: dial::Session, limit: Duration) -> Result<Self, AskError> {
        let (sender, connection) =
            http1::handshake(TokioIo::new(session.stream))
                .await
                .map_err(|error| AskError::Http {
                    endpoint: endpoint.to_string(),
                    reason: error.to_string(),
                })?;
        // Ends with the sender.
        tokio::spawn(connection);
        Ok(Self {
            sender,
            endpoint: endpoint.clone(),
            limit,
            asked: 0,
            skew: None,
        })
    }

    /// Seconds by which the webhook's clock was ahead of ours at its last answer (see [`clock::skew`]).
    pub fn skew(&self) -> Option<i64> {
        self.skew
    }

    /// Asks one question.
    pub async fn ask(&mut self, question: &Question<'_>) -> Result<Answer, AskError> {
        let limit = self.limit;
        let endpoint = self.endpoint.to_string();
        tokio::time::timeout(limit, self.post(question))
            .await
            .unwrap_or_else(|_| {
                Err(AskError::Http {
                    endpoint,
                    reason: format!("no answer within {limit:?}"),
                })
            })
    }

    async fn post(&mut self, question: &Question<'_>) -> Result<Answer, AskError> {
        let endpoint = self.endpoint.to_string();
        let http = |reason: String| AskError::Http {
            endpoint: endpoint.clone(),
            reason,
        };
        self.asked += 1;
        let uid = format!("popcell-{}-{}", std::process::id(), self.asked);
        let body = encode(question, &uid).map_err(|error| http(error.to_string()))?;
        let seconds = self.limit.as_secs().max(1);
        let request = Request::post(format!("{}?timeout={seconds}s", self.endpoint.path))
            .header(header::HOST, host(&self.endpoint))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("popcell/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| http(error.to_string()))?;
        self.sender.ready().await.map_err(|error| http(error.to_string()))?;
        let before = Timestamp::now();
        let answer = self
            .sender
            .send_request(request)
            .await
            .map_err(|error| http(error.to_string()))?;
        self.skew = clock::skew(answer.headers(), before, Timestamp::now());
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER)
            .collect()
            .await
            .map_err(|error| http(error.to_string()))?
            .to_bytes();
        if !status.is_success() {
            return Err(http(format!("it answered HTTP {status}: {}", excerpt(&body))));
        }
        decode(&body, &uid, question.operation).map_err(|reason| match reason {
            Reason::Refused(status) => AskError::Refused {
                code: status.code,
                message: status.message,
            },
            Reason::Protocol(reason) => AskError::Protocol {
                endpoint: endpoint.clone(),
                reason,
            },
        })
    }
}

fn host(endpoint: &Endpoint) -> String {
    let Endpoint { host, port, .. } = endpoint;
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// An object that questions of a kind are about; a minimal one where nobody gives another.
#[derive(Debug)]
pub struct Sample {
    kind: Gvk,
    object: Box<RawValue>,
}

impl Sample {
    /// The minimal object of `kind`.
    pub fn of(kind: &Gvk) -> Self {
        let object = serde_json::json!({
            "apiVersion": kind.api_version(), "kind": kind.kind,
            "metadata": { "name": "popcell-probe", "namespace": "default", "generation": 1 }, "spec": {}, "status": {},
        });
        Self::given(kind, object.to_string())
    }

    /// An object of `kind` with this text.
    pub fn given(kind: &Gvk, text: String) -> Self {
        Self {
            kind: kind.clone(),
            object: RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned()),
        }
    }

    /// The object's text.
    pub fn text(&self) -> &str {
        self.object.get()
    }

    /// A question about it.
    pub fn question(&self, operation: Operation) -> Question<'_> {
        Question {
            operation,
            kind: &self.kind,
            name: "popcell-probe",
            namespace: Some("default"),
            object: &self.object,
            observed: (operation == Operation::Retain).then_some(&*self.object),
            replicas: i32::from(operation == Operation::ReviseReplica),
            items: None,
        }
    }
}
