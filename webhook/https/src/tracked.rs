//! One open connection as the listener sees it: what it holds, for how long its client has kept that waiting, and whether
//! it can be closed for the sake of others.
//!
//! Invariant: time counts against a client only while the socket has nothing from it, or takes nothing more for it. However
//! late the server itself is, a client that does its part has kept no other waiting.

use std::cmp::Reverse;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::budget::{Charge, Size};

/// A client that keeps the server waiting for less than this is never closed for the sake of others.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// One open connection.
#[derive(Debug)]
pub(crate) struct Tracked {
    pub(crate) number: u64,
    pub(crate) address: IpAddr,
    /// Cancelled when the connection has to end at once.
    pub(crate) cut: CancellationToken,
    /// The connection has been idle for long and should say goodbye.
    pub(crate) dismissed: AtomicBool,
    /// Notified when there is something to look at: the first request, [`Tracked::cut`], [`Tracked::dismissed`] or a step
    /// of the listener's stop.
    pub(crate) signal: Notify,
    /// Asked whether something has arrived that the server has not read yet.
    socket: OnceLock<Weak<TcpStream>>,
    work: Mutex<Work>,
}

#[derive(Debug)]
struct Work {
    /// Requests whose head has arrived and whose answer is not made yet.
    active: usize,
    requests: u64,
    /// The end of the last request.
    step: Instant,
    /// Runs while the socket has nothing to read.
    unsent: Clock,
    /// Runs while the socket takes nothing more.
    untaken: Clock,
    waiting: Vec<Waiting>,
    next: u64,
}

/// Bytes that are held until the client does its part.
#[derive(Debug)]
struct Waiting {
    id: u64,
    bytes: usize,
    size: Size,
    /// What the clocks said when this began.
    from: Mark,
    part: Part,
}

/// A clock that stands still while it is not the client's turn.
#[derive(Debug, Default)]
struct Clock {
    total: Duration,
    since: Option<Instant>,
}

/// What the clocks of a connection say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    unsent: Duration,
    untaken: Duration,
}

/// What a client is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// To send the rest of a body.
    Upload,
    /// To take an answer.
    Answer,
    /// To take an answer over HTTP/2, for which it also has to ask.
    Stream,
}

/// How dispensable a connection is; the first is closed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It has not asked for anything, and has kept the server waiting for so long.
    Fresh(Reverse<Duration>),
    /// It has asked once, and not since then.
    Once(Instant),
    /// It keeps an upload or an answer waiting for so long.
    Stalled(Reverse<Duration>),
    /// It has come back with another request, the last one then: the connection of a client that uses it.
    Kept(Instant),
}

impl Tracked {
    pub(crate) fn new(number: u64, address: IpAddr) -> Self {
        let opened = Instant::now();
        Self {
            number,
            address,
            cut: CancellationToken::new(),
            dismissed: AtomicBool::new(false),
            signal: Notify::new(),
            socket: OnceLock::new(),
            work: Mutex::new(Work {
                active: 0,
                requests: 0,
                step: opened,
                unsent: Clock {
                    total: Duration::ZERO,
                    since: Some(opened),
                },
                untaken: Clock::default(),
                waiting: Vec::new(),
                next: 0,
            }),
        }
    }

    /// From now on the connection is read from here.
    pub(crate) fn reads_from(&self, socket: &Arc<TcpStream>) {
        // A connection has one socket.
        drop(self.socket.set(Arc::downgrade(socket)));
    }

    /// Ends the connection at once. What its client did not take is thrown away: the kernel would keep it for minutes.
    pub(crate) fn end(&self) {
        let unread = self.work().untaken.since.is_some();
        if unread && let Some(socket) = self.socket.get().and_then(Weak::upgrade) {
            // Where it fails, the client is gone.
            drop(SockRef::from(&*socket).set_linger(Some(Duration::ZERO)));
        }
        self.cut.cancel();
        self.signal.notify_one();
    }

    /// Asks the connection to leave, once it is idle.
    pub(crate) fn dismiss(&self) {
        self.dismissed.store(true, Relaxed);
        self.signal.notify_one();
    }

    /// Whether the last attempt to read found nothing.
    pub(crate) fn unsent(&self, unsent: bool) {
        self.work().unsent.run(unsent);
    }

    /// Whether the last attempt to write found no place.
    pub(crate) fn untaken(&self, untaken: bool) {
        self.work().untaken.run(untaken);
    }

    /// Whether no request waits for its answer to be made.
    pub(crate) fn idle(&self) -> bool {
        self.work().active == 0
    }

    /// Whether it has never asked for anything.
    pub(crate) fn is_new(&self) -> bool {
        self.work().requests == 0
    }

    /// A request has come; it counts until [`Tracked::answered`].
    pub(crate) fn asked(&self) {
        let first = {
            let mut work = self.work();
            work.active += 1;
            work.requests += 1;
            work.requests == 1
        };
        if first {
            self.signal.notify_one();
        }
    }

    /// The answer to a request is made, or it is not wanted any more.
    pub(crate) fn answered(&self) {
        let mut work = self.work();
        work.active = work.active.saturating_sub(1);
        work.step = Instant::now();
    }

    /// `None` for a connection that is being served, and for one whose client does its part in good time.
    pub(crate) fn standing(&self, now: Instant) -> Option<Standing> {
        let work = self.work();
        let kept = |time: Duration| (time >= PATIENCE).then_some(Reverse(time));
        if work.active > 0 || !work.waiting.is_empty() {
            let longest = work.waited(now).map(|(_, time)| time).max()?;
            return kept(longest).map(Standing::Stalled);
        }
        match work.requests {
            0 => kept(work.unsent.read(now)).map(Standing::Fresh),
            1 => Some(Standing::Once(work.step)),
            _ => Some(Standing::Kept(work.step)),
        }
    }

    /// Bytes kept waiting in bodies and answers of this size, times how long, in byte-milliseconds: 0 while its client does
    /// its part in good time. With the bytes that closing it would free.
    pub(crate) fn weight(&self, size: Size, now: Instant) -> (u128, usize) {
        let work = self.work();
        let of_size = work.waited(now).filter(|(waiting, _)| waiting.size == size);
        of_size.fold((0, 0), |(weight, held), (waiting, time)| {
            let late = if time >= PATIENCE { time.as_millis() } else { 0 };
            (weight + waiting.bytes as u128 * late, held + waiting.bytes)
        })
    }

    /// Whether something has arrived that the server has not come to read: whatever time says, it is the server that is
    /// late. A client that does not take its answers gains nothing by sending.
    pub(crate) fn has_spoken(&self) -> bool {
        let socket = self.socket.get().and_then(Weak::upgrade);
        let arrived = socket.is_some_and(|socket| SockRef::from(&*socket).peek(&mut [MaybeUninit::uninit()]).is_ok());
        arrived && self.work().untaken.since.is_none()
    }

    /// Whether any bytes wait for its client.
    pub(crate) fn holds(&self) -> bool {
        !self.work().waiting.is_empty()
    }

    /// Whether an answer has been waiting for its client for longer than `limit`.
    pub(crate) fn unread(&self, now: Instant, limit: Duration) -> bool {
        let work = self.work();
        work.waited(now)
            .any(|(waiting, time)| waiting.part != Part::Upload && time >= limit)
    }

    /// Whether it has asked before, and for nothing since so long.
    pub(crate) fn quiet(&self, now: Instant, limit: Duration) -> bool {
        match self.standing(now) {
            Some(Standing::Once(since) | Standing::Kept(since)) => now.saturating_duration_since(since) >= limit,
            _ => false,
        }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        // Whatever panicked, each change of it is one step.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Work {
    /// What is waited for, each with how long its client has kept it waiting.
    fn waited(&self, now: Instant) -> impl Iterator<Item = (&Waiting, Duration)> {
        let now = self.mark(now);
        self.waiting.iter().map(move |waiting| {
            let Mark { unsent, untaken } = now.since(waiting.from);
            let time = match waiting.part {
                Part::Upload => unsent,
                Part::Answer => untaken,
                Part::Stream => unsent.max(untaken),
            };
            (waiting, time)
        })
    }

    fn mark(&self, now: Instant) -> Mark {
        Mark {
            unsent: self.unsent.read(now),
            untaken: self.untaken.read(now),
        }
    }
}

impl Mark {
    fn since(self, earlier: Self) -> Self {
        Self {
            unsent: self.unsent.saturating_sub(earlier.unsent),
            untaken: self.untaken.saturating_sub(earlier.untaken),
        }
    }
}

impl Clock {
    fn read(&self, now: Instant) -> Duration {
        let running = self.since.map(|since| now.saturating_duration_since(since));
        self.total + running.unwrap_or_default()
    }

    fn run(&mut self, runs: bool) {
        if runs {
            self.since.get_or_insert_with(Instant::now);
        } else if let Some(since) = self.since.take() {
            self.total += since.elapsed();
        }
    }
}

/// Says of a connection that its client is waited for, until it is dropped.
#[derive(Debug)]
pub(crate) struct Wait {
    tracked: Arc<Tracked>,
    id: u64,
}

impl Wait {
    pub(crate) fn begin(tracked: &Arc<Tracked>, part: Part, charge: &Charge) -> Self {
        Self::of(tracked, part, charge.bytes(), charge.size())
    }

    pub(crate) fn of(tracked: &Arc<Tracked>, part: Part, bytes: usize, size: Size) -> Self {
        let mut work = tracked.work();
        let (id, from) = (work.next, work.mark(Instant::now()));
        work.next += 1;
        work.waiting.push(Waiting {
            id,
            bytes,
            size,
            from,
            part,
        });
        drop(work);
        Self {
            tracked: Arc::clone(tracked),
            id,
        }
    }

    /// This is held now.
    pub(crate) fn hold(&self, charge: &Charge) {
        self.change(|waiting| (waiting.bytes, waiting.size) = (charge.bytes(), charge.size()));
    }

    /// Before the listener itself keeps its client waiting.
    pub(crate) fn pause(&self) -> Mark {
        self.tracked.work().mark(Instant::now())
    }

    /// It has done so since then.
    pub(crate) fn resume(&self, paused: Mark) {
        let Mark { unsent, untaken } = self.pause().since(paused);
        self.change(|waiting| {
            waiting.from.unsent += unsent;
            waiting.from.untaken += untaken;
        });
    }

    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        if let Some(waiting) = self.tracked.work().waiting.iter_mut().find(|one| one.id == self.id) {
            change(waiting);
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut work = self.tracked.work();
        if let Some(at) = work.waiting.iter().position(|waiting| waiting.id == self.id) {
            work.waiting.swap_remove(at);
        }
        work.step = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::AsyncWriteExt;
    use tokio::time::advance;

    use super::*;
    use crate::budget::What;

    fn tracked() -> Arc<Tracked> {
        Arc::new(Tracked::new(0, Ipv4Addr::LOCALHOST.into()))
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_served_is_never_dispensable_and_who_keeps_others_waiting_is() {
        let one = tracked();
        assert_eq!(one.standing(Instant::now()), None, "it has only begun");
        advance(PATIENCE).await;
        assert_eq!(one.standing(Instant::now()), Some(Standing::Fresh(Reverse(PATIENCE))));
        one.unsent(false);
        one.asked();
        assert_eq!(one.standing(Instant::now()), None, "its answer is being made");
        let upload = Wait::of(&one, Part::Upload, 1000, Size::of(What::Body, 1000));
        advance(PATIENCE).await;
        assert_eq!(one.standing(Instant::now()), None, "the server has not read what came");
        one.unsent(true);
        advance(PATIENCE).await;
        assert_eq!(one.standing(Instant::now()), Some(Standing::Stalled(Reverse(PATIENCE))));
        assert_eq!(one.weight(Size::of(What::Body, 1000), Instant::now()), (500_000, 1000));
        let paused = upload.pause();
        advance(PATIENCE).await;
        upload.resume(paused);
        assert_eq!(
            one.weight(Size::of(What::Body, 1000), Instant::now()),
            (500_000, 1000),
            "it was us who waited"
        );
        drop(upload);
        one.answered();
        let quiet = Instant::now();
        assert_eq!(one.standing(quiet), Some(Standing::Once(quiet)));
        one.asked();
        one.answered();
        assert_eq!(one.standing(quiet), Some(Standing::Kept(quiet)));
    }

    #[test]
    fn the_order_of_going_is_who_has_done_least() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let order = [
            Standing::Fresh(Reverse(2 * second)),
            Standing::Fresh(Reverse(second)),
            Standing::Once(now),
            Standing::Once(now + second),
            Standing::Stalled(Reverse(2 * second)),
            Standing::Stalled(Reverse(second)),
            Standing::Kept(now),
            Standing::Kept(now + second),
        ];
        assert!(order.is_sorted());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_waits_for_who_takes_it_and_over_http2_for_who_asks_for_it() {
        let second = Duration::from_secs(1);
        for (part, silent, full) in [(Part::Answer, false, true), (Part::Stream, true, true)] {
            let one = tracked();
            let _answer = Wait::of(&one, part, 1, Size::of(What::Body, 1));
            advance(second).await;
            assert_eq!(one.unread(Instant::now(), second), silent, "{part:?}");
            one.unsent(false);
            one.untaken(true);
            advance(second).await;
            assert_eq!(one.unread(Instant::now(), second), full, "{part:?}");
            // A byte now and then wins little time.
            one.untaken(false);
            one.untaken(true);
            advance(second).await;
            assert!(one.unread(Instant::now(), 2 * second), "{part:?}");
        }
    }

    #[tokio::test]
    async fn what_has_arrived_and_was_not_read_speaks_for_its_client() {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let socket = Arc::new(listener.accept().await.unwrap().0);
        let one = tracked();
        assert!(!one.has_spoken(), "it has no socket yet");
        one.reads_from(&socket);
        assert!(!one.has_spoken());
        client.write_all(b"x").await.unwrap();
        while !one.has_spoken() {
            tokio::task::yield_now().await;
        }
        assert!(one.has_spoken(), "asking takes nothing away");
        one.untaken(true);
        assert!(!one.has_spoken(), "who does not take answers gains nothing");
        one.untaken(false);
        drop(socket);
        assert!(!one.has_spoken(), "it is closed");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_unread_and_a_connection_quiet_after_their_time() {
        let one = tracked();
        let limit = Duration::from_secs(30);
        one.asked();
        one.answered();
        one.untaken(true);
        let answer = Wait::of(&one, Part::Answer, 10, Size::of(What::Body, 10));
        let upload = Wait::of(&one, Part::Upload, 10, Size::of(What::Body, 10));
        assert!(!one.unread(Instant::now(), limit));
        advance(limit).await;
        assert!(one.unread(Instant::now(), limit));
        assert!(!one.quiet(Instant::now(), limit));
        drop(answer);
        assert!(!one.unread(Instant::now(), limit), "an upload has a time of its own");
        drop(upload);
        assert!(!one.quiet(Instant::now(), limit));
        advance(limit).await;
        assert!(one.quiet(Instant::now(), limit));
    }

    #[tokio::test(start_paused = true)]
    async fn little_for_long_weighs_like_much_for_short() {
        let (little, much) = (tracked(), tracked());
        let _long = Wait::of(&little, Part::Upload, 10_000, Size::of(What::Body, 10_000));
        advance(Duration::from_secs(10)).await;
        let _short = Wait::of(&much, Part::Upload, 60_000, Size::of(What::Body, 60_000));
        let _other = Wait::of(&much, Part::Upload, 1_000_000, Size::of(What::Body, 1_000_000));
        advance(Duration::from_secs(1)).await;
        let weight = |one: &Tracked, bytes| one.weight(Size::of(What::Body, bytes), Instant::now()).0;
        assert!(weight(&little, 10_000) > weight(&much, 60_000));
        assert!(weight(&little, 1_000_000) < weight(&much, 1_000_000));
    }
}
