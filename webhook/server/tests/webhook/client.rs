//! HTTPS as Karmada's client speaks it, and plain HTTP for the health port.

use std::net::SocketAddr;

use axum::body::Bytes;
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::fixture::UID;

#[path = "../../../https/tests/harness/dial.rs"]
#[allow(dead_code, reason = "the tests of the listener use the rest")]
mod dial;
pub(crate) use dial::{Client, HOST};

/// How an error of a call begins that had no connection.
pub(crate) const DIALLING: &str = "while dialling";

/// One answer, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Reply {
    /// The message of an answer that Karmada shows its users: HTTP 200, the uid, not successful.
    pub(crate) fn refusal(&self) -> &str {
        assert_eq!(self.status, StatusCode::OK, "{self:?}");
        assert_eq!(self.body["response"]["successful"], false, "{self:?}");
        self.message()
    }

    /// The message of any answer without success, with its uid checked.
    pub(crate) fn message(&self) -> &str {
        assert_eq!(self.body["response"]["uid"], UID, "{self:?}");
        self.body["response"]["status"]["message"].as_str().unwrap()
    }

    pub(crate) fn is_successful(&self) -> bool {
        self.status == StatusCode::OK
            && self.body["response"]["successful"] == true
            && self.body["response"]["uid"] == UID
    }

    /// Sent away in a way that Karmada's client repeats.
    pub(crate) fn is_sent_away(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS && self.headers["retry-after"] == "1"
    }
}

impl Client {
    pub(crate) async fn http1(&self) -> Connection {
        let (sender, connection) = http1::handshake(TokioIo::new(self.dial("http/1.1").await.unwrap()))
            .await
            .unwrap();
        tokio::spawn(connection);
        Connection(sender)
    }

    /// One request on a connection of its own.
    pub(crate) async fn post(&self, query: &str, body: impl Into<Bytes>) -> Reply {
        self.http1().await.post(query, body).await
    }

    /// One request over HTTP/2.
    pub(crate) async fn post_http2(&self, query: &str, body: impl Into<Bytes>) -> Reply {
        let io = TokioIo::new(self.dial("h2").await.unwrap());
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        let response = sender.send_request(interpret(query, body.into())).await.unwrap();
        read(response).await.unwrap()
    }
}

/// A kept-alive connection.
pub(crate) struct Connection(http1::SendRequest<Full<Bytes>>);

impl Connection {
    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Whether it can carry another request.
    pub(crate) async fn is_ready(&mut self) -> bool {
        self.0.ready().await.is_ok()
    }

    pub(crate) async fn post(&mut self, query: &str, body: impl Into<Bytes>) -> Reply {
        self.0.ready().await.unwrap();
        let response = self.0.send_request(interpret(query, body.into())).await.unwrap();
        read(response).await.unwrap()
    }
}

/// A caller as Go's client is one: it keeps its connection, and dials where there is none or where the one that it kept was
/// closed before anything of a call was written. A POST that was written is never repeated.
pub(crate) struct Kept {
    client: Client,
    connection: Option<http1::SendRequest<Full<Bytes>>>,
    dialled: usize,
}

impl Kept {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            connection: None,
            dialled: 0,
        }
    }

    /// How often it had to dial.
    pub(crate) fn dialled(&self) -> usize {
        self.dialled
    }

    /// The next call dials.
    pub(crate) fn close(&mut self) {
        self.connection = None;
    }

    pub(crate) async fn post(&mut self, query: &str, body: Bytes) -> Result<Reply, String> {
        let mut request = interpret(query, body);
        let kept = self.connection.take();
        if let Some(mut sender) = kept
            && sender.ready().await.is_ok()
        {
            match sender.try_send_request(request).await {
                Ok(response) => return self.read(sender, response).await,
                Err(mut error) => match error.take_message() {
                    Some(unwritten) => request = unwritten,
                    None => return Err(format!("on a kept connection: {:?}", error.into_error())),
                },
            }
        }
        self.dialled += 1;
        let dialled = self.client.dial("http/1.1").await;
        let stream = dialled.map_err(|error| format!("{DIALLING}: {error}"))?;
        let made = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = made.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| format!("on a new connection: {error:?}"))?;
        self.read(sender, response).await
    }

    async fn read(
        &mut self,
        sender: http1::SendRequest<Full<Bytes>>,
        response: hyper::Response<hyper::body::Incoming>,
    ) -> Result<Reply, String> {
        let reply = read(response)
            .await
            .map_err(|error| format!("while reading: {error:?}"))?;
        self.connection = Some(sender);
        Ok(reply)
    }
}

fn interpret(query: &str, body: Bytes) -> Request<Full<Bytes>> {
    Request::post(format!("https://{HOST}/interpret{query}"))
        .header("host", HOST)
        .header("content-type", "application/json")
        .body(Full::new(body))
        .unwrap()
}

async fn read(response: hyper::Response<hyper::body::Incoming>) -> hyper::Result<Reply> {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    Ok(Reply {
        status: parts.status,
        headers: parts.headers,
        // The listener itself answers in plain text, for want of memory.
        body: serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into()),
    })
}

/// A GET on the health port: status and text.
pub(crate) async fn get_plain(address: SocketAddr, path: &str) -> (StatusCode, String) {
    let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(path)
        .header("host", "health")
        .body(Full::<Bytes>::default())
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}
