//! API servers: what we read of them, and what we write.

pub mod karmada;
mod projects;
mod server;

pub use karmada::{Karmada, Written};
pub(crate) use projects::{Projects, no_server};
pub use server::{Answer, PlaneError, Server};
