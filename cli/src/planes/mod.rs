//! API servers: what we read of them, and what we write.

mod api;
pub mod karmada;
mod place;
mod projects;
mod server;

pub(crate) use api::config;
pub use api::{Karmada, PlaneError, Written};
pub(crate) use projects::{Projects, no_server};
pub use server::{Answer, Server};
