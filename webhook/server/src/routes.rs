//! `POST /interpret`: from a request to the answer that Karmada's client accepts, and how long it may take.
//!
//! Each body is a `ResourceInterpreterContext`, so that whoever reads one finds the reason in the same place. Karmada
//! sends `?timeout=` with what its client will wait ([`popcell_https::timeout`]). A module's own cap holds always,
//! whatever the client says.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::FutureExt;
use popcell_engine::{CallError, CallResult, Cause, Dispatcher, Outcome};
use popcell_https::body::{self, BodyError};
use popcell_https::log::shown;
use popcell_https::{Limits, timeout};
use popcell_protocol::{Answer, DecodeError, Refusal, Request, decode, encode, extract_uid, one_line};

use crate::metrics::Calls;

/// What answers requests: the engine, or in tests something simpler.
pub trait Interpret: Send + Sync + 'static {
    /// Answers by `deadline`, whatever happens. Dropping the future gives the call up.
    fn interpret(&self, request: &Request<'_>, deadline: Instant) -> impl Future<Output = Outcome> + Send;
}

impl Interpret for Dispatcher {
    fn interpret(&self, request: &Request<'_>, deadline: Instant) -> impl Future<Output = Outcome> + Send {
        Dispatcher::interpret(self, request, deadline)
    }
}

/// What the routes need.
#[derive(Debug)]
pub struct Webhook<I> {
    /// Answers.
    pub interpreter: I,
    /// Counts.
    pub calls: Arc<Calls>,
    /// Limits of the listener; those of the body apply here.
    pub limits: Limits,
    /// The longest time of a call in a module.
    pub call_timeout: Duration,
    /// The loaded kinds, for messages about others.
    pub loaded: String,
}

/// The routes of the webhook's TLS port.
pub fn router<I: Interpret>(webhook: Webhook<I>) -> Router {
    Router::new()
        .route("/interpret", post(answer::<I>).fallback(wrong_method))
        .fallback(not_found)
        .with_state(Arc::new(webhook))
}

async fn answer<I: Interpret>(State(webhook): State<Arc<Webhook<I>>>, request: HttpRequest) -> Response {
    webhook.answer(request).await
}

impl<I: Interpret> Webhook<I> {
    async fn answer(&self, request: HttpRequest) -> Response {
        let received = Instant::now();
        let deadline = Deadline::new(received, request.uri().query(), self.call_timeout);
        let bytes = match body::read_call(request, &self.limits, deadline.asked()).await {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::info!(%error, "request not read");
                self.calls.reject(error.label());
                return unread(&error);
            }
        };
        let request = match decode(&bytes) {
            Ok(request) => request,
            Err(error) => return self.undecoded(&bytes, &error),
        };
        let complete = Instant::now();
        let asking = self.interpreter.interpret(&request, deadline.answer_by(complete));
        let Ok(outcome) = AssertUnwindSafe(asking).catch_unwind().await else {
            self.calls.count(&request, None, "panic");
            tracing::error!(
                uid = %shown(&request.uid),
                operation = %request.operation,
                kind = %shown(&request.kind.to_string()),
                "panic in the host"
            );
            return context(&request.uid, &Err(panicked(&request)));
        };
        let answered = Answered {
            request: &request,
            deadline,
            upload: complete - received,
            outcome,
        };
        self.record(&answered);
        self.reply(answered)
    }

    /// A body without an understandable request. Where the uid is known and the JSON is whole, Karmada gets an answer of
    /// which its users see the text.
    fn undecoded(&self, bytes: &[u8], error: &DecodeError) -> Response {
        let uid = extract_uid(bytes);
        let message = one_line(error.to_string());
        tracing::info!(
            uid = %shown(uid.as_deref().unwrap_or_default()),
            error = %shown(&message),
            "request not understood"
        );
        self.calls.reject("malformed");
        match (uid, error) {
            (Some(uid), DecodeError::Field { .. } | DecodeError::Depth { .. }) => {
                context(&uid, &Err(Refusal { code: 400, message }))
            }
            (uid, _) => refused(StatusCode::BAD_REQUEST, &uid.unwrap_or_default(), message),
        }
    }

    fn record(&self, answered: &Answered<'_>) {
        let Answered {
            request,
            outcome,
            upload,
            ..
        } = answered;
        let label = answered.label();
        self.calls.count(request, Some(outcome), label);
        let at_fault = matches!(&outcome.result, CallResult::Error(error) if error.cause.is_module_fault());
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(
                    uid = %shown(&request.uid),
                    operation = request.operation.as_str(),
                    kind = %shown(&request.kind.to_string()),
                    namespace = %shown(request.namespace.as_deref().unwrap_or_default()),
                    name = %shown(&request.name),
                    module = outcome.module.as_ref().map(|module| module.label()).unwrap_or_default(),
                    outcome = label,
                    path = outcome.path.as_str(),
                    upload_us = micros(*upload),
                    queued_us = micros(outcome.queued),
                    ran_us = micros(outcome.ran),
                    "call"
                )
            };
        }
        match &outcome.result {
            _ if answered.is_late() => log!(warn),
            CallResult::Answer(_) => log!(debug),
            CallResult::Error(error) if matches!(error.cause, Cause::Undecided(_)) => log!(debug),
            CallResult::Error(_) if at_fault => log!(warn),
            CallResult::Error(_) => log!(info),
            CallResult::Overloaded => log!(warn),
        }
    }

    fn reply(&self, answered: Answered<'_>) -> Response {
        let uid = &answered.request.uid;
        if answered.is_late() {
            return again(uid, answered.why_late("its time was used up before"));
        }
        match answered.outcome.result {
            CallResult::Answer(answer) => context(uid, &Ok(answer)),
            CallResult::Error(error) => context(uid, &Err(self.refusal(&error))),
            CallResult::Overloaded => again(uid, answered.why_late("too many long calls are running")),
        }
    }

    /// The engine's own words, and what is loaded where no module has the kind.
    fn refusal(&self, error: &CallError) -> Refusal {
        let mut refusal = error.refusal();
        if matches!(error.cause, Cause::NoModule { .. }) {
            refusal.message = one_line(format!("{} (loaded: {})", refusal.message, self.loaded));
        }
        refusal
    }
}

/// A call and how it went.
struct Answered<'a> {
    request: &'a Request<'a>,
    deadline: Deadline,
    /// From the head to the end of the body.
    upload: Duration,
    outcome: Outcome,
}

impl Answered<'_> {
    /// Whether the module ran out of time because most of it was spent before it began: nothing to blame it for.
    fn is_late(&self) -> bool {
        match &self.outcome.result {
            CallResult::Error(error) => match error.cause {
                Cause::Deadline { limit, .. } => limit < self.deadline.fair_share(),
                _ => false,
            },
            CallResult::Answer(_) | CallResult::Overloaded => false,
        }
    }

    fn label(&self) -> &'static str {
        if self.is_late() {
            "late"
        } else {
            self.outcome.result.label()
        }
    }

    fn why_late(&self, reason: &str) -> String {
        let Self {
            request,
            outcome,
            upload,
            ..
        } = self;
        one_line(format!(
            "{} {}: no answer in time, {reason}: {upload:.1?} receiving the request, {:.1?} waiting, {:.1?} running; ask \
             again",
            request.operation, request.kind.kind, outcome.queued, outcome.ran
        ))
    }
}

/// An answer that Karmada reads: HTTP 200, whether it is good news or not.
fn context(uid: &str, answer: &Result<Answer, Refusal>) -> Response {
    ([(CONTENT_TYPE, "application/json")], Body::from(encode(uid, answer))).into_response()
}

/// An answer about the request itself. Karmada loses its text; people with other clients do not.
fn refused(status: StatusCode, uid: &str, message: impl Into<String>) -> Response {
    let refusal = Refusal {
        code: status.as_u16(),
        message: message.into(),
    };
    (status, context(uid, &Err(refusal))).into_response()
}

/// Asks the client to come back in a second. Karmada's client does so up to ten times, inside its own deadline.
fn again(uid: &str, message: impl Into<String>) -> Response {
    let refused = refused(StatusCode::TOO_MANY_REQUESTS, uid, message);
    ([(RETRY_AFTER, "1")], refused).into_response()
}

/// Answers a body that could not be read to its end. What has arrived of it may still show the uid.
fn unread(error: &BodyError) -> Response {
    let uid = extract_uid(&error.head).unwrap_or_default();
    error.respond(refused(error.status(), &uid, error.to_string()))
}

/// A path that is not served.
async fn not_found() -> Response {
    refused(StatusCode::NOT_FOUND, "", "not found: requests go to /interpret")
}

/// A method that is not served.
async fn wrong_method() -> Response {
    let refused = refused(StatusCode::METHOD_NOT_ALLOWED, "", "requests to /interpret are POST");
    ([(ALLOW, "POST")], refused).into_response()
}

fn panicked(request: &Request<'_>) -> Refusal {
    Refusal {
        code: 500,
        message: one_line(format!(
            "{} {}: the webhook failed to run the call (a bug in popcell; its log has more)",
            request.operation, request.kind.kind
        )),
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The kinds of some modules, for a message.
pub(crate) fn listed<'a>(kinds: impl Iterator<Item = &'a popcell_protocol::Gvk>) -> String {
    let kinds: Vec<Cow<'_, str>> = kinds.map(|kind| kind.to_string().into()).collect();
    if kinds.is_empty() {
        "nothing".to_owned()
    } else {
        kinds.join(", ")
    }
}

/// The time of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    received: Instant,
    asked: Option<Duration>,
    cap: Duration,
}

impl Deadline {
    /// For a request whose head arrived at `received`. `cap` is the longest time of a call in a module.
    fn new(received: Instant, query: Option<&str>, cap: Duration) -> Self {
        Self {
            received,
            asked: timeout::asked(query),
            cap,
        }
    }

    /// How long the client waits, less a tenth, counted from the request's head; `None` when it did not say.
    fn asked(&self) -> Option<Duration> {
        self.asked
    }

    /// The longest time from a complete request to its answer. A call waits at most a quarter of its time for room, so
    /// with a third more than the cap a module still gets all of the cap.
    pub(crate) fn longest(cap: Duration) -> Duration {
        cap + cap / 3
    }

    /// When the answer has to be there, for a request that was complete at `complete`. A call waits at most a quarter of
    /// its time for room, so with a third more than the cap a module still gets all of it.
    fn answer_by(&self, complete: Instant) -> Instant {
        let own = complete + Self::longest(self.cap);
        self.asked.map_or(own, |asked| own.min(self.received + asked))
    }

    /// What a module gets when nothing was lost before: one that had (nearly) as much is to blame when it was too slow.
    fn fair_share(&self) -> Duration {
        self.asked.map_or(self.cap, |asked| asked.min(self.cap)) / 10 * 9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_unreadable_and_absent_mean_the_cap_only() {
        let now = Instant::now();
        let cap = Duration::from_millis(1500);
        for query in [
            None,
            Some(""),
            Some("timeout="),
            Some("timeout=0s"),
            Some("timeout=abc"),
            Some("x=1"),
        ] {
            let deadline = Deadline::new(now, query, cap);
            assert_eq!(deadline.asked(), None, "{query:?}");
            assert_eq!(deadline.answer_by(now), now + Duration::from_secs(2), "{query:?}");
            assert_eq!(deadline.fair_share(), Duration::from_millis(1350), "{query:?}");
        }
    }

    #[test]
    fn the_smaller_of_timeout_and_cap_holds() {
        let now = Instant::now();
        let cap = Duration::from_secs(3);
        let short = Deadline::new(now, Some("a=b&timeout=1s"), cap);
        assert_eq!(short.answer_by(now), now + Duration::from_millis(900));
        let long = Deadline::new(now, Some("timeout=30s"), cap);
        assert_eq!(long.answer_by(now), now + Duration::from_secs(4));
    }

    #[test]
    fn the_client_waits_from_the_head_and_the_cap_runs_from_the_end_of_the_body() {
        let head = Instant::now();
        let complete = head + Duration::from_millis(1200);
        let cap = Duration::from_secs(3);
        assert_eq!(
            Deadline::new(head, Some("timeout=2s"), cap).answer_by(complete),
            head + Duration::from_millis(1800)
        );
        assert_eq!(
            Deadline::new(head, None, cap).answer_by(complete),
            complete + Duration::from_secs(4)
        );
    }
}
