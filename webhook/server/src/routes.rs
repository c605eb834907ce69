//! `POST /interpret`: from a request to the answer that Karmada's client accepts.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use axum::routing::post;
use futures::FutureExt;
use popcell_engine::{CallError, Cause, Outcome, Verdict};
use popcell_https::log::shown;
use popcell_https::{Limits, body};
use popcell_protocol::{DecodeError, Refusal, decode, extract_uid, one_line};

use crate::deadline::Deadline;
use crate::interpret::Interpret;
use crate::metrics::Calls;
use crate::reply;

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
        .route("/interpret", post(answer::<I>).fallback(reply::wrong_method))
        .fallback(reply::not_found)
        .with_state(Arc::new(webhook))
}

async fn answer<I: Interpret>(State(webhook): State<Arc<Webhook<I>>>, request: Request<Body>) -> Response {
    webhook.answer(request).await
}

impl<I: Interpret> Webhook<I> {
    async fn answer(&self, request: Request<Body>) -> Response {
        let received = Instant::now();
        let deadline = Deadline::new(received, request.uri().query(), self.call_timeout);
        let bytes = match body::read_call(request, &self.limits, deadline.asked()).await {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::info!(%error, "request not read");
                self.calls.reject(error.label());
                return reply::unread(&error);
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
            return reply::context(&request.uid, &Err(panicked(&request)));
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
                reply::context(&uid, &Err(Refusal { code: 400, message }))
            }
            (uid, _) => reply::refusal(StatusCode::BAD_REQUEST, &uid.unwrap_or_default(), message),
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
        let at_fault = matches!(&outcome.verdict, Verdict::Error(error) if error.cause.is_module_fault());
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
        match &outcome.verdict {
            _ if answered.is_late() => log!(warn),
            Verdict::Answer(_) => log!(debug),
            Verdict::Error(error) if matches!(error.cause, Cause::Undecided(_)) => log!(debug),
            Verdict::Error(_) if at_fault => log!(warn),
            Verdict::Error(_) => log!(info),
            Verdict::Overloaded => log!(warn),
        }
    }

    fn reply(&self, answered: Answered<'_>) -> Response {
        let uid = &answered.request.uid;
        if answered.is_late() {
            return reply::again(uid, answered.why_late("its time was used up before"));
        }
        match answered.outcome.verdict {
            Verdict::Answer(answer) => reply::context(uid, &Ok(answer)),
            Verdict::Error(error) => reply::context(uid, &Err(self.refusal(&error))),
            Verdict::Overloaded => reply::again(uid, answered.why_late("too many long calls are running")),
        }
    }

    /// The engine's own words, and what is loaded where the question was for nobody.
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
    request: &'a popcell_protocol::Request<'a>,
    deadline: Deadline,
    /// From the head to the end of the body.
    upload: Duration,
    outcome: Outcome,
}

impl Answered<'_> {
    /// Whether the module ran out of time because most of it was spent before it began: nothing to blame it for.
    fn is_late(&self) -> bool {
        match &self.outcome.verdict {
            Verdict::Error(error) => match error.cause {
                Cause::Deadline { limit, .. } => limit < self.deadline.fair_share(),
                _ => false,
            },
            Verdict::Answer(_) | Verdict::Overloaded => false,
        }
    }

    fn label(&self) -> &'static str {
        if self.is_late() {
            "late"
        } else {
            self.outcome.verdict.label()
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

fn panicked(request: &popcell_protocol::Request<'_>) -> Refusal {
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
