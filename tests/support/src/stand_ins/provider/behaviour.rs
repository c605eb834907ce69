//! What an Instance's annotations ask of the provider.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::{FAIL, START_SECONDS, TEARDOWN_SECONDS};

/// What can go wrong at an Instance; the names are what [`FAIL`] takes. Several may go wrong at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// `image-unavailable`: the image cannot be pulled.
    ImageUnavailable,
    /// `crash-loop`: the program ends again and again.
    CrashLoop,
    /// `configuration-error`: what is asked for cannot be made.
    ConfigurationError,
    /// `network-failure`: the site cannot make its network.
    NetworkFailure,
    /// `flapping`: it comes and goes.
    Flapping,
    /// `stuck-teardown`: its deletion does not end while the annotation is there.
    StuckTeardown,
    /// `writes-ready`: the provider writes `Ready` as well, which is not its own, and at once whenever it is changed.
    WritesReady,
    /// `old-contract`: the provider writes `Running` where it should write `Available`, as it did before the rename.
    OldContract,
}

impl Failure {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ImageUnavailable,
        Self::CrashLoop,
        Self::ConfigurationError,
        Self::NetworkFailure,
        Self::Flapping,
        Self::StuckTeardown,
        Self::WritesReady,
        Self::OldContract,
    ];

    /// Its name in the annotation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ImageUnavailable => "image-unavailable",
            Self::CrashLoop => "crash-loop",
            Self::ConfigurationError => "configuration-error",
            Self::NetworkFailure => "network-failure",
            Self::Flapping => "flapping",
            Self::StuckTeardown => "stuck-teardown",
            Self::WritesReady => "writes-ready",
            Self::OldContract => "old-contract",
        }
    }
}

/// What is asked of the provider at one Instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Behaviour {
    pub(super) start: Option<Duration>,
    pub(super) teardown: Option<Duration>,
    failures: Vec<Failure>,
    /// A value that makes no sense: the Instance tells of it, so that a test does not pass by a slip of the pen.
    pub(super) complaint: Option<String>,
}

impl Behaviour {
    /// Reads annotations.
    pub(super) fn of(annotations: Option<&BTreeMap<String, String>>) -> Self {
        let mut behaviour = Self::default();
        let Some(annotations) = annotations else {
            return behaviour;
        };
        let names = annotations.get(FAIL).map_or("", String::as_str);
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match Failure::ALL.into_iter().find(|failure| failure.name() == name) {
                Some(failure) => behaviour.failures.push(failure),
                None => behaviour.complaint = Some(format!("annotation {FAIL} names no failure: {name}")),
            }
        }
        for (key, field) in [
            (START_SECONDS, &mut behaviour.start),
            (TEARDOWN_SECONDS, &mut behaviour.teardown),
        ] {
            let Some(text) = annotations.get(key) else { continue };
            let seconds = text.parse().ok().map(Duration::try_from_secs_f64);
            match seconds {
                Some(Ok(seconds)) => *field = Some(seconds),
                _ => behaviour.complaint = Some(format!("annotation {key} is no number of seconds: {text}")),
            }
        }
        behaviour
    }

    /// Whether this goes wrong.
    pub(super) fn has(&self, failure: Failure) -> bool {
        self.failures.contains(&failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(annotations: &[(&str, &str)]) -> Behaviour {
        let annotations = annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Behaviour::of(Some(&annotations.collect()))
    }

    #[test]
    fn every_failure_has_a_name_of_its_own_and_several_go_together() {
        for failure in Failure::ALL {
            let behaviour = of(&[(FAIL, failure.name())]);
            let found: Vec<Failure> = Failure::ALL.into_iter().filter(|one| behaviour.has(*one)).collect();
            assert_eq!((found, behaviour.complaint), (vec![failure], None));
        }
        let two = of(&[(FAIL, " crash-loop ,stuck-teardown,")]);
        assert_eq!(two.failures, [Failure::CrashLoop, Failure::StuckTeardown]);
        assert_eq!(Behaviour::of(None), of(&[("other", "crash-loop")]));
    }

    #[test]
    fn a_slip_of_the_pen_is_reported() {
        assert_eq!(of(&[(START_SECONDS, "2.5")]).start, Some(Duration::from_millis(2500)));
        assert_eq!(of(&[(TEARDOWN_SECONDS, "0")]).teardown, Some(Duration::ZERO));
        for wrong in [
            (FAIL, "crashloop"),
            (START_SECONDS, "soon"),
            (START_SECONDS, "-1"),
            (TEARDOWN_SECONDS, "1e99"),
        ] {
            let complaint = of(&[wrong]).complaint.unwrap();
            assert!(
                complaint.contains(wrong.0) && complaint.contains(wrong.1),
                "{complaint}"
            );
        }
    }
}
