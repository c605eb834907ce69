//! What answers: the engine, or in tests something simpler.

use std::future::Future;
use std::time::Instant;

use popcell_engine::{Dispatcher, Outcome};
use popcell_protocol::Request;

/// Answers requests.
pub trait Interpret: Send + Sync + 'static {
    /// Answers by `deadline`, whatever happens. Dropping the future gives the call up.
    fn interpret(&self, request: &Request<'_>, deadline: Instant) -> impl Future<Output = Outcome> + Send;
}

impl Interpret for Dispatcher {
    fn interpret(&self, request: &Request<'_>, deadline: Instant) -> impl Future<Output = Outcome> + Send {
        Dispatcher::interpret(self, request, deadline)
    }
}
