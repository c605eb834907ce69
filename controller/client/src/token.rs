//! Tokens that are kept in files, as those of service accounts are.
//!
//! kube reads such a file again when what it has read is 50 s old. A good token that replaces a bad one must serve sooner,
//! and what was refused meanwhile must have its turn.
//!
//! Invariants: no request begins with a token that left its file more than [`LOOK`] ago; a file that cannot be used changes
//! nothing; another token is reported only to those whose server refused the one before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, StatusCode};
use kube::Config;
use kube::client::{AuthError, Body};
use kube::config::AuthInfo;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;
use tower::Service;
use tower::layer::layer_fn;
use tracing::{info, warn};

use super::client::Clients;
use super::transport::Connection;
use crate::critical_tasks::CriticalTasks;
use crate::sync::lock;

/// A file is looked at no more often.
const LOOK: Duration = Duration::from_secs(1);

/// All files with tokens; clients of one file share what is read of it. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    clients: Clients,
    files: Arc<Mutex<BTreeMap<PathBuf, Weak<Token>>>>,
    required: CriticalTasks,
}

impl Tokens {
    /// A client for a server; no request is sent. Needs a tokio runtime.
    ///
    /// # Errors
    /// The configuration, or the file that it names, cannot be used.
    pub(super) fn connect(&self, mut config: Config) -> Result<Connection, kube::Error> {
        let Some(token) = self.of(&config.auth_info)? else {
            let client = self.clients.builder(config)?.build();
            return Ok(Connection { client, renewed: None });
        };
        config.auth_info.token_file = None;
        let holder = Holder::of(token);
        let renewed = Some(holder.renewed.subscribe());
        let layer = layer_fn(move |inner| Authorized {
            inner,
            holder: Arc::clone(&holder),
        });
        let client = self.clients.builder(config)?.with_layer(&layer).build();
        Ok(Connection { client, renewed })
    }

    /// The same files for clients that share no connections with others: a connection is driven by the threads of whoever
    /// opened it.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self {
            clients: Clients::default(),
            ..self.clone()
        }
    }

    /// Who is told of a file that is not looked at any more.
    pub fn required(&self) -> &CriticalTasks {
        &self.required
    }

    /// What else there may be wins over a file, as it does for kube.
    fn of(&self, auth: &AuthInfo) -> Result<Option<Arc<Token>>, kube::Error> {
        let other = auth.token.is_some() || auth.username.is_some() && auth.password.is_some();
        let Some(file) = auth.token_file.as_deref().filter(|_| !other) else {
            return Ok(None);
        };
        let file = Path::new(file);
        let mut all = lock(&self.files);
        if let Some(token) = all.get(file).and_then(Weak::upgrade) {
            return Ok(Some(token));
        }
        let token = Token::start(file, &self.required)?;
        all.insert(file.to_owned(), Arc::downgrade(&token));
        Ok(Some(token))
    }
}

/// One file.
#[derive(Debug)]
struct Token {
    file: PathBuf,
    held: Mutex<TokenState>,
    refused: Arc<Notify>,
    /// Ends with the token.
    _watch: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct TokenState {
    header: HeaderValue,
    looked: Instant,
    /// The file could not be used when it was looked at last.
    spoiled: bool,
    holders: Vec<Weak<Holder>>,
}

impl TokenState {
    fn admit(&mut self, holder: &Arc<Holder>) {
        if self.holders.len() == self.holders.capacity() {
            self.holders.retain(|holder| holder.strong_count() > 0);
        }
        self.holders.push(Arc::downgrade(holder));
    }

    fn holders(&self) -> impl Iterator<Item = Arc<Holder>> {
        self.holders.iter().filter_map(Weak::upgrade)
    }
}

impl Token {
    fn start(file: &Path, required: &CriticalTasks) -> Result<Arc<Self>, kube::Error> {
        let header = read(file).map_err(kube::Error::Auth)?;
        let refused = Arc::new(Notify::new());
        Ok(Arc::new_cyclic(|token| Self {
            file: file.to_owned(),
            held: Mutex::new(TokenState {
                header,
                looked: Instant::now(),
                spoiled: false,
                holders: Vec::new(),
            }),
            _watch: AbortOnDropHandle::new(tokio::spawn(required.clone().endless(
                format!("the watch of token file {}", file.display()),
                look_out(token.clone(), Arc::clone(&refused)),
            ))),
            refused,
        }))
    }

    /// What a request is sent with now.
    fn header(&self) -> HeaderValue {
        let mut held = lock(&self.held);
        self.look(&mut held);
        held.header.clone()
    }

    /// Whether some server has refused what is held now.
    fn is_refused(&self) -> bool {
        let mut held = lock(&self.held);
        self.look(&mut held);
        held.holders().any(|holder| holder.refused.load(Ordering::Relaxed))
    }

    fn look(&self, held: &mut TokenState) {
        if held.looked.elapsed() < LOOK {
            return;
        }
        held.looked = Instant::now();
        match read(&self.file) {
            Ok(header) => {
                held.spoiled = false;
                if header != held.header {
                    held.header = header;
                    let reported = held.holders().filter(|holder| holder.renew()).count();
                    info!(file = %self.file.display(), refused = reported, "a token is replaced by another");
                }
            }
            Err(error) if !std::mem::replace(&mut held.spoiled, true) => {
                warn!(%error, "a token file cannot be used; its previous token stays in use");
            }
            Err(_) => {}
        }
    }
}

/// Looks at the file of a token that was refused until it holds another: no request may be pending.
async fn look_out(token: Weak<Token>, refused: Arc<Notify>) {
    loop {
        refused.notified().await;
        while token.upgrade().is_some_and(|token| token.is_refused()) {
            sleep(LOOK).await;
        }
    }
}

/// What one client has of a token.
#[derive(Debug)]
struct Holder {
    token: Arc<Token>,
    /// Its server has answered 401 to the present token, and nothing else since.
    refused: AtomicBool,
    renewed: watch::Sender<()>,
}

impl Holder {
    fn of(token: Arc<Token>) -> Arc<Self> {
        let holder = Arc::new(Self {
            token,
            refused: AtomicBool::new(false),
            renewed: watch::Sender::default(),
        });
        lock(&holder.token.held).admit(&holder);
        holder
    }

    fn answered(&self, sent: &HeaderValue, status: StatusCode) {
        let held = lock(&self.token.held);
        if held.header != sent {
            return;
        }
        let refused = status == StatusCode::UNAUTHORIZED;
        if !self.refused.swap(refused, Ordering::Relaxed) && refused {
            self.token.refused.notify_one();
        }
    }

    /// The token is another now. Answers whether the one before was refused here.
    fn renew(&self) -> bool {
        let refused = self.refused.swap(false, Ordering::Relaxed);
        if refused {
            self.renewed.send_replace(());
        }
        refused
    }
}

/// Sends requests with the token.
struct Authorized<S> {
    inner: S,
    holder: Arc<Holder>,
}

impl<S, B> Service<Request<Body>> for Authorized<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let holder = Arc::clone(&self.holder);
        let header = holder.token.header();
        request.headers_mut().insert(AUTHORIZATION, header.clone());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            holder.answered(&header, answer.status());
            Ok(answer)
        })
    }
}

fn read(file: &Path) -> Result<HeaderValue, AuthError> {
    let unread = |error| AuthError::ReadTokenFile(error, file.to_owned());
    let token = std::fs::read_to_string(file).map_err(unread)?;
    let token = token.trim();
    if token.is_empty() {
        return Err(unread(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "it is empty",
        )));
    }
    let mut header = HeaderValue::try_from(format!("Bearer {token}")).map_err(AuthError::InvalidBearerToken)?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests;
