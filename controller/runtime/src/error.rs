//! What can go wrong between a plane and us.

use kube::core::Status;
use thiserror::Error;

use crate::planes::Broken;

/// Everything that planes answer instead of what was asked.
#[derive(Debug, Error)]
pub enum Error {
    /// The server refused or broke a list or watch.
    #[error("failed to watch {kind}")]
    Watch {
        /// The kind.
        kind: &'static str,
        /// Why.
        source: Broken,
    },
    /// The server took a list and does not answer.
    #[error("failed to list {kind}: no answer for {seconds} s")]
    Silent {
        /// The kind.
        kind: &'static str,
        /// How long.
        seconds: u64,
    },
    /// Nothing is wrong: the token was refused and is another now.
    #[error("failed to go on watching {kind} with a token that was replaced")]
    Renewed {
        /// The kind.
        kind: &'static str,
    },
    /// Nothing is wrong with the server: the watch has not brought what a list has.
    #[error("failed to go on watching {kind}: an event was lost")]
    Lost {
        /// The kind.
        kind: &'static str,
    },
    /// Nothing is wrong with the server: some objects were kept in part only, and there may be room for them now.
    #[error("failed to keep all {kind}: they are listed again")]
    Again {
        /// The kind.
        kind: &'static str,
    },
    /// The watch is open, and delivers no event for a write of this process.
    #[error("failed to watch {kind}: no event arrives for a write of this process")]
    Behind {
        /// The kind.
        kind: &'static str,
    },
}

/// An error with its causes in one line, as a log may have it: of what a server says its reason.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.filter_map(brief).collect::<Vec<_>>().join(": ")
}

/// Nothing of an error that repeats its cause, which is a Status.
fn brief(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let boxed = || error.downcast_ref::<Box<Status>>().map(|status| &**status);
    if let Some(status) = error.downcast_ref::<Status>().or_else(boxed) {
        return Some(format!("{} ({})", crate::refusal::brief(status), status.code));
    }
    let repeats = match error.downcast_ref() {
        Some(Broken::Server(kube)) => Some(&**kube),
        _ => error
            .downcast_ref::<kube::Error>()
            .or_else(|| error.downcast_ref::<Box<kube::Error>>().map(|kube| &**kube)),
    };
    (!matches!(repeats, Some(kube::Error::Api(_)))).then(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_to_a_watch_is_reported_by_its_reason() {
        let refused = || {
            let status = Status::failure("Invalid value: \"s3cret\"\nFORGED", "Expired").with_code(410);
            kube::Error::Api(Box::new(status))
        };
        let watch = Error::Watch {
            kind: "Workload",
            source: refused().into(),
        };
        assert_eq!(chain(&watch), "failed to watch Workload: Expired (410)");
        let client = popcell_client::ConnectError::Client {
            plane: popcell_core::plan::Plane::Hub,
            source: Box::new(refused()),
        };
        assert_eq!(chain(&client), "failed to make a client for the hub: Expired (410)");
        assert_eq!(chain(&refused()), "Expired (410)");
    }
}
