//! A server, a watch that is late, and answers that overtake each other, against the law that nothing is read which is older
//! than our own last write.

use std::collections::BTreeMap;

use popcell_api::kind::WORKLOAD_DEPLOYMENT;
use proptest::prelude::*;

use super::*;

const NAMES: [&str; 3] = ["a", "ab", "b"];

/// What somebody does to an object.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Makes it, or writes it where it is there.
    Write,
    /// Writes it so that the filter hides it.
    Hide,
    Delete,
}

#[derive(Clone, Debug)]
enum Step {
    Ours(usize, Act),
    Theirs(usize, Act),
    /// One of the answers that are on their way arrives.
    Answer(usize),
    /// The watch brings what it has not brought.
    Bring,
    Break,
    Begin,
    /// The server reads what it will list.
    Snapshot,
    End,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let act = prop_oneof![4 => Just(Act::Write), 1 => Just(Act::Hide), 2 => Just(Act::Delete)];
    let step = prop_oneof![
        5 => (0..NAMES.len(), act.clone()).prop_map(|(name, act)| Step::Ours(name, act)),
        2 => (0..NAMES.len(), act).prop_map(|(name, act)| Step::Theirs(name, act)),
        5 => (0_usize..9).prop_map(Step::Answer),
        6 => Just(Step::Bring),
        1 => Just(Step::Break),
        2 => Just(Step::Begin),
        2 => Just(Step::Snapshot),
        2 => Just(Step::End),
    ];
    proptest::collection::vec(step, 0..80)
}

#[derive(Clone)]
struct Stored {
    uid: String,
    version: u64,
    hidden: bool,
}

enum Answered {
    Is(Stored),
    /// Uid, and the version on which it was deleted.
    Gone(String, u64),
}

/// How far a list or watch is.
#[derive(Clone, Copy, PartialEq)]
enum Course {
    Broken,
    Begun,
    /// The events up to this one are in the list.
    Snapshot(usize),
    /// The events up to this one were brought.
    Watching(usize),
}

/// A server, its watch, and answers that are on their way.
struct Model {
    store: Store,
    version: u64,
    objects: BTreeMap<usize, Stored>,
    events: Vec<Event<Raw>>,
    /// Since which version an object of a name is in sight, or not.
    history: BTreeMap<usize, Vec<(u64, bool)>>,
    answers: Vec<(usize, u64, Answered)>,
    /// Version of the last write of ours, of those that were answered.
    floor: BTreeMap<usize, u64>,
    course: Course,
}

impl Model {
    fn new() -> Self {
        Self {
            store: Store::of(WORKLOAD_DEPLOYMENT, crate::planes::budget::Budget::default()),
            version: 0,
            objects: BTreeMap::new(),
            events: Vec::new(),
            history: BTreeMap::new(),
            answers: Vec::new(),
            floor: BTreeMap::new(),
            course: Course::Broken,
        }
    }

    fn raw(name: usize, stored: &Stored) -> Value {
        json!({ "metadata": { "namespace": "n", "name": NAMES[name], "uid": stored.uid,
            "resourceVersion": stored.version.to_string() } })
    }

    /// The server does it.
    fn act(&mut self, name: usize, act: Act) -> Option<Answered> {
        let before = self.objects.get(&name).cloned();
        if before.is_none() && !matches!(act, Act::Write) {
            return None;
        }
        self.version += 1;
        let version = self.version;
        let was_seen = before.as_ref().is_some_and(|before| !before.hidden);
        let uid = before
            .as_ref()
            .map_or_else(|| format!("u{version}"), |before| before.uid.clone());
        let now = Stored {
            uid,
            version,
            hidden: matches!(act, Act::Hide),
        };
        let is_seen = !now.hidden && !matches!(act, Act::Delete);
        let event = raw(Self::raw(name, &now));
        if is_seen {
            self.events.push(Event::Apply(event));
        } else if was_seen {
            self.events.push(Event::Delete(event));
        }
        self.history
            .entry(name)
            .or_insert_with(|| vec![(0, false)])
            .push((version, is_seen));
        if matches!(act, Act::Delete) {
            self.objects.remove(&name);
            return before.map(|before| Answered::Gone(before.uid, before.version));
        }
        self.objects.insert(name, now.clone());
        Some(Answered::Is(now))
    }

    fn take(&mut self, step: &Step) {
        match (step, self.course) {
            (Step::Ours(name, act), _) => {
                if let Some(answered) = self.act(*name, *act) {
                    self.answers.push((*name, self.version, answered));
                }
            }
            (Step::Theirs(name, act), _) => {
                self.act(*name, *act);
            }
            (Step::Answer(index), _) if !self.answers.is_empty() => {
                let (name, version, answered) = self.answers.remove(index % self.answers.len());
                match answered {
                    Answered::Is(stored) => {
                        let object = serde_json::from_value(Self::raw(name, &stored)).unwrap();
                        self.store.wrote(&object, !stored.hidden);
                    }
                    Answered::Gone(uid, on) => self.store.deleted("n", NAMES[name], &uid, &on.to_string()),
                }
                let floor = self.floor.entry(name).or_default();
                *floor = version.max(*floor);
            }
            (Step::Bring, Course::Watching(brought)) if brought < self.events.len() => {
                take(&self.store, self.events[brought].clone());
                self.course = Course::Watching(brought + 1);
            }
            (Step::Break, _) => {
                self.store.lose("broken".to_owned());
                self.course = Course::Broken;
            }
            (Step::Begin, Course::Broken) => {
                take(&self.store, Event::Init);
                self.course = Course::Begun;
            }
            (Step::Snapshot, Course::Begun) => {
                for (name, stored) in self.objects.iter().filter(|(_, stored)| !stored.hidden) {
                    take(&self.store, Event::InitApply(raw(Self::raw(*name, stored))));
                }
                self.course = Course::Snapshot(self.events.len());
            }
            (Step::End, Course::Snapshot(listed)) => {
                take(&self.store, Event::InitDone);
                self.course = Course::Watching(listed);
            }
            _ => {}
        }
    }

    /// Nothing is read that is older than the last answer to a write of ours.
    fn check(&self) {
        for (index, name) in NAMES.iter().enumerate() {
            let Observed::Known(read) = self.store.get("n", name) else {
                continue;
            };
            let floor = self.floor.get(&index).copied().unwrap_or_default();
            let history = self.history.get(&index).cloned().unwrap_or_else(|| vec![(0, false)]);
            let fits = if let Some(read) = &read {
                read.resource_version().parse::<u64>().unwrap() >= floor
            } else {
                let next = history.iter().skip(1).map(|(since, _)| *since).chain([u64::MAX]);
                let mut states = history.iter().zip(next);
                states.any(|((_, is_seen), until)| !is_seen && until > floor)
            };
            assert!(
                fits,
                "{name} is read as {read:?} after our write at {floor}: {history:?}"
            );
        }
        self.check_lookups();
    }

    /// Every lookup finds what a walk through everything finds.
    fn check_lookups(&self) {
        let Observed::Known(all) = self.store.all() else {
            return;
        };
        let walked =
            |meant: &dyn Fn(&Object) -> bool| -> Vec<_> { all.iter().filter(|one| meant(one)).cloned().collect() };
        for uid in (0..=self.version).map(|version| format!("u{version}")) {
            let found = self.store.saying(&uid).known();
            assert_eq!(found, Some(walked(&|one| one.uid() == uid)), "{uid}");
        }
        for name in NAMES {
            assert_eq!(self.store.named(name).known(), Some(walked(&|one| one.name() == name)));
            let prefix = &name[..1];
            let found = self.store.starting("n", prefix).known();
            assert_eq!(found, Some(walked(&|one| one.name().starts_with(prefix))));
        }
    }

    fn finish(&mut self, step: &Step) {
        let open = [Step::Begin, Step::Snapshot, Step::End];
        let answered = std::iter::repeat_n(Step::Answer(0), self.answers.len());
        let last = std::iter::once(step.clone()).chain(open);
        let brought = std::iter::repeat_n(Step::Bring, self.events.len() + 2);
        for step in answered.chain(last).chain(brought).collect::<Vec<_>>() {
            self.take(&step);
            self.check();
        }
    }
}

proptest! {
    #[test]
    fn nothing_is_read_that_is_older_than_our_own_last_write(steps in steps(), relist in any::<bool>()) {
        let mut model = Model::new();
        for step in &steps {
            model.take(step);
            model.check();
        }
        // The watch has caught up when it brings something later than the answers, or when it is restarted.
        model.finish(&if relist { Step::Break } else { Step::Theirs(0, Act::Write) });
        assert_eq!(model.store.overlay(), 0);
        for (index, name) in NAMES.iter().enumerate() {
            let truth = model.objects.get(&index).filter(|stored| !stored.hidden);
            let read = model.store.get("n", name).known().unwrap();
            assert_eq!(
                read.map(|read| read.resource_version().to_owned()),
                truth.map(|stored| stored.version.to_string())
            );
        }
    }
}
