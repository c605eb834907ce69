//! API servers: what we read of them, and what we write.

mod api;
pub mod karmada;
mod server;

pub(crate) use api::config;
pub use api::{Karmada, PlaneError, Written};
pub use server::{Answer, Server};
