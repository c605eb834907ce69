//! One list of a kind and the watch after it.
//!
//! kube's own watcher decodes a list as a whole: what one object of it cannot be read for, all are lost for, and a list of a
//! few megabytes takes fifty times as much while it is decoded. Here an answer is split into the texts of its objects.
//!
//! Invariants: an answer takes at most [`PAGE_BYTES`] and one object at once, and of answers beyond [`SMALL`] at most
//! [`AT_ONCE`] are held for all projects together, one of them for each project; who waits for that loses nothing by it; a watch
//! that ends is resumed where it ended, unless its server is behind that: one that was restored from a backup would bring
//! nothing for as long.

mod lines;

use std::collections::VecDeque;
use std::sync::Arc;
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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::store::number;
use super::watch_spec::{View, WatchSpec};
use lines::{Line, Lines};
use popcell_core::object::{List, Raw};

/// How many bytes of an answer are taken in at once, but for an answer of a single object.
const PAGE_BYTES: usize = 8 << 20;
/// What an answer of a project may take without leave.
const SMALL: usize = 256 << 10;
/// How many larger ones are held at once, until their objects were taken over.
const AT_ONCE: usize = 4;
/// A larger one that does not go on for so long is given up: others wait for its leave.
const STALLED: Duration = Duration::from_secs(5);
/// One that has not ended after this time is asked for in smaller parts.
const SLOW: Duration = Duration::from_secs(10);
/// How many objects the first page asks for: their size is unknown yet.
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
    /// One object is larger than all that is taken in at once, or takes longer than others wait for it.
    #[error("an object has more than {PAGE_BYTES} bytes, or takes more than {SLOW:?}: it cannot be taken in")]
    TooLarge,
    /// A server has stopped in the middle of an answer.
    #[error("the answer has stopped in the middle for {STALLED:?}")]
    Stalled,
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
        // Held until its objects were taken over, and not while the next page is waited for.
        list_permit: Option<Turn>,
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

/// Leave for answers beyond [`SMALL`]. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct ListPermit {
    all: Arc<Semaphore>,
    plane: Arc<Semaphore>,
}

/// While it is held, a large answer is.
struct Turn {
    _all: OwnedSemaphorePermit,
    _plane: OwnedSemaphorePermit,
}

impl Default for ListPermit {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(AT_ONCE)),
            plane: Arc::new(Semaphore::new(1)),
        }
    }
}

impl ListPermit {
    /// The same for another plane, which takes one of what all share at most.
    pub(super) fn of_plane(&self) -> Self {
        Self {
            all: Arc::clone(&self.all),
            ..Self::default()
        }
    }

    /// Whether a watch of the plane holds one or waits for it.
    pub(super) fn is_taken(&self) -> bool {
        self.plane.available_permits() == 0
    }

    async fn take(&self) -> Option<Turn> {
        // They are never closed. Its own comes first: no watch waits while it holds one of all.
        let plane = Arc::clone(&self.plane).acquire_owned().await.ok()?;
        let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Turn {
            _all: all,
            _plane: plane,
        })
    }
}

/// An answer that was taken in, and the leave for it.
type Answer = (Vec<u8>, Option<Turn>);

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
    watch_spec: &'a WatchSpec,
    url: Url,
    /// `None` where answers need none.
    list_permit: Option<ListPermit>,
}

impl<'a> ListWatch<'a> {
    /// Of a plane whose large answers need a leave, or of one whose do not.
    pub(super) fn new(client: &'a Client, watch_spec: &'a WatchSpec, list_permit: Option<ListPermit>) -> Self {
        let source = Source {
            client,
            watch_spec,
            url: Url::new(DynamicObject::url_path(&watch_spec.kind.resource(), None)),
            list_permit,
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
    ///
    /// There are several for each of thousands of projects, and all but always they wait for a line: what only a list needs is
    /// boxed.
    pub(super) async fn next(&mut self) -> Result<Event<Raw>, Broken> {
        loop {
            match &mut self.state {
                State::Start => {
                    self.state = State::Page {
                        objects: VecDeque::new(),
                        next: Next::More(None),
                        list_permit: None,
                    };
                    return Ok(Event::Init);
                }
                State::Page {
                    objects,
                    next,
                    list_permit,
                } => {
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
                            drop(list_permit.take());
                            self.state = Box::pin(self.source.page(more, &mut self.limit)).await?;
                        }
                    }
                }
                State::Listed(version) => {
                    let version = std::mem::take(version);
                    let lines = Box::pin(self.source.watch(&version)).await?;
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
                    Box::pin(self.source.check(&version)).await?;
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
            let Some((text, list_permit)) = self.read(self.list_request(&params)?).await? else {
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
            return Ok(State::Page {
                objects,
                next,
                list_permit,
            });
        }
    }

    async fn watch(&self, version: &str) -> Result<Lines, Broken> {
        let params = WatchParams {
            label_selector: self.selector(),
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            ..WatchParams::default()
        };
        let request = match self.watch_spec.view {
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
        let body = gathered(answer.into_body(), self.list_permit.as_ref()).await?;
        Err(refusal(status, &body.unwrap_or_default().0).into())
    }

    /// Whether the server is not behind a version that it said.
    async fn check(&self, before: &str) -> Result<(), Broken> {
        let params = ListParams {
            limit: Some(1),
            label_selector: self.selector(),
            ..ListParams::default()
        };
        let request = self.url.list_metadata(&params).map_err(kube::Error::BuildRequest)?;
        let Some((text, _)) = self.read(request).await? else {
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
        Some(self.watch_spec.selector.to_string()).filter(|selector| !selector.is_empty())
    }

    fn list_request(&self, params: &ListParams) -> Result<Request<Vec<u8>>, Broken> {
        let request = match self.watch_spec.view {
            View::Metadata => self.url.list_metadata(params),
            View::Whole | View::Fields(_) => self.url.list(params),
        };
        Ok(request.map_err(kube::Error::BuildRequest)?)
    }

    /// The body of a good answer; `None` where it is larger than is taken in at once.
    async fn read(&self, request: Request<Vec<u8>>) -> Result<Option<Answer>, Broken> {
        let answer = self.client.send(request.map(Body::from)).await?;
        let status = answer.status();
        let answer = gathered(answer.into_body(), self.list_permit.as_ref()).await?;
        if status.is_success() {
            return Ok(answer);
        }
        Err(refusal(status, &answer.unwrap_or_default().0).into())
    }
}

/// A body; `None` where it is larger, or takes longer, than is taken in at once.
async fn gathered(mut body: Body, list_permit: Option<&ListPermit>) -> Result<Option<Answer>, Broken> {
    let (mut text, mut held, mut by) = (Vec::new(), None, Instant::now());
    loop {
        let frame = match held {
            None => body.frame().await,
            Some(_) => match timeout_at(by.min(Instant::now() + STALLED), body.frame()).await {
                Ok(frame) => frame,
                Err(_) if Instant::now() >= by => return Ok(None),
                Err(_) => return Err(Broken::Stalled),
            },
        };
        let Some(frame) = frame else {
            return Ok(Some((text, held)));
        };
        let Ok(data) = frame?.into_data() else { continue };
        let size = text.len() + data.len();
        if size > PAGE_BYTES {
            return Ok(None);
        }
        if let (None, Some(list_permit), true) = (&held, list_permit, size > SMALL) {
            held = list_permit.take().await;
            by = Instant::now() + SLOW;
        }
        text.extend_from_slice(&data);
    }
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
    use std::convert::Infallible;
    use std::future::pending;
    use std::pin::pin;

    use futures::future::join_all;
    use futures::{StreamExt, stream};
    use popcell_core::plan::Plane;
    use serde_json::json;
    use tokio::time::sleep;

    use super::*;

    #[test]
    fn a_server_is_asked_whether_it_was_set_back_only_where_a_watch_ends_before_its_time() {
        for (seconds, due) in [(0, false), (60, false), (288, false), (290, true), (291, true)] {
            assert_eq!(is_due(Duration::from_secs(seconds)), due, "{seconds}");
        }
    }

    async fn body(frames: [usize; 2], stalls: bool) -> Body {
        let answer = move |_: http::Request<Body>| async move {
            let frames = stream::iter(frames.map(|bytes| Ok::<_, Infallible>(vec![b'x'; bytes])));
            let more = stream::iter(stalls.then_some(())).then(|()| pending());
            Ok::<_, Infallible>(http::Response::new(axum::body::Body::from_stream(frames.chain(more))))
        };
        let client = Client::new(tower::service_fn(answer), "default");
        client.send(Request::new(Body::empty())).await.unwrap().into_body()
    }

    /// A large answer that goes on with a byte now and then.
    async fn trickle() -> Body {
        let answer = |_: http::Request<Body>| async move {
            let first = stream::iter([Ok::<_, Infallible>(vec![b'x'; SMALL + 1])]);
            let more = stream::repeat(()).then(|()| async {
                sleep(STALLED / 2).await;
                Ok(vec![b'x'])
            });
            Ok::<_, Infallible>(http::Response::new(axum::body::Body::from_stream(first.chain(more))))
        };
        let client = Client::new(tower::service_fn(answer), "default");
        client.send(Request::new(Body::empty())).await.unwrap().into_body()
    }

    #[tokio::test(start_paused = true)]
    async fn large_answers_of_all_projects_together_are_few_and_small_ones_wait_for_none() {
        let list_permit = ListPermit::default();
        let mut held = Vec::new();
        for _ in 0..AT_ONCE {
            let (text, permit) = gathered(body([SMALL, 1], false).await, Some(&list_permit.of_plane()))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(text.len(), SMALL + 1);
            held.push(permit.expect("it needs leave"));
        }
        let small = gathered(body([SMALL - 1, 1], false).await, Some(&list_permit))
            .await
            .unwrap()
            .unwrap();
        assert!(small.1.is_none());
        let one_more = gathered(body([SMALL, 1], false).await, Some(&list_permit));
        let mut one_more = Box::pin(one_more);
        assert!(timeout(STALLED * 2, &mut one_more).await.is_err());
        let of_the_hub = gathered(body([SMALL, 1], false).await, None).await.unwrap().unwrap();
        assert!(of_the_hub.1.is_none());
        held.pop();
        assert!(one_more.await.unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_stops_in_the_middle_frees_its_leave() {
        let list_permit = ListPermit::default();
        for _ in 0..=AT_ONCE {
            let stalled = gathered(body([SMALL, 1], true).await, Some(&list_permit)).await;
            assert!(matches!(stalled, Err(Broken::Stalled)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_of_many_large_pages_waits_for_no_leave_of_its_own() {
        let answer = |asked: http::Request<Body>| async move {
            let more = ["continue=b", "continue=c"].map(|page| asked.uri().to_string().contains(page));
            let more = match more {
                [false, false] => "b",
                [true, _] => "c",
                _ => "",
            };
            let object = json!({ "metadata": { "name": more, "resourceVersion": "1" }, "spec": "x".repeat(SMALL) });
            let page = json!({ "metadata": { "resourceVersion": "1", "continue": more }, "items": [object] });
            Ok::<_, Infallible>(http::Response::new(Body::from(page.to_string().into_bytes())))
        };
        let client = Client::new(tower::service_fn(answer), "default");
        let watch_specs = crate::planes::management(&Plane::Hub);
        let mut list = ListWatch::new(&client, watch_specs.first().unwrap(), Some(ListPermit::default()));
        let mut objects = 0;
        while !matches!(timeout(STALLED, list.next()).await.unwrap().unwrap(), Event::InitDone) {
            objects += 1;
        }
        assert_eq!(objects, 1 + 3, "the beginning, and three pages of one");
    }

    #[tokio::test(start_paused = true)]
    async fn one_server_that_is_slow_holds_up_one_answer_of_its_own_at_a_time_and_not_for_long() {
        let list_permit = ListPermit::default();
        let slow = list_permit.of_plane();
        let began = Instant::now();
        let answers = (0..3 * AT_ONCE).map(|_| async {
            let ended = gathered(trickle().await, Some(&slow)).await;
            assert!(matches!(ended, Ok(None)), "it is asked for in smaller parts");
            began.elapsed()
        });
        let mut all = pin!(join_all(answers));
        assert!(timeout(Duration::from_millis(1), &mut all).await.is_err());
        let other = gathered(body([SMALL, 1], false).await, Some(&list_permit.of_plane())).await;
        assert!(other.unwrap().unwrap().1.is_some());
        assert!(began.elapsed() < Duration::from_secs(1), "the other has waited");
        let ends = all.await;
        assert_eq!(ends.first(), Some(&SLOW));
        assert_eq!(ends.last(), Some(&(SLOW * 12)));
    }

    #[test]
    fn pages_grow_and_shrink_with_the_size_of_objects() {
        assert_eq!(next_limit(16, 16, 16 * 1_000), LARGEST_PAGE);
        assert_eq!(next_limit(16, 16, 16 * 1_000_000), 4);
        assert_eq!(next_limit(500, 1, 100 << 20), 1);
        assert_eq!(next_limit(7, 0, 100), 7);
    }
}
