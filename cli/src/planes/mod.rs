//! The Karmada API server: what we read of it, and the one object that we write.

mod api;
pub mod karmada;

pub use api::{Karmada, PlaneError, Written};
