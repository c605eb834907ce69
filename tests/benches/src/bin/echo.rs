//! The least that a webhook can do: TLS, HTTP and a constant answer with the right uid. It shows for benchmarks what of
//! the cost of a call is not ours; it interprets nothing.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use clap::Parser;
use popcell_https::{Certificates, FilePair, Limits, Listener, SelfSigned, Source, body};
use popcell_protocol::{Operation, extract_uid};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Answers each operation with a constant.
#[derive(Debug, Parser)]
struct Flags {
    /// Address of the TLS port
    #[arg(long, default_value = "127.0.0.1:8443")]
    listen: SocketAddr,
    /// Certificate chain in PEM; needs --tls-key
    #[arg(long, requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key
    #[arg(long, requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Without --tls-cert: directory for an authority of its own
    #[arg(long, default_value = "echo-ca")]
    ca_dir: PathBuf,
    /// Without --tls-cert: names in the certificate
    #[arg(long, default_value = "localhost,127.0.0.1", value_delimiter = ',')]
    san: Vec<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse();
    let source = match (flags.tls_cert, flags.tls_key) {
        (Some(certificate), Some(key)) => Source::Files(FilePair {
            certificate,
            key,
            names: Vec::new(),
        }),
        _ => Source::SelfSigned(SelfSigned {
            ca_dir: flags.ca_dir,
            names: flags.san,
        }),
    };
    let certificates = Arc::new(Certificates::open(source)?);
    let threads = available_parallelism()?;
    let listener = Listener::bind(flags.listen, Limits::default())
        .await?
        .on_threads(threads)?;
    println!("serving on {}", listener.address());
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        stopping.cancel();
    });
    listener
        .serve(&certificates, Router::new().route("/interpret", post(answer)), stop)
        .await?;
    Ok(())
}

async fn answer(request: Request<Body>) -> Response {
    let Ok(body) = body::read(request, &Limits::default()).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let (Some(uid), Some(operation)) = (extract_uid(&body), operation(&body)) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let answer = format!(
        r#"{{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext","response":{{"uid":"{uid}","successful":true{}}}}}"#,
        constant(operation)
    );
    ([(CONTENT_TYPE, "application/json")], answer).into_response()
}

/// Found without parsing: Karmada's operations are words that stand in quotes in no object of a benchmark.
fn operation(body: &[u8]) -> Option<Operation> {
    const KEY: &[u8] = br#""operation":""#;
    let at = body.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let rest = body.get(at..)?;
    let name = rest.get(..rest.iter().position(|byte| *byte == b'"')?)?;
    std::str::from_utf8(name).ok()?.parse().ok()
}

fn constant(operation: Operation) -> &'static str {
    // The patches: [{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}] and the same for /status.
    const ANNOTATION: &str = r#","patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2Fubm90YXRpb25zIiwidmFsdWUiOnsiYSI6ImIifX1d""#;
    const STATUS: &str =
        r#","patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL3N0YXR1cyIsInZhbHVlIjp7ImEiOiJiIn19XQ==""#;
    match operation {
        Operation::InterpretReplica => r#","replicas":2"#,
        Operation::InterpretComponent => r#","components":[]"#,
        Operation::ReviseReplica | Operation::Retain => ANNOTATION,
        Operation::AggregateStatus => STATUS,
        Operation::InterpretStatus => r#","rawStatus":{"readyReplicas":2}"#,
        Operation::InterpretHealth => r#","healthy":true"#,
        Operation::InterpretDependency => r#","dependencies":[]"#,
    }
}
