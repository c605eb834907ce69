//! One POST of a question, and its answer; and questions about a minimal object, to see whether a server answers for a kind.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{HeaderMap, Request, body::Bytes, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};
use popcell_protocol::{
    Gvk, Operation,
    client::{Answer, Question, Reason, decode, encode, excerpt},
};
use serde_json::value::RawValue;

use super::{
    Endpoint,
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

    /// Seconds by which the webhook's clock was ahead of ours at its last answer (see [`skew`]).
    pub fn skew(&self) -> Option<i64> {
        self.skew
    }

    /// Asks one question.
    pub async fn ask(&mut self, question: &Question<'_>) -> Result<Answer, AskError> {
        self.asked += 1;
        let uid = format!("popcell-{}-{}", std::process::id(), self.asked);
        let (endpoint, limit) = (self.endpoint.to_string(), self.limit);
        let body = match dial::within(limit, self.post(question, &uid)).await {
            Ok(body) => body,
            Err(reason) => return Err(AskError::Http { endpoint, reason }),
        };
        decode(&body, &uid, question.operation).map_err(|reason| match reason {
            Reason::Refused(status) => AskError::Refused {
                code: status.code,
                message: status.message,
            },
            Reason::Protocol(reason) => AskError::Protocol { endpoint, reason },
        })
    }

    /// The body of the answer.
    async fn post(&mut self, question: &Question<'_>, uid: &str) -> Result<Bytes, BoxError> {
        let seconds = self.limit.as_secs().max(1);
        let request = Request::post(format!("{}?timeout={seconds}s", self.endpoint.path))
            .header(header::HOST, self.endpoint.authority())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("popcell/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(encode(question, uid)?)))?;
        self.sender.ready().await?;
        let before = Timestamp::now();
        let answer = self.sender.send_request(request).await?;
        self.skew = skew(answer.headers(), before, Timestamp::now());
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await?.to_bytes();
        if !status.is_success() {
            return Err(format!("it answered HTTP {status}: {}", excerpt(&body)).into());
        }
        Ok(body)
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

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

/// Seconds by which the clock of a server is certainly ahead of ours (negative: behind), by the `Date` of its answer. The
/// header counts whole seconds, and the answer was made at some moment between `asked` and `answered`: what these can
/// explain is no difference. `None` when there is no `Date` that can be read.
pub fn skew(headers: &HeaderMap, asked: Timestamp, answered: Timestamp) -> Option<i64> {
    let date = headers.get(header::DATE)?;
    let date = DateTimeParser::new().parse_timestamp(date.as_bytes()).ok()?;
    let least = date.duration_since(answered);
    let most = date.duration_since(asked).saturating_add(SignedDuration::from_secs(1));
    Some(if least.is_positive() {
        least.as_secs()
    } else if most.is_negative() {
        most.as_secs()
    } else {
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(date: &str, asked: &str, answered: &str) -> Option<i64> {
        let headers = HeaderMap::from_iter([(header::DATE, date.parse().unwrap())]);
        let time = |time: &str| format!("2026-11-28T{time}Z").parse().unwrap();
        skew(&headers, time(asked), time(answered))
    }

    #[test]
    fn what_rounding_and_the_way_can_explain_is_no_difference() {
        let date = "Sat, 28 Nov 2026 05:00:10 GMT";
        assert_eq!(seconds(date, "05:00:10.2", "05:00:10.3"), Some(0));
        // The header says :10 until just before :11, and the answer was on its way for four seconds.
        assert_eq!(seconds(date, "05:00:10.9", "05:00:14.9"), Some(0));
        assert_eq!(seconds(date, "05:00:06", "05:00:10"), Some(0));
    }

    #[test]
    fn a_clock_that_is_ahead_or_behind_is_seen() {
        assert_eq!(
            seconds("Sat, 28 Nov 2026 06:00:00 GMT", "05:00:00", "05:00:01"),
            Some(3599)
        );
        assert_eq!(
            seconds("Sat, 28 Nov 2026 04:00:00 GMT", "05:00:00", "05:00:01"),
            Some(-3599)
        );
    }

    #[test]
    fn an_answer_without_a_readable_date_says_nothing() {
        assert_eq!(seconds("yesterday", "05:00:00", "05:00:01"), None);
        let now = Timestamp::now();
        assert_eq!(skew(&HeaderMap::new(), now, now), None);
    }
}
