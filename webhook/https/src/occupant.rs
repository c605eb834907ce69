//! One open connection as the listener sees it: what it holds, for how long its client has kept that waiting, and whether
//! it can be closed for the sake of others.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a client has kept waiting for less than this is never taken from it.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);
/// A new connection has so long for its first byte, before another may take its place.
pub(crate) const SILENCE: Duration = Duration::from_millis(200);
/// And so long for each of the next steps, handshake and first request: on a busy machine it is the server that is late.
pub(crate) const START: Duration = Duration::from_secs(2);
/// Bodies and answers up to this size are small.
pub(crate) const SMALL: usize = 64 * 1024;

/// Of bodies and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// Up to [`SMALL`].
    Small,
    /// Larger.
    Large,
}

impl Size {
    pub(crate) fn of(bytes: usize) -> Self {
        if bytes > SMALL { Self::Large } else { Self::Small }
    }
}

/// One open connection.
#[derive(Debug)]
pub(crate) struct Occupant {
    pub(crate) number: u64,
    pub(crate) address: IpAddr,
    /// Cancelled when the connection has to end at once.
    pub(crate) cut: CancellationToken,
    /// Told when the connection has been idle for long and should say goodbye.
    pub(crate) dismissed: Notify,
    /// Told once, at the first request.
    pub(crate) first: Notify,
    work: Mutex<Work>,
}

#[derive(Debug)]
struct Work {
    /// Requests whose head has arrived and whose answer is not made yet.
    active: usize,
    requests: u64,
    /// Whether a byte has come.
    spoken: bool,
    /// Its last step: the beginning, the end of the handshake, the end of the last request.
    step: Instant,
    waiting: Vec<Waiting>,
    next: u64,
}

/// Bytes that are held until the client does its part.
#[derive(Debug)]
struct Waiting {
    id: u64,
    bytes: usize,
    since: Instant,
    part: Part,
}

/// What a client is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// To send the rest of a body.
    Upload,
    /// To take an answer.
    Answer,
}

/// How dispensable a connection is; the first is closed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It has not asked for anything yet.
    Fresh(Instant),
    /// It has asked before.
    Idle(Instant),
    /// It keeps an upload or an answer waiting.
    Stalled(Instant),
}

impl Occupant {
    pub(crate) fn new(number: u64, address: IpAddr) -> Self {
        let opened = Instant::now();
        Self {
            number,
            address,
            cut: CancellationToken::new(),
            dismissed: Notify::new(),
            first: Notify::new(),
            work: Mutex::new(Work {
                active: 0,
                requests: 0,
                spoken: false,
                step: opened,
                waiting: Vec::new(),
                next: 0,
            }),
        }
    }

    /// Whether no request waits for its answer to be made.
    pub(crate) fn idle(&self) -> bool {
        self.work().active == 0
    }

    /// It has come a step further without a request: to its first byte, to the end of its handshake.
    pub(crate) fn advanced(&self) {
        let mut work = self.work();
        work.spoken = true;
        work.step = Instant::now();
    }

    /// Whether it has never asked for anything.
    pub(crate) fn is_new(&self) -> bool {
        self.work().requests == 0
    }

    /// A request has come; it counts until [`Occupant::answered`].
    pub(crate) fn asked(&self) {
        let first = {
            let mut work = self.work();
            work.active += 1;
            work.requests += 1;
            work.requests == 1
        };
        if first {
            self.first.notify_one();
        }
    }

    /// The answer to a request is made, or nobody wants it any more.
    pub(crate) fn answered(&self) {
        let mut work = self.work();
        work.active = work.active.saturating_sub(1);
        work.step = Instant::now();
    }

    /// `None` for a connection that is being served, and for one that still has time for its next step.
    pub(crate) fn standing(&self, now: Instant) -> Option<Standing> {
        let work = self.work();
        if work.active > 0 || !work.waiting.is_empty() {
            let since = work.waiting.iter().map(|waiting| waiting.since).min()?;
            return (now.saturating_duration_since(since) >= PATIENCE).then_some(Standing::Stalled(since));
        }
        if work.requests > 0 {
            return Some(Standing::Idle(work.step));
        }
        let time = if work.spoken { START } else { SILENCE };
        (now.saturating_duration_since(work.step) >= time).then_some(Standing::Fresh(work.step))
    }

    /// Bytes kept waiting in bodies and answers of this size, times how long, in byte-milliseconds: 0 while its client does
    /// its part in good time. With the bytes that closing it would free.
    pub(crate) fn weight(&self, size: Size, now: Instant) -> (u128, usize) {
        let work = self.work();
        let of_size = || work.waiting.iter().filter(|waiting| Size::of(waiting.bytes) == size);
        let late = of_size().filter_map(|waiting| {
            let age = now.saturating_duration_since(waiting.since);
            (age >= PATIENCE).then(|| waiting.bytes as u128 * age.as_millis())
        });
        (late.sum(), of_size().map(|waiting| waiting.bytes).sum())
    }

    /// Whether any bytes wait for its client.
    pub(crate) fn holds(&self) -> bool {
        !self.work().waiting.is_empty()
    }

    /// Whether an answer has been waiting for its client for longer than `limit`.
    pub(crate) fn unread(&self, now: Instant, limit: Duration) -> bool {
        let work = self.work();
        let mut answers = work.waiting.iter().filter(|waiting| waiting.part == Part::Answer);
        answers.any(|answer| now.saturating_duration_since(answer.since) >= limit)
    }

    /// Whether it has asked before, and for nothing since so long.
    pub(crate) fn quiet(&self, now: Instant, limit: Duration) -> bool {
        matches!(self.standing(now), Some(Standing::Idle(since)) if now.saturating_duration_since(since) >= limit)
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        // Whatever panicked, each change of it is one step.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says of a connection that its client is waited for, until it is dropped.
#[derive(Debug)]
pub(crate) struct Wait {
    occupant: Arc<Occupant>,
    id: u64,
}

impl Wait {
    pub(crate) fn begin(occupant: &Arc<Occupant>, part: Part, bytes: usize) -> Self {
        let mut work = occupant.work();
        let id = work.next;
        work.next += 1;
        work.waiting.push(Waiting {
            id,
            bytes,
            since: Instant::now(),
            part,
        });
        drop(work);
        Self {
            occupant: Arc::clone(occupant),
            id,
        }
    }

    /// So many bytes are held now.
    pub(crate) fn hold(&self, bytes: usize) {
        self.change(|waiting| waiting.bytes = bytes);
    }

    /// The listener itself kept its client waiting for so long.
    pub(crate) fn forgive(&self, time: Duration) {
        self.change(|waiting| waiting.since += time);
    }

    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        if let Some(waiting) = self.occupant.work().waiting.iter_mut().find(|one| one.id == self.id) {
            change(waiting);
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut work = self.occupant.work();
        if let Some(at) = work.waiting.iter().position(|waiting| waiting.id == self.id) {
            work.waiting.swap_remove(at);
        }
        work.step = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::time::advance;

    use super::*;

    fn occupant() -> Arc<Occupant> {
        Arc::new(Occupant::new(0, Ipv4Addr::LOCALHOST.into()))
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_served_is_never_dispensable_and_who_keeps_others_waiting_is() {
        let one = occupant();
        let opened = Instant::now();
        assert_eq!(one.standing(opened), None, "it has only begun");
        advance(SILENCE).await;
        assert_eq!(one.standing(Instant::now()), Some(Standing::Fresh(opened)));
        one.advanced();
        advance(SILENCE).await;
        assert_eq!(one.standing(Instant::now()), None, "a step gives it time again");
        advance(START).await;
        assert!(one.standing(Instant::now()).is_some());
        one.asked();
        assert_eq!(one.standing(Instant::now()), None, "its answer is being made");
        let began = Instant::now();
        let upload = Wait::begin(&one, Part::Upload, 1000);
        assert_eq!(one.standing(Instant::now()), None, "it has only begun");
        advance(PATIENCE).await;
        assert_eq!(one.standing(Instant::now()), Some(Standing::Stalled(began)));
        assert_eq!(one.weight(Size::Small, Instant::now()), (500_000, 1000));
        upload.forgive(PATIENCE);
        assert_eq!(
            one.weight(Size::Small, Instant::now()),
            (0, 1000),
            "it was us who waited"
        );
        drop(upload);
        one.answered();
        let quiet = Instant::now();
        assert_eq!(one.standing(quiet), Some(Standing::Idle(quiet)));
        assert!(
            Standing::Fresh(quiet) < Standing::Idle(opened),
            "who has asked before stays longer"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_unread_and_a_connection_quiet_after_their_time() {
        let one = occupant();
        let limit = Duration::from_secs(30);
        one.asked();
        one.answered();
        let answer = Wait::begin(&one, Part::Answer, 10);
        let upload = Wait::begin(&one, Part::Upload, 10);
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
        let (little, much) = (occupant(), occupant());
        let _long = Wait::begin(&little, Part::Upload, 6_000);
        advance(Duration::from_secs(10)).await;
        let _short = Wait::begin(&much, Part::Answer, 60_000);
        let _other = Wait::begin(&much, Part::Answer, 1_000_000);
        advance(Duration::from_secs(1)).await;
        let weight = |one: &Occupant, size| one.weight(size, Instant::now()).0;
        assert!(weight(&little, Size::Small) > weight(&much, Size::Small));
        assert!(weight(&little, Size::Large) < weight(&much, Size::Large));
    }
}
