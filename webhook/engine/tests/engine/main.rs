//! The engine with real components.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where it fails"
)]

mod calls;
mod clock;
mod dispatch;
mod fixture;
mod isolation;
mod loading;
