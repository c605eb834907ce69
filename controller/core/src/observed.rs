//! What is known of another plane: a reconcile waits for its own plane only.
//!
//! Why: `docs/decisions/19-planes-and-stores.md`.

/// State of a remote plane.
///
/// Unknown is not empty: while a plane is unknown, nothing of it is deleted, and local work goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Observed<T> {
    /// The store of the plane was fully listed since its last reconnect, and this is in it.
    Known(T),
    /// The plane is unreachable, or was not fully listed yet.
    #[default]
    Unknown,
}

impl<T> Observed<T> {
    /// The state, where it is known.
    pub fn known(self) -> Option<T> {
        match self {
            Self::Known(state) => Some(state),
            Self::Unknown => None,
        }
    }

    /// The same about a reference.
    pub const fn as_ref(&self) -> Observed<&T> {
        match self {
            Self::Known(state) => Observed::Known(state),
            Self::Unknown => Observed::Unknown,
        }
    }

    /// Another view of the state.
    pub fn map<U>(self, view: impl FnOnce(T) -> U) -> Observed<U> {
        match self {
            Self::Known(state) => Observed::Known(view(state)),
            Self::Unknown => Observed::Unknown,
        }
    }
}
