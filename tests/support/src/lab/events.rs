//! The lines that the supervisor writes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::Deserialize;

use super::supervisor::death;

/// One line.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Event {
    /// Progress while starting.
    Step { step: String, seconds: f64 },
    /// The lab serves.
    Ready(Box<Ready>),
    /// The lab cannot start, or a program ended by itself.
    Failed {
        #[serde(default)]
        process: String,
        message: String,
        #[serde(default)]
        log: String,
    },
    /// A command was carried out.
    Done(Box<Answer>),
    /// A command was not carried out.
    Error { message: String },
    /// Written by a newer supervisor.
    #[serde(other)]
    Other,
}

impl Event {
    /// What there is, once the lab serves; `progress` is told what happens before.
    pub(super) fn while_starting(self, progress: &mut dyn FnMut(&str)) -> Result<Option<Ready>> {
        match self {
            Self::Step { step, seconds } => progress(&format!("{seconds:5.1} s {step}")),
            Self::Ready(ready) => return Ok(Some(*ready)),
            Self::Failed { process, message, log } => {
                bail!("failed to start the lab: {}", death(&process, &message, &log))
            }
            Self::Error { message } => bail!("failed to start the lab: {message}"),
            Self::Done(_) | Self::Other => {}
        }
        Ok(None)
    }
}

/// What there is when the lab serves.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Ready {
    pub(crate) address: String,
    pub(crate) dir: PathBuf,
    pub(crate) bin: PathBuf,
    pub(crate) hub: Option<PlaneInfo>,
    #[serde(default)]
    pub(crate) members: BTreeMap<String, PlaneInfo>,
    #[serde(default)]
    pub(crate) planes: BTreeMap<String, PlaneInfo>,
    pub(crate) ca_file: PathBuf,
    pub(crate) front_proxy: FrontProxy,
    #[serde(default)]
    pub(crate) pids: BTreeMap<String, u32>,
    #[serde(default)]
    pub(crate) supervisor_pid: u32,
    pub(crate) seconds: f64,
}

impl Ready {
    /// The planes by name, the hub first.
    pub(crate) fn all_planes(&self) -> impl Iterator<Item = (&str, &PlaneInfo)> {
        let hub = self.hub.iter().map(|hub| ("hub", hub));
        hub.chain(
            self.members
                .iter()
                .chain(&self.planes)
                .map(|(name, info)| (name.as_str(), info)),
        )
    }
}

/// The certificate of the front proxy that every API server trusts.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FrontProxy {
    pub(crate) cert_file: PathBuf,
    pub(crate) key_file: PathBuf,
}

/// Where a plane serves.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PlaneInfo {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) mode: String,
}

/// What a command answered; most fill nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Answer {
    pub(crate) kubeconfigs: BTreeMap<String, PathBuf>,
    pub(crate) cert_file: PathBuf,
    pub(crate) key_file: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_supervisor() {
        let step = serde_json::from_str(r#"{"event":"step","step":"etcd","seconds":0.4}"#).unwrap();
        assert!(matches!(step, Event::Step { step, .. } if step == "etcd"));
        let done = serde_json::from_str(
            r#"{"event":"done","command":"server-certificate","cert_file":"a.crt","key_file":"a.key"}"#,
        )
        .unwrap();
        assert!(matches!(done, Event::Done(answer) if answer.key_file.as_os_str() == "a.key"));
        let newer = serde_json::from_str(r#"{"event":"weather","sun":true}"#).unwrap();
        assert!(matches!(newer, Event::Other));
    }
}
