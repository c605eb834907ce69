//! A cell that one test runs and ends, in a member of the environment that carries no city until the test gives it one.

use std::path::PathBuf;

use anyhow::{Context, Result};
use popcell_suites::definitions::cell;
use popcell_suites::read;
use popcell_test_support::kind::NAMESPACE;
use popcell_test_support::stand_ins::{Networks, Pace, Provider};
use popcell_test_support::{
    Asked, Controller, ControllerSpec, Fault, FaultProxy, Injected, Lab, Plane, manifests, users,
};
use tempfile::TempDir;

use crate::environment::{Environment, refused_nothing, to_hub};

/// The city of spare cells, which no other client serves.
pub(crate) const CITY: &str = "LHR";

pub(crate) struct Spare {
    pub(crate) name: &'static str,
    /// Uid of its kube-system.
    pub(crate) uid: String,
    pub(crate) plane: Plane,
    pub(crate) controller: Controller,
    /// Between its controller and its own server.
    to_home: FaultProxy,
    /// While its server is unreachable.
    away: Option<Injected>,
    /// Between its controller and the hub, and between it and projects: nothing else passes here.
    to_others: [FaultProxy; 2],
    // Held: they end with their values.
    _stand_ins: (Provider, Networks),
    _files: TempDir,
}

impl Spare {
    /// Runs the controller of the member, which says that its Cluster is `cluster` and is that one's user on the hub and in
    /// projects, and what else a cell of the city has.
    pub(crate) async fn start(environment: &Environment, name: &'static str, cluster: &str) -> Result<Self> {
        let (lab, plane) = (&environment.lab, environment.lab.plane(name).await?);
        cell(&plane, CITY).await?;
        let stand_ins = (
            Provider::start(plane.client(), Pace::INSTANT),
            Networks::start(plane.client()),
        );
        let files = tempfile::tempdir().context("failed to make a directory")?;
        let milo = environment
            .gateway
            .kubeconfig(files.path(), Some(&users::cell(cluster)))?;
        let to_others = [to_hub(lab, cluster).await?, FaultProxy::start(&milo).await?];
        let to_home = FaultProxy::start(&users::at_home(lab, name, manifests::CELL, files.path()).await?).await?;
        let [home, hub, milo]: [PathBuf; 3] = [
            to_home.kubeconfig(files.path(), "home")?,
            to_others[0].kubeconfig(files.path(), "hub")?,
            to_others[1].kubeconfig(files.path(), "projects")?,
        ];
        let controller = Controller::start(ControllerSpec::cell(&home, cluster, &hub, &milo)).await?;
        let uid = read::uid(&plane.expect(NAMESPACE, None, "kube-system").await?);
        Ok(Self {
            name,
            uid,
            plane,
            controller,
            to_home,
            away: None,
            to_others,
            _stand_ins: stand_ins,
            _files: files,
        })
    }

    /// Ends its server without warning; its controller is left to see how hub and projects go on.
    pub(crate) async fn dies(&mut self, lab: &Lab) -> Result<()> {
        self.away = Some(self.to_home.inject(Fault::HungUp, |_| true));
        let [server, manager] = self.processes();
        lab.kill(&manager).await?;
        lab.kill(&server).await
    }

    /// Starts its server. One that starts knows no rights for a moment and refuses everything: the controller finds it when
    /// it serves.
    pub(crate) async fn comes_back(&mut self, lab: &Lab) -> Result<()> {
        for process in self.processes() {
            lab.start_process(&process).await?;
        }
        self.away = None;
        Ok(())
    }

    fn processes(&self) -> [String; 2] {
        ["kube-apiserver", "kube-controller-manager"].map(|name| format!("{name}-{}", self.name))
    }

    /// How often it has asked the hub or a project for a change, in whatever way it was answered.
    pub(crate) fn writes(&self) -> u64 {
        self.to_others.iter().map(|way| way.count(Asked::writes)).sum()
    }

    /// How many lines of its log contain this text.
    pub(crate) fn tells(&self, text: &str) -> usize {
        self.controller.log().lines().filter(|line| line.contains(text)).count()
    }

    /// What a failure should show of it.
    pub(crate) fn last_words(&self) -> String {
        format!("cell {} wrote:\n{}", self.name, self.controller.last_words())
    }

    /// Ends it well, if it was a good one.
    pub(crate) fn end(mut self) -> Result<()> {
        refused_nothing(&self.controller)?;
        self.controller.end()
    }
}
