//! What may go wrong between a client and a server.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// What becomes of a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The server is not asked, and this is the answer.
    Answer(Answer),
    /// A black hole: the server is not asked and nothing is answered, nor anything more told by watches that run. At its
    /// end the connections are closed.
    Silent,
    /// The connection is closed without an answer.
    HungUp,
    /// On its way: the server gets it when the fault is lifted, whether anybody still waits for the answer or not.
    Held,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    code: StatusCode,
    content_type: &'static str,
    retry_after: Option<u32>,
    body: String,
}

impl Fault {
    /// As an API server refuses.
    #[must_use]
    pub fn refused(code: u16, reason: &str) -> Self {
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "code": code, "reason": reason, "message": "the test refuses it",
        });
        let mut answer = Answer::json(code, &status);
        answer.retry_after = (code == 429).then_some(1);
        Self::Answer(answer)
    }

    /// As an API server answers a path that it does not serve, and as many proxies do.
    #[must_use]
    pub fn not_served() -> Self {
        Self::Answer(Answer {
            code: StatusCode::NOT_FOUND,
            content_type: "text/plain; charset=utf-8",
            retry_after: None,
            body: "404 page not found\n".to_owned(),
        })
    }

    /// A page for people.
    #[must_use]
    pub fn html(code: u16) -> Self {
        Self::Answer(Answer {
            code: StatusCode::from_u16(code).unwrap_or_default(),
            content_type: "text/html",
            retry_after: None,
            body: "<!DOCTYPE html><html><body><h1>Please log in</h1></body></html>".to_owned(),
        })
    }
}

impl Answer {
    pub(super) fn json(code: u16, body: &Value) -> Self {
        Self {
            code: StatusCode::from_u16(code).unwrap_or_default(),
            content_type: "application/json",
            retry_after: None,
            body: body.to_string(),
        }
    }

    pub(super) fn response(&self) -> Response {
        let body = self.body.clone();
        let mut response = (self.code, [(CONTENT_TYPE, self.content_type)], body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
