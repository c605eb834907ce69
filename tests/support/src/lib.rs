//! Starts real control planes and our own programs for tests, and waits for conditions on them.
//!
//! Nothing here outlives the process that started it: every child holds a pipe that closes with us.
#![forbid(unsafe_code)]

mod address;
pub mod artifacts;
pub mod controller;
pub mod definitions;
mod eventually;
mod faults;
mod gateway;
mod guarded;
pub mod kind;
pub mod kubeconfig;
pub mod lab;
pub mod manifests;
mod nodes;
pub mod objects;
mod plane;
pub mod pod;
pub mod probe;
pub mod process;
mod provider;
mod running;
pub mod stand_ins;
pub mod users;
pub mod webhook;
pub mod workspace;

pub use controller::{Controller, ControllerSpec};
pub use eventually::{always, eventually};
pub use faults::{Answer, Asked, Fault, FaultProxy, Injected};
pub use gateway::Gateway;
pub use guarded::Guarded;
pub use kind::Kind;
pub use lab::{Lab, LabSpec, Member};
pub use nodes::{Nodes, images, missing_for_containers};
pub use plane::Plane;
pub use provider::{PodProvider, PodProviderSpec};
pub use running::{Place, Program, Running};
pub use webhook::{Webhook, WebhookSpec};
