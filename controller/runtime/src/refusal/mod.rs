//! What a server answers instead of doing what was asked, and what that means for the reconcile.

mod server_message;

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use popcell_core::plan::{NAMESPACE, Plane, Target};
use popcell_core::references::DATA;
use thiserror::Error;

use popcell_client::Unproven;
pub use server_message::ServerMessage;
pub(crate) use server_message::brief;

use crate::queue::{Backoff, Requeue};

/// What one request met. It displays as a log may have it; [`Refusal::reported`] is for the user whose object it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 404: the object, its namespace or the kind is not there; or what answers is no API server.
    NotFound {
        /// What the server says.
        message: ServerMessage,
        /// Plural and name of the object that an API server says is not there.
        what: Option<(String, String)>,
    },
    /// 409, or 422 by a failed `test`: it was decided on something else than what is stored.
    Changed(ServerMessage),
    /// 429 or 5xx: the server cannot now, or not for this object; see [`crate::apply`] for what is told so and is not.
    Busy {
        /// HTTP status.
        code: u16,
        /// What the server says.
        message: ServerMessage,
        /// How long it asks for a pause.
        retry_after: Option<Duration>,
    },
    /// What stands between server and object refuses, or cannot be asked: a webhook, an admission policy, a quota. The
    /// server works.
    Admission {
        /// HTTP status, which a webhook chooses.
        code: u16,
        /// What the server says.
        message: ServerMessage,
        /// How long to wait with this object.
        retry_after: Option<Duration>,
    },
    /// Any other refusal: it lasts until a change.
    Refused {
        /// HTTP status.
        code: u16,
        /// What the server says.
        message: ServerMessage,
    },
    /// No connection, or one that broke.
    Silent(String),
    /// No answer in time. Server, webhook or network: it does not say which is slow.
    TimedOut(String),
    /// The request itself cannot be made.
    Unsendable(String),
    /// An answer that is none of Kubernetes: HTML of a proxy, half a body.
    Unreadable(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &|words| words.to_string())
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// HTTP status for metrics; 0 where there was none.
    pub fn code(&self) -> u16 {
        match self {
            Self::NotFound { .. } => 404,
            Self::Changed(_) => 409,
            Self::Busy { code, .. } | Self::Admission { code, .. } | Self::Refused { code, .. } => *code,
            Self::Silent(_) | Self::TimedOut(_) | Self::Unreadable(_) | Self::Unsendable(_) => 0,
        }
    }

    /// What the server says, alone: for users.
    pub fn words(&self) -> String {
        let said = match self {
            Self::NotFound { message, .. }
            | Self::Busy { message, .. }
            | Self::Admission { message, .. }
            | Self::Refused { message, .. }
            | Self::Changed(message) => message.said(),
            Self::Silent(said) | Self::TimedOut(said) | Self::Unsendable(said) | Self::Unreadable(said) => said,
        };
        match said.trim() {
            "" => format!("HTTP {}, without a word", self.code()),
            said => said.to_owned(),
        }
    }

    /// The whole, with the words of the server: for users.
    pub fn reported(&self) -> impl fmt::Display {
        fmt::from_fn(|f| self.write(f, &|words| words.said().to_owned()))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, of: &dyn Fn(&ServerMessage) -> String) -> fmt::Result {
        match self {
            Self::NotFound { message, .. } => write!(f, "not found: {}", of(message)),
            Self::Changed(message) => write!(f, "it has changed: {}", of(message)),
            Self::Busy { code, message, .. } => write!(f, "the server cannot now ({code}): {}", of(message)),
            Self::Admission { code, message, .. } => write!(f, "refused at admission ({code}): {}", of(message)),
            Self::Refused { code, message } => write!(f, "refused ({code}): {}", of(message)),
            Self::Silent(why) | Self::TimedOut(why) => write!(f, "no answer: {why}"),
            Self::Unsendable(why) => write!(f, "no request can be made of it: {why}"),
            Self::Unreadable(why) => write!(f, "the answer cannot be read: {why}"),
        }
    }

    /// Whether an API server says that this very object is not there. Any other 404, as of a proxy, of a path that is not
    /// served or of a namespace, says nothing about it.
    pub fn is_absence_of(&self, target: &Target) -> bool {
        let Self::NotFound {
            what: Some((plural, name)),
            ..
        } = self
        else {
            return false;
        };
        plural == target.kind.plural && *name == target.name
    }

    /// Whether an API server says that the namespace is not there.
    pub fn misses_namespace(&self, namespace: &str) -> bool {
        let Self::NotFound { what: Some(what), .. } = self else {
            return false;
        };
        *what == (NAMESPACE.plural.to_owned(), namespace.to_owned())
    }

    /// Whether the server may be in trouble, rather than the request: a probe has to say
    /// ([`crate::memory`]).
    pub fn may_be_the_server(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Silent(_) | Self::TimedOut(_) | Self::Unreadable(_)
        )
    }

    /// How long the server itself asks for a pause: it has refused before it looked at the object, so the wish is for
    /// every request.
    pub fn server_rest(&self) -> Option<Duration> {
        match self {
            Self::Busy {
                code: 429 | 503,
                retry_after,
                ..
            } => *retry_after,
            _ => None,
        }
    }

    /// How long to wait with the object of the request.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } | Self::Admission { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// One request that was not done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("failed to {verb} {target}: {refusal}")]
pub struct Failed {
    /// The object.
    pub target: Target,
    /// What was tried.
    pub verb: &'static str,
    /// What the server said.
    pub refusal: Refusal,
}

impl Failed {
    /// Tells refusals apart by what was said: the name of the object and numbers count for nothing.
    pub fn cause(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for part in self.refusal.words().split(&format!("\"{}\"", self.target.name)) {
            let letters = part.bytes().filter(|byte| !byte.is_ascii_digit());
            letters.for_each(|byte| hasher.write_u8(byte));
        }
        hasher.finish()
    }

    /// The server's words as it would say them of an object that was refused likewise.
    pub(crate) fn words_for(&self, target: &Target) -> String {
        if DATA.contains(&target.kind) {
            // A policy may repeat what the object holds, and who reads the condition may not read that.
            return self.refusal.to_string();
        }
        let quoted = |target: &Target| format!("\"{}\"", target.name);
        self.refusal.words().replace(&quoted(&self.target), &quoted(target))
    }

    /// Whether it was refused for a reason that others may share, and that ends without an event.
    pub(crate) fn waits_with_others(&self) -> bool {
        match &self.refusal {
            // Of reads, only a right that is missing is for others, too.
            Refusal::Refused { code, .. } if self.reads() => matches!(code, 401 | 403),
            // An object that is too large is larger than it was, or not.
            Refusal::Refused { code, .. } => !matches!(code, 413 | 500),
            Refusal::Admission { .. } => true,
            Refusal::NotFound { .. } => self.verb == "create",
            _ => false,
        }
    }

    /// Whether nothing was to be changed.
    pub(crate) fn reads(&self) -> bool {
        !matches!(self.verb, "create" | "patch" | "delete")
    }
}

/// Why a plan was not carried out to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ApplyError {
    /// A server did not do what was asked.
    #[error(transparent)]
    Failed(Box<Failed>),
    /// A delete was not sent: a live server does not confirm what it rests on.
    #[error("failed to prove that a delete is right: {0}")]
    Unproven(Unproven),
    /// The server is unreachable, and the next probe is not due yet.
    #[error("failed to reach the {}: it is unreachable", server(.0))]
    Unreachable(Plane, Duration),
    /// The object was refused with a time to wait, or its namespace has accepted none of the kind, as this one says, and the
    /// next attempt is not due yet.
    #[error("not retried yet: {0}")]
    CircuitOpen(Box<Failed>, Duration),
    /// The plane was disengaged meanwhile.
    #[error("failed to reach the {0}: it is not engaged")]
    Disengaged(Plane),
    /// The Lease is lost, or the process is to stop.
    #[error("failed to go on: this process may not write any more")]
    NotAllowed,
}

impl Failed {
    /// The whole, with the words of the server: for users.
    pub fn reported(&self) -> String {
        let Self { target, verb, refusal } = self;
        format!("failed to {verb} {target}: {}", refusal.reported())
    }
}

impl ApplyError {
    pub(crate) fn of(target: &Target, verb: &'static str, refusal: Refusal) -> Self {
        Self::Failed(Box::new(Failed {
            target: target.clone(),
            verb,
            refusal,
        }))
    }

    /// Whether the server answered 404.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Failed(failed) if matches!(failed.refusal, Refusal::NotFound { .. }))
    }

    /// What was refused, where that lasts until a change: the object, a policy, a right. That is for the
    /// user to see; a refusal that ends without a change is not.
    pub fn rejected(&self) -> Option<&Failed> {
        let (Self::Failed(failed) | Self::CircuitOpen(failed, _)) = self else {
            return None;
        };
        let lasts = match failed.refusal {
            Refusal::Admission { .. } | Refusal::Refused { .. } | Refusal::Unsendable(_) => true,
            Refusal::NotFound { .. } => failed.verb == "create",
            _ => false,
        };
        lasts.then_some(failed)
    }

    /// Whether a right is missing.
    pub fn is_forbidden(&self) -> bool {
        let refused = self.rejected().map(|failed| &failed.refusal);
        matches!(refused, Some(Refusal::Refused { code: 403, .. }))
    }

    /// Whether it passes by itself: the server is unreachable or busy, or its plane is not engaged yet.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Failed(failed) => failed.refusal.may_be_the_server(),
            Self::Unreachable(..) | Self::Disengaged(_) => true,
            _ => false,
        }
    }

    /// Whether the object that was to be written is not there.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Failed(failed) if failed.refusal.is_absence_of(&failed.target))
    }

    /// The object to read before deciding again; `None` where that would not help.
    pub fn stale(&self) -> Option<&Target> {
        let Self::Failed(failed) = self else { return None };
        match failed.refusal {
            Refusal::Changed(_) => Some(&failed.target),
            // What is patched was there when the plan was made. What is created has no namespace, or its kind is not served.
            Refusal::NotFound { .. } if failed.verb == "patch" => Some(&failed.target),
            _ => None,
        }
    }

    /// The worse of two, and the other: what ends the process, else what is looked at again the soonest.
    pub(crate) fn or_worse(self, other: Self) -> (Self, Self) {
        if other.urgency() > self.urgency() {
            (other, self)
        } else {
            (self, other)
        }
    }

    fn urgency(&self) -> u8 {
        match self {
            Self::NotAllowed => 5,
            Self::Failed(_) if self.stale().is_some() => 4,
            Self::Failed(failed) if failed.refusal.may_be_the_server() => 3,
            Self::Failed(failed) if matches!(failed.refusal, Refusal::Admission { .. }) => 3,
            Self::Unproven(_) => 3,
            Self::Failed(_) => 2,
            Self::Unreachable(..) | Self::CircuitOpen(..) => 1,
            Self::Disengaged(_) => 0,
        }
    }

    /// What becomes of the key.
    pub fn requeue(&self) -> Requeue {
        match self {
            Self::Unreachable(_, delay) | Self::CircuitOpen(_, delay) => Requeue::Postponed(*delay),
            // Engaging enqueues everything again, and a process that does not hold the Lease ends soon.
            Self::Disengaged(_) | Self::NotAllowed => Requeue::OnEvent,
            Self::Unproven(_) => Requeue::WithBackoff(Backoff::TRANSIENT),
            Self::Failed(failed) if failed.refusal.may_be_the_server() || self.stale().is_some() => {
                Requeue::WithBackoff(Backoff::TRANSIENT)
            }
            Self::Failed(failed) if failed.waits_with_others() => Requeue::WithBackoff(Backoff::ADMISSION),
            // 500 is a refusal only where etcd finds the object too large; 413 is what the server itself takes.
            Self::Failed(failed) if matches!(failed.refusal, Refusal::Refused { code: 413 | 500, .. }) => {
                Requeue::WithBackoff(Backoff::TOO_LARGE)
            }
            Self::Failed(_) => Requeue::WithBackoff(Backoff::REFUSED),
        }
    }
}

/// The server of a plane, for people.
pub(crate) fn server(plane: &Plane) -> impl fmt::Display {
    fmt::from_fn(move |f| match plane {
        Plane::Discovery => f.write_str("discovery server"),
        plane => write!(f, "{plane}"),
    })
}
