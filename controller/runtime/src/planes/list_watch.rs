//! One list of a kind and the watch after it.
//!
//! kube's own watcher decodes a list as a whole: what one object of it cannot be read for, all are lost for, and a list of a
//! few megabytes takes fifty times as much while it is decoded. Here an answer is split into the texts of its objects.
//!
//! Invariants: an answer takes at most [`PAGE_BYTES`] and one object at once; a watch that ends is resumed where it ended,
//! unless its server is behind that: one that was restored from a backup would bring nothing for as long.

mod lines;

use std::collections::VecDeque;
use std::time::Duration;

use http::header::{ACCEPT_ENCODING, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::api::{ListParams, WatchParams};
use kube::client::Body;
use kube::core::{DynamicObject, Request as Url, Status};
use kube::runtime::watcher::Event;
use kube::{Client, Resource as _};
use serde_json::error::Category;
use tokio::time::{Instant, timeout};

use super::interest::{Interest, View};
use super::store::number;
use lines::{Line, Lines};
use popcell_core::object::{List, Raw};

/// How many bytes of an answer are taken in at once, but for an answer of a single object.
const PAGE_BYTES: usize = 8 << 20;
/// How many objects the first page asks for: nobody knows yet how large they are.
const FIRST_PAGE: u32 = 16;
/// How many objects a page asks for at most.
const LARGEST_PAGE: u32 = 500;
/// A server ends a watch after this time; one that has not by then, and some more, is given up.
const WATCH_SECONDS: u32 = 290;
const IDLE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 5);

/// Why a list or watch broke.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The server cannot be asked, or refuses.
    #[error(transparent)]
    Server(#[from] Box<kube::Error>),
    /// What it answers to a list is none.
    #[error("the answer is no list, and no event of a watch: {0} at line {1}, column {2}")]
    NoList(&'static str, usize, usize),
    /// One object is larger than all that is taken in at once.
    #[error("an object has more than {PAGE_BYTES} bytes: it cannot be taken in")]
    TooLarge,
    /// A list or an event says no resourceVersion.
    #[error("the server says no resourceVersion")]
    NoVersion,
    /// The server's newest version is older than what it said before: it was restored from a backup.
    #[error("the server was set back from version {before} to {now}")]
    SetBack {
        /// What was known.
        before: String,
        /// What it says.
        now: String,
    },
}

impl Broken {
    /// The kind and place of an error, without what it says of values.
    fn form(error: &serde_json::Error) -> Self {
        let what = match error.classify() {
            Category::Io => "it cannot be read",
            Category::Syntax => "no JSON",
            Category::Data => "another form",
            Category::Eof => "it ends early",
        };
        Self::NoList(what, error.line(), error.column())
    }
}

impl From<kube::Error> for Broken {
    fn from(error: kube::Error) -> Self {
        Self::Server(Box::new(error))
    }
}

enum State {
    Start,
    /// Objects of a page, and what is after them.
    Page {
        objects: VecDeque<Raw>,
        next: Next,
    },
    /// The watch has to begin at this version.
    Listed(String),
    Watching(String, Lines, Instant),
    /// The watch ended at this version.
    Ended(String),
}

enum Next {
    More(Option<String>),
    Done(String),
}

/// Lists and watches one kind of a plane.
pub(super) struct ListWatch<'a> {
    source: Source<'a>,
    state: State,
    /// How many objects the next page asks for.
    limit: u32,
    /// What the server has said last: the version of its list, or of the last event.
    version: Option<u64>,
}

/// Where the objects come from.
struct Source<'a> {
    client: &'a Client,
    interest: &'a Interest,
    url: Url,
}

impl<'a> ListWatch<'a> {
    pub(super) fn new(client: &'a Client, interest: &'a Interest) -> Self {
        let source = Source {
            client,
            interest,
            url: Url::new(DynamicObject::url_path(&interest.kind.resource(), None)),
        };
        Self {
            source,
            state: State::Start,
            limit: FIRST_PAGE,
            version: None,
        }
    }

    /// The version of the last list that has ended, or of what the watch has brought since; `None` where it is no number.
    pub(super) fn version(&self) -> Option<u64> {
        self.version
    }

    /// The next event. After an error nothing more comes.
    pub(super) async fn next(&mut self) -> Result<Event<Raw>, Broken> {
        loop {
            match &mut self.state {
                State::Start => {
                    self.state = State::Page {
                        objects: VecDeque::new(),
                        next: Next::More(None),
                    };
                    return Ok(Event::Init);
                }
                State::Page { objects, next } => {
                    if let Some(object) = objects.pop_front() {
                        return Ok(Event::InitApply(object));
                    }
                    match next {
                        Next::Done(version) => {
                            self.version = number(version);
                            self.state = State::Listed(std::mem::take(version));
                            return Ok(Event::InitDone);
                        }
                        Next::More(more) => {
                            let more = more.take();
                            self.state = self.source.page(more, &mut self.limit).await?;
                        }
                    }
                }
                State::Listed(version) => {
                    let version = std::mem::take(version);
                    let lines = self.source.watch(&version).await?;
                    self.state = State::Watching(version, lines, Instant::now());
                }
                State::Watching(version, lines, began) => match timeout(IDLE, lines.next()).await {
                    Ok(Some(line)) => {
                        let event = taken(line?, version)?;
                        self.version = number(version);
                        if let Some(event) = event {
                            return Ok(event);
                        }
                    }
                    Ok(None) if is_due(began.elapsed()) => self.state = State::Listed(std::mem::take(version)),
                    // The server ends a watch, and a connection that is dead is given up.
                    Ok(None) | Err(_) => self.state = State::Ended(std::mem::take(version)),
                },
                State::Ended(version) => {
                    let version = std::mem::take(version);
                    self.source.check(&version).await?;
                    self.state = State::Listed(version);
                }
            }
        }
    }
}

impl Source<'_> {
    /// Asks for a page until it is small enough to be taken in.
    async fn page(&self, more: Option<String>, limit: &mut u32) -> Result<State, Broken> {
        loop {
            let params = ListParams {
                limit: Some(*limit),
                continue_token: more.clone(),
                label_selector: self.selector(),
                ..ListParams::default()
            };
            let Some(text) = self.read(self.list_request(&params)?).await? else {
                if *limit == 1 {
                    return Err(Broken::TooLarge);
                }
                *limit = (*limit / 4).max(1);
                continue;
            };
            let page = List::read(&text).map_err(|error| Broken::form(&error))?;
            let objects = VecDeque::from(page.items.unwrap_or_default());
            *limit = next_limit(*limit, objects.len(), text.len());
            let next = match page.metadata.more.filter(|more| !more.is_empty()) {
                Some(more) => Next::More(Some(more)),
                None => Next::Done(version(page.metadata.resource_version)?),
            };
            return Ok(State::Page { objects, next });
        }
    }

    async fn watch(&self, version: &str) -> Result<Lines, Broken> {
        let params = WatchParams {
            label_selector: self.selector(),
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            ..WatchParams::default()
        };
        let request = match self.interest.view {
            View::Metadata => self.url.watch_metadata(&params, version),
            View::Whole | View::Fields(_) => self.url.watch(&params, version),
        };
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        // API servers compress each event on its own (1.37), which is not undone here.
        request
            .headers_mut()
            .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let answer = self.client.send(request.map(Body::from)).await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(Lines::new(answer.into_body()));
        }
        let body = gathered(answer.into_body()).await?;
        Err(refusal(status, &body.unwrap_or_default()).into())
    }

    /// Whether the server is not behind a version that it said.
    async fn check(&self, before: &str) -> Result<(), Broken> {
        let params = ListParams {
            limit: Some(1),
            label_selector: self.selector(),
            ..ListParams::default()
        };
        let request = self.url.list_metadata(&params).map_err(kube::Error::BuildRequest)?;
        let Some(text) = self.read(request).await? else {
            return Ok(());
        };
        let page = List::read(&text).map_err(|error| Broken::form(&error))?;
        let now = version(page.metadata.resource_version)?;
        if number(&now)
            .zip(number(before))
            .is_some_and(|(now, before)| now < before)
        {
            let before = before.to_owned();
            return Err(Broken::SetBack { before, now });
        }
        Ok(())
    }

    fn selector(&self) -> Option<String> {
        Some(self.interest.selector.to_string()).filter(|selector| !selector.is_empty())
    }

    fn list_request(&self, params: &ListParams) -> Result<Request<Vec<u8>>, Broken> {
        let request = match self.interest.view {
            View::Metadata => self.url.list_metadata(params),
            View::Whole | View::Fields(_) => self.url.list(params),
        };
        Ok(request.map_err(kube::Error::BuildRequest)?)
    }

    /// The body of a good answer; `None` where it is larger than is taken in at once.
    async fn read(&self, request: Request<Vec<u8>>) -> Result<Option<Vec<u8>>, Broken> {
        let answer = self.client.send(request.map(Body::from)).await?;
        let status = answer.status();
        let text = gathered(answer.into_body()).await?;
        if status.is_success() {
            return Ok(text);
        }
        Err(refusal(status, &text.unwrap_or_default()).into())
    }
}

/// A body; `None` where it is larger than is taken in at once.
async fn gathered(mut body: Body) -> Result<Option<Vec<u8>>, Broken> {
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            if text.len() + data.len() > PAGE_BYTES {
                return Ok(None);
            }
            text.extend_from_slice(&data);
        }
    }
    Ok(Some(text))
}

/// Whether a watch has ended because its time was up: then its server is the one that it was, and is not asked. One that was
/// restored from a backup was stopped before, and ends its watches at any time.
fn is_due(lasted: Duration) -> bool {
    lasted + Duration::from_secs(1) >= Duration::from_secs(u64::from(WATCH_SECONDS))
}

/// What an answer that is not good says; nothing of its body where that is no Status.
fn refusal(code: StatusCode, body: &[u8]) -> kube::Error {
    let status = serde_json::from_slice(body).unwrap_or_else(|_| {
        Status::failure(
            "the answer is no Status of an API server",
            code.canonical_reason().unwrap_or_default(),
        )
    });
    kube::Error::Api(Box::new(Status {
        code: code.as_u16(),
        ..status
    }))
}

/// What a line of a watch is for a store; `None` where it only says how far the watch is.
fn taken(line: Line, at: &mut String) -> Result<Option<Event<Raw>>, Broken> {
    let (version, event) = match line {
        Line::Applied(raw) => (raw.version().to_owned(), Some(Event::Apply(raw))),
        Line::Deleted(raw) => (raw.version().to_owned(), Some(Event::Delete(raw))),
        Line::Bookmark(version) => (version, None),
        Line::Error(status) => return Err(kube::Error::Api(status).into()),
    };
    if version.is_empty() {
        return Err(Broken::NoVersion);
    }
    *at = version;
    Ok(event)
}

/// How many objects the next page asks for, by the size of those of the last.
fn next_limit(limit: u32, objects: usize, bytes: usize) -> u32 {
    match bytes.checked_div(objects) {
        // Half of what is taken in: the next ones may be larger.
        Some(each) => u32::try_from(PAGE_BYTES / 2 / each.max(1))
            .unwrap_or(LARGEST_PAGE)
            .clamp(1, LARGEST_PAGE),
        None => limit,
    }
}

fn version(version: Option<String>) -> Result<String, Broken> {
    version.filter(|version| !version.is_empty()).ok_or(Broken::NoVersion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_whether_it_was_set_back_only_where_a_watch_ends_before_its_time() {
        for (seconds, due) in [(0, false), (60, false), (288, false), (290, true), (291, true)] {
            assert_eq!(is_due(Duration::from_secs(seconds)), due, "{seconds}");
        }
    }

    #[test]
    fn pages_grow_and_shrink_with_the_size_of_objects() {
        assert_eq!(next_limit(16, 16, 16 * 1_000), LARGEST_PAGE);
        assert_eq!(next_limit(16, 16, 16 * 1_000_000), 4);
        assert_eq!(next_limit(500, 1, 100 << 20), 1);
        assert_eq!(next_limit(7, 0, 100), 7);
    }
}
