//! Whatever the network and the scheduler do, no two replicas have permission at once.

use proptest::prelude::*;

use super::*;

const REPLICAS: usize = 3;

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered,
    /// It never arrives.
    Lost,
    /// It is done, and nobody hears of it.
    Unheard,
    /// It is given up by its sender, and done after so many other events.
    Late(usize),
    /// It is done and answered, and the answer is read after this many milliseconds: the process slept.
    Asleep(u64),
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many milliseconds pass, then a replica does what it wants to.
    Step { pause: u64, replica: usize, fate: Fate },
    /// Somebody writes an annotation.
    Annotate,
    /// Somebody deletes the Lease.
    Delete,
    /// A replica stops gracefully, and a new one takes its place.
    Stop { replica: usize },
    /// A replica is killed, and a new one takes its place.
    Kill { replica: usize },
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Answered),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Unheard),
        2 => (1_usize..40).prop_map(Fate::Late),
        1 => (100_u64..40_000).prop_map(Fate::Asleep),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let pause = prop_oneof![12 => 0_u64..1500, 1 => 5_000_u64..30_000];
    let replica = || 0..REPLICAS;
    prop_oneof![
        30 => (pause, replica(), fate()).prop_map(|(pause, replica, fate)| Event::Step { pause, replica, fate }),
        1 => Just(Event::Annotate),
        1 => Just(Event::Delete),
        1 => replica().prop_map(|replica| Event::Stop { replica }),
        1 => replica().prop_map(|replica| Event::Kill { replica }),
    ]
}

/// One Lease and its replicas.
struct SimulatedLease {
    now: Time,
    lease: Option<Lease>,
    version: u64,
    replicas: Vec<Machine>,
    born: usize,
    /// Writes that have not arrived: how many events remain, and what is written.
    late: Vec<(usize, Lease)>,
    deleted: Option<Time>,
    /// How often a replica got the Lease.
    taken: usize,
}

impl SimulatedLease {
    fn new() -> Self {
        let mut simulated = Self {
            now: Time::default(),
            lease: None,
            version: 0,
            replicas: Vec::new(),
            born: 0,
            late: Vec::new(),
            deleted: None,
            taken: 0,
        };
        for _ in 0..REPLICAS {
            let born = simulated.birth();
            simulated.replicas.push(born);
        }
        simulated
    }

    fn birth(&mut self) -> Machine {
        self.born += 1;
        Machine::new(format!("r{}", self.born), "n", "l", self.now)
    }

    /// What a server does with a write.
    fn write(&mut self, lease: &Lease) -> Option<Lease> {
        let current = self
            .lease
            .as_ref()
            .and_then(|lease| lease.metadata.resource_version.clone());
        if lease.metadata.resource_version != current {
            return None;
        }
        self.version += 1;
        let mut lease = lease.clone();
        lease.metadata.resource_version = Some(self.version.to_string());
        self.lease = Some(lease.clone());
        Some(lease)
    }

    fn arrive(&mut self) {
        let (due, rest): (Vec<_>, Vec<_>) = self.late.drain(..).partition(|(left, _)| *left == 0);
        self.late = rest.into_iter().map(|(left, lease)| (left - 1, lease)).collect();
        for (_, lease) in due {
            self.write(&lease);
        }
    }

    fn request(&mut self, replica: usize, write: Option<Lease>, fate: Fate) {
        let sent = self.now;
        let answer = match (fate, &write) {
            (Fate::Late(left), Some(lease)) => {
                self.late.push((left, lease.clone()));
                None
            }
            (Fate::Lost, _) | (Fate::Late(_) | Fate::Unheard, None) => None,
            (Fate::Unheard, Some(lease)) => {
                self.write(lease);
                None
            }
            (Fate::Answered | Fate::Asleep(_), Some(lease)) => Some(self.write(lease)),
            (Fate::Answered | Fate::Asleep(_), None) => Some(self.lease.clone()),
        };
        if let Fate::Asleep(pause) = fate {
            self.now += Duration::from_millis(pause);
        }
        let (now, machine) = (self.now, &mut self.replicas[replica]);
        match (answer, write) {
            (None, _) => machine.failed(sent, now),
            (Some(lease), None) => machine.read(lease, now),
            (Some(None), Some(_)) => machine.conflict(now),
            (Some(Some(lease)), Some(_)) => {
                self.taken += usize::from(machine.until().is_none());
                machine.written(lease, sent);
            }
        }
    }

    fn play(&mut self, event: Event) {
        self.arrive();
        match event {
            Event::Step { pause, replica, fate } => {
                self.now += Duration::from_millis(pause);
                match self.replicas[replica].step(self.now, wall()) {
                    Step::Sleep(_) => {}
                    Step::Read => self.request(replica, None, fate),
                    Step::Create(lease) | Step::Replace(lease) => self.request(replica, Some(*lease), fate),
                    Step::Lost(_) => self.replicas[replica] = self.birth(),
                }
            }
            Event::Annotate => {
                if let Some(mut lease) = self.lease.clone() {
                    lease.metadata.annotations = Some([(MASS_DELETE.to_owned(), self.version.to_string())].into());
                    self.write(&lease);
                }
            }
            // Not again and again: a Lease that is deleted as soon as it is made tells the others nothing.
            Event::Delete if self.deleted.is_none_or(|last| self.now.since(last) > 2 * DURATION) => {
                (self.lease, self.deleted) = (None, Some(self.now));
            }
            Event::Delete => {}
            Event::Stop { replica } => {
                let machine = &mut self.replicas[replica];
                let known = if machine.give_up(self.now) {
                    machine.known()
                } else {
                    None
                };
                if let Some(lease) = known.and_then(|lease| machine.released(lease, wall())) {
                    self.write(&lease);
                }
                self.replicas[replica] = self.birth();
            }
            Event::Kill { replica } => self.replicas[replica] = self.birth(),
        }
    }

    /// How many may write. A killed replica's last writes are not counted: they had ended with it.
    fn writers(&self) -> usize {
        let holds = |machine: &&Machine| machine.until().is_some_and(|until| self.now < until);
        self.replicas.iter().filter(holds).count()
    }
}

proptest! {
    #[test]
    fn no_two_replicas_have_permission_at_once(events in prop::collection::vec(event(), 1..300)) {
        let mut simulated = SimulatedLease::new();
        for event in events {
            let shown = format!("{event:?}");
            simulated.play(event);
            prop_assert!(simulated.writers() <= 1, "after {shown}");
        }
    }

    #[test]
    fn whatever_happened_a_replica_leads_soon_after(events in prop::collection::vec(event(), 0..100)) {
        let mut simulated = SimulatedLease::new();
        for event in events {
            simulated.play(event);
        }
        // Late writes arrive, a dead holder expires, the others look.
        for round in 0..300 {
            simulated.play(Event::Step { pause: 200, replica: round % REPLICAS, fate: Fate::Answered });
        }
        prop_assert_eq!(simulated.writers(), 1);
        prop_assert!(simulated.taken > 0);
    }
}
