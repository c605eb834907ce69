//! The lines that the supervisor writes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

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
    pub(crate) processes: Vec<ProcessState>,
    pub(crate) kubeconfigs: BTreeMap<String, PathBuf>,
    pub(crate) cert_file: PathBuf,
    pub(crate) key_file: PathBuf,
}

/// One process of the lab.
#[derive(Debug, Deserialize)]
pub(crate) struct ProcessState {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) pid: u32,
    pub(crate) running: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_supervisor() {
        let step = serde_json::from_str(r#"{"event":"step","step":"etcd","seconds":0.4}"#).unwrap();
        assert!(matches!(step, Event::Step { step, .. } if step == "etcd"));
        let done = serde_json::from_str(
            r#"{"event":"done","command":"status","processes":[{"name":"etcd","pid":7,"running":true,"starts":1}]}"#,
        )
        .unwrap();
        assert!(matches!(done, Event::Done(answer) if answer.processes[0].pid == 7));
        let newer = serde_json::from_str(r#"{"event":"weather","sun":true}"#).unwrap();
        assert!(matches!(newer, Event::Other));
    }
}
