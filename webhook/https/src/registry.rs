//! All open connections of a listener, and who has to go when there are too many or too much is held.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::budget::Size;
use crate::limits::{Limits, ListenerStatus};
use crate::tracked::{Standing, Tracked};

/// So many connections may be without a first request at once.
const BEGINNERS: usize = 256;

/// The open connections. A connection that has to end counts no more.
#[derive(Debug)]
pub(crate) struct Registry {
    most: usize,
    most_of_one: usize,
    status: Arc<ListenerStatus>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Arc<Tracked>>,
    by_address: HashMap<IpAddr, usize>,
    /// Told to end for the bytes that they hold, which they do not let go at once.
    ending: Vec<Arc<Tracked>>,
}

/// Which limit a connection would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// Too many in all.
    All,
    /// Too many of its address.
    Address,
}

impl Registry {
    pub(crate) fn new(limits: &Limits, status: Arc<ListenerStatus>) -> Self {
        Self {
            most: limits.connections,
            most_of_one: limits.connections_per_peer,
            status,
            open: Mutex::default(),
        }
    }

    /// A place for a connection from `address`. Where there is none, the most dispensable connection of the same address,
    /// or of the address with the most connections, gives up its own: who floods the port replaces itself only.
    pub(crate) fn admit(&self, address: IpAddr) -> Result<Arc<Tracked>, Full> {
        let now = Instant::now();
        let mut open = self.open();
        let own = open.by_address.get(&address).copied().unwrap_or(0);
        let (crowd, full) = if own >= self.most_of_one {
            (Some(address), Full::Address)
        } else if open.all.len() >= self.most {
            (open.most_common(), Full::All)
        } else {
            return Ok(open.enter(address));
        };
        let crowd = crowd.ok_or(full)?;
        let of_crowd = open.all.values().filter(|one| one.address == crowd);
        let victim = most_dispensable(of_crowd.filter_map(|one| Some((one.standing(now)?, one)))).ok_or(full)?;
        self.end(&mut open, &victim);
        Ok(open.enter(address))
    }

    /// The connection has ended.
    pub(crate) fn leave(&self, tracked: &Tracked) {
        self.open().remove(tracked);
    }

    /// Whether another connection may begin. Few do at once, so that those that have begun are served soon; the others wait
    /// for their turn where the kernel keeps them. Ends the one that has kept the server waiting for longest.
    pub(crate) fn may_begin(&self) -> bool {
        let now = Instant::now();
        let mut open = self.open();
        let new = open.all.values().filter(|one| one.is_new());
        if new.clone().count() < BEGINNERS.min(self.most - self.most / 4) {
            return true;
        }
        let idlers = new.filter_map(|one| match one.standing(now) {
            Some(standing @ Standing::Fresh(_)) => Some((standing, one)),
            _ => None,
        });
        let Some(victim) = most_dispensable(idlers) else {
            return false;
        };
        self.end(&mut open, &victim);
        true
    }

    /// Ends connections that keep others waiting, the heaviest first, until they have freed so many bytes or none is left.
    pub(crate) fn free(&self, size: Size, bytes: usize) {
        let now = Instant::now();
        let mut open = self.open();
        let weights = open.all.values().map(|one| (one.weight(size, now), Arc::clone(one)));
        let mut heavy: Vec<_> = weights.filter(|((weight, _), _)| *weight > 0).collect();
        heavy.sort_unstable_by_key(|((weight, _), _)| std::cmp::Reverse(*weight));
        open.ending.retain(|one| one.holds());
        let mut freed: usize = open.ending.iter().map(|one| one.weight(size, now).1).sum();
        for ((_, held), one) in heavy {
            if freed >= bytes {
                return;
            }
            if one.has_spoken() {
                continue;
            }
            freed = freed.saturating_add(held);
            self.end(&mut open, &one);
            open.ending.push(one);
        }
    }

    /// Ends connections whose clients do not take their answers, and asks those to leave that have been quiet for long.
    pub(crate) fn sweep(&self, write: Duration, idle: Duration) {
        let now = Instant::now();
        let mut open = self.open();
        let unread: Vec<_> = open
            .all
            .values()
            .filter(|one| one.unread(now, write))
            .cloned()
            .collect();
        for one in unread {
            self.status.unread.fetch_add(1, Relaxed);
            one.end();
            open.remove(&one);
        }
        for one in open.all.values().filter(|one| one.quiet(now, idle)) {
            one.dismiss();
        }
    }

    /// Has all open connections look how far the stop of the listener is.
    pub(crate) fn signal(&self) {
        for one in self.open().all.values() {
            one.signal.notify_one();
        }
    }

    fn end(&self, open: &mut Open, victim: &Tracked) {
        let evicted = self.status.evicted.fetch_add(1, Relaxed) + 1;
        if evicted.is_power_of_two() {
            tracing::warn!(evicted, peer = %victim.address, "too many connections or too much held: closed one that made others wait");
        }
        victim.end();
        open.remove(victim);
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn enter(&mut self, address: IpAddr) -> Arc<Tracked> {
        let number = self.next;
        self.next += 1;
        let tracked = Arc::new(Tracked::new(number, address));
        self.all.insert(number, Arc::clone(&tracked));
        *self.by_address.entry(address).or_default() += 1;
        tracked
    }

    fn remove(&mut self, tracked: &Tracked) {
        if self.all.remove(&tracked.number).is_none() {
            return;
        }
        if let Some(count) = self.by_address.get_mut(&tracked.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&tracked.address);
            }
        }
    }

    fn most_common(&self) -> Option<IpAddr> {
        self.by_address
            .iter()
            .max_by_key(|(_, count)| **count)
            .map(|(address, _)| *address)
    }
}

/// The first by its standing from which nothing has arrived.
fn most_dispensable<'a>(ranked: impl Iterator<Item = (Standing, &'a Arc<Tracked>)>) -> Option<Arc<Tracked>> {
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_unstable_by_key(|(standing, _)| *standing);
    let mut silent = ranked.into_iter().filter(|(_, one)| !one.has_spoken());
    silent.next().map(|(_, one)| Arc::clone(one))
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::budget::What;
    use crate::tracked::{PATIENCE, Part, Wait};

    const SECOND: Duration = Duration::from_secs(1);

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn registry(connections: usize, connections_per_peer: usize) -> Registry {
        let limits = Limits {
            connections,
            connections_per_peer,
            ..Limits::default()
        };
        Registry::new(&limits, Arc::default())
    }

    #[tokio::test(start_paused = true)]
    async fn one_more_replaces_a_silent_client_then_an_idle_one_and_never_one_that_is_served() {
        let all = registry(10, 3);
        let [served, idle, fresh] = [(); 3].map(|()| all.admit(address(1)).unwrap());
        for one in [&served, &idle] {
            one.asked();
        }
        assert_eq!(
            all.admit(address(1)).unwrap_err(),
            Full::Address,
            "who has begun has time"
        );
        idle.answered();
        advance(PATIENCE).await;
        let fourth = all.admit(address(1)).unwrap();
        assert!(fresh.cut.is_cancelled() && !idle.cut.is_cancelled());
        fourth.asked();
        let fifth = all.admit(address(1)).unwrap();
        assert!(idle.cut.is_cancelled());
        fifth.asked();
        assert_eq!(all.admit(address(1)).unwrap_err(), Full::Address);
        all.admit(address(2)).unwrap();
        all.leave(&served);
        all.leave(&served);
        all.admit(address(1)).unwrap();
        assert_eq!(all.status.evicted.load(Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_of_a_client_that_uses_it_outlives_many_that_are_used_once() {
        let all = registry(10, 3);
        let kept = all.admit(address(1)).unwrap();
        for _ in 0..2 {
            kept.asked();
            kept.answered();
        }
        for _ in 0..20 {
            advance(PATIENCE).await;
            let once = all.admit(address(1)).unwrap();
            once.asked();
            once.answered();
        }
        assert!(!kept.cut.is_cancelled());
        assert_eq!(all.status.evicted.load(Relaxed), 18);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_port_takes_from_the_address_with_the_most() {
        let all = registry(4, 3);
        let few = all.admit(address(1)).unwrap();
        let many = [(); 3].map(|()| all.admit(address(2)).unwrap());
        advance(PATIENCE).await;
        all.admit(address(3)).unwrap();
        assert!(!few.cut.is_cancelled() && many[0].cut.is_cancelled());
        for one in &many {
            one.asked();
        }
        all.admit(address(2)).unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn few_begin_at_once_and_an_idler_makes_way() {
        let all = registry(5, 8);
        let [first, _second, _third, fourth] = [(); 4].map(|()| all.admit(address(1)).unwrap());
        assert!(!all.may_begin(), "three quarters of the places");
        fourth.asked();
        assert!(all.may_begin());
        all.admit(address(1)).unwrap();
        assert!(!all.may_begin());
        advance(PATIENCE).await;
        assert!(all.may_begin());
        assert!(first.cut.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn the_heaviest_are_ended_until_enough_is_free() {
        let all = registry(10, 10);
        let [light, heavy, young, served] = [(); 4].map(|()| all.admit(address(1)).unwrap());
        served.asked();
        let _light = Wait::of(&light, Part::Upload, 1500, Size::of(What::Body, 1500));
        let held = Wait::of(&heavy, Part::Upload, 3000, Size::of(What::Body, 3000));
        advance(PATIENCE).await;
        let _young = Wait::of(&young, Part::Upload, 8_000, Size::of(What::Body, 8_000));
        all.free(Size::of(What::Body, 3000), 1500);
        assert!(heavy.cut.is_cancelled() && !light.cut.is_cancelled());
        all.free(Size::of(What::Body, 3000), 1500);
        assert!(!light.cut.is_cancelled(), "enough is on its way");
        drop(held);
        all.free(Size::of(What::Body, 3000), 1500);
        assert!(light.cut.is_cancelled() && !young.cut.is_cancelled() && !served.cut.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn the_sweep_cuts_the_unread_and_dismisses_the_quiet() {
        let all = registry(10, 10);
        let [unread, quiet, fresh] = [(); 3].map(|()| all.admit(address(1)).unwrap());
        unread.untaken(true);
        let _answer = Wait::of(&unread, Part::Answer, 1, Size::of(What::Body, 1));
        quiet.asked();
        quiet.answered();
        advance(SECOND).await;
        all.sweep(2 * SECOND, 2 * SECOND);
        assert!(!unread.cut.is_cancelled());
        advance(SECOND).await;
        all.sweep(2 * SECOND, 2 * SECOND);
        assert!(unread.cut.is_cancelled() && !fresh.cut.is_cancelled());
        assert!(quiet.dismissed.load(Relaxed) && !fresh.dismissed.load(Relaxed));
        assert_eq!(all.status.unread.load(Relaxed), 1);
    }
}
