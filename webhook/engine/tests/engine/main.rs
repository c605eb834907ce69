//! The engine with real components. Case ids: docs of the project's test plan.

mod calls;
mod clock;
mod dispatch;
mod fixture;
mod loading;
