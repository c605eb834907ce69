//! Asking servers, and what their silence means for the next question.

use kube::Client;
use popcell_api::kind::{Kind, PROJECT};
use popcell_client::{serves_group, serves_resource};
use popcell_core::object::{Fields, List, Listed, Object};
use popcell_core::plan::{Plane, Target};
use serde_json::Value;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::doors::{Access, Attempt, Place};
use super::error::{ApplyError, Refusal};
use super::request::{LIST, OBJECT};
use super::{Applier, ProjectAnswer, Spot, lock, request};
use crate::breaker::{PROBE, Permit, Server};

impl Applier {
    /// Servers whose circuit is open, for metrics.
    pub fn open_circuits(&self) -> usize {
        lock(&self.breaker).open()
    }

    /// The client of a plane, unless its circuit is open. Who may not write need not ask either: what passes read is read
    /// for a write.
    pub(super) async fn client(&self, plane: &Plane) -> Result<Client, ApplyError> {
        self.may_go_on()?;
        self.client_of(plane).await
    }

    /// Whether an object of the kind may be tried in the namespace now: for a pass that would read something else before.
    ///
    /// # Errors
    /// The server is away, or has lately taken none there, and the next probe is not due yet.
    pub fn may_create(&self, target: &Target) -> Result<(), ApplyError> {
        let (now, server) = (Instant::now(), Server::Of(target.plane.clone()));
        if let Some(delay) = lock(&self.breaker).wait(&server, now) {
            return Err(ApplyError::Away(server, delay));
        }
        let attempt = Attempt {
            place: &Place::of(target, Access::Create),
            name: &target.name,
            sent: None,
        };
        match lock(&self.doors).wait(attempt, now) {
            Some((like, delay)) => Err(ApplyError::Shut(Box::new(like), delay)),
            None => Ok(()),
        }
    }

    fn may_go_on(&self) -> Result<(), ApplyError> {
        if (self.options.may_write)() {
            Ok(())
        } else {
            Err(ApplyError::NotAllowed)
        }
    }

    async fn client_of(&self, plane: &Plane) -> Result<Client, ApplyError> {
        self.may_ask(&Server::Of(plane.clone())).await?;
        let engaged = self.planes.get(plane);
        engaged
            .map(|engaged| engaged.client().clone())
            .ok_or_else(|| ApplyError::Disengaged(plane.clone()))
    }

    async fn may_ask(&self, server: &Server) -> Result<(), ApplyError> {
        let permit = lock(&self.breaker).ask(server, Instant::now());
        match permit {
            Permit::Go => Ok(()),
            Permit::Probe => {
                self.probe(server).await;
                match lock(&self.breaker).wait(server, Instant::now()) {
                    None => Ok(()),
                    Some(delay) => Err(ApplyError::Away(server.clone(), delay)),
                }
            }
            Permit::Wait(delay) => Err(ApplyError::Away(server.clone(), delay)),
        }
    }

    /// Reports to the breaker what a server answered, and probes it where that leaves a doubt.
    pub(super) async fn settle<T>(&self, server: &Server, answer: Result<T, Refusal>) -> Result<T, Refusal> {
        if self.doubts(server, answer.as_ref().err()) {
            self.probe(server).await;
        }
        answer
    }

    fn doubts(&self, server: &Server, refusal: Option<&Refusal>) -> bool {
        let (mut breaker, now) = (lock(&self.breaker), Instant::now());
        match refusal {
            // A request may outlive its plane, whose circuit nobody would take away any more. Under the lock: a plane is
            // retired after it has left.
            Some(refusal) if refusal.may_be_the_server() => {
                self.is_there(server) && breaker.failed(server, refusal.server_rest(), now)
            }
            _ => {
                breaker.answered(server, now);
                false
            }
        }
    }

    /// Asks a server for something that no object and no webhook can spoil: this alone opens and closes its circuit.
    async fn probe(&self, server: &Server) {
        let target = match server {
            Server::Of(plane) => self.planes.get(plane).map(|engaged| {
                let kind = engaged.stores().next().map(|(kind, _)| kind);
                (engaged.client().clone(), kind)
            }),
            Server::Discovery => {
                let discovery = self.options.discovery.as_ref();
                discovery.map(|(client, kind)| (client.clone(), Some(*kind)))
            }
        };
        let Some((client, kind)) = target else { return };
        let answer = match request::probe(kind) {
            Ok(request) => request::send(&client, request, OBJECT).await,
            Err(refusal) => Err(refusal),
        };
        let refusal = answer.err().filter(Refusal::may_be_the_server);
        let (mut breaker, now) = (lock(&self.breaker), Instant::now());
        if !self.is_there(server) {
            return;
        }
        if let Some(rest) = refusal.as_ref().and_then(Refusal::server_rest) {
            breaker.failed(server, Some(rest), now);
        }
        if breaker.probed(server, refusal.is_none(), now) {
            if let Some(refusal) = refusal {
                let seconds = PROBE.as_secs();
                warn!(%server, %refusal, "circuit breaker opened: the server is unreachable, probed every {seconds} s");
            } else {
                info!(%server, "circuit breaker closed: the server is reachable");
            }
        }
    }

    fn is_there(&self, server: &Server) -> bool {
        match server {
            Server::Of(plane) => self.planes.get(plane).is_some(),
            Server::Discovery => true,
        }
    }

    /// An object as it is now; `None` = NotFound.
    ///
    /// # Errors
    /// The server is away, or refuses.
    pub async fn read(&self, target: &Target) -> Result<Option<Object>, ApplyError> {
        let client = self.client(&target.plane).await?;
        self.read_with(&client, &Server::Of(target.plane.clone()), target).await
    }

    /// The same where it is not for a pass: a replica that does not lead may ask too.
    ///
    /// # Errors
    /// The server is away, or refuses.
    pub async fn look(&self, target: &Target) -> Result<Option<Object>, ApplyError> {
        let client = self.client_of(&target.plane).await?;
        self.read_with(&client, &Server::Of(target.plane.clone()), target).await
    }

    async fn read_with(&self, client: &Client, server: &Server, target: &Target) -> Result<Option<Object>, ApplyError> {
        self.tried(server, target, Access::Get, async {
            let request = request::get(target).map_err(|refusal| ApplyError::of(target, "get", refusal))?;
            let answer = request::send(client, request, OBJECT).await;
            match self.settle(server, answer).await {
                Ok(text) => match Object::read(text.get()) {
                    Ok(object) => Ok(Some(object)),
                    Err(error) => Err(ApplyError::of(target, "get", Refusal::Unreadable(error.to_string()))),
                },
                Err(refusal) if refusal.is_absence_of(target) => Ok(None),
                Err(refusal) => Err(ApplyError::of(target, "get", refusal)),
            }
        })
        .await
    }

    /// A read, unless it was refused lately and the next attempt is not due yet.
    async fn tried<T>(
        &self,
        server: &Server,
        target: &Target,
        access: Access,
        read: impl Future<Output = Result<T, ApplyError>>,
    ) -> Result<T, ApplyError> {
        let attempt = Attempt {
            place: &Place::at(server, target, access),
            name: &target.name,
            sent: Some(0),
        };
        if let Some((like, delay)) = lock(&self.doors).ask(attempt, Instant::now()) {
            return Err(ApplyError::Shut(Box::new(like), delay));
        }
        let answer = read.await;
        if lock(&self.doors).answered(attempt, &answer, Instant::now()) {
            lock(&self.opened).push(Spot::at(target, access.verb()));
        }
        answer
    }

    /// Objects of a kind by label, read live. `namespace` `None` = all. One that cannot be read is its own trouble only, and
    /// is there.
    ///
    /// # Errors
    /// The server is away, or refuses; [`ApplyError::is_not_found`] where it does not serve the kind.
    pub async fn list(
        &self,
        plane: &Plane,
        kind: Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Listed, ApplyError> {
        let target = Target {
            plane: plane.clone(),
            kind,
            namespace: namespace.map(str::to_owned),
            name: String::new(),
        };
        let client = self.client(plane).await?;
        let server = Server::Of(plane.clone());
        let asked = async {
            let request =
                request::list(&target, selector).map_err(|refusal| ApplyError::of(&target, "list", refusal))?;
            let answer = self.settle(&server, request::send(&client, request, LIST).await).await;
            answer.map_err(|refusal| ApplyError::of(&target, "list", refusal))
        };
        let list = self.tried(&server, &target, Access::List, asked).await?;
        let unreadable = |why: String| ApplyError::of(&target, "list", Refusal::Unreadable(why));
        let list: List = serde_json::from_str(list.get()).map_err(|_| unreadable("it is no list".to_owned()))?;
        let listed = Listed::from(list);
        for one in &listed.unreadable {
            debug!(%plane, kind = kind.kind, namespace = one.namespace, name = one.name, why = one.why, "an object of a list cannot be read");
        }
        Ok(listed)
    }

    /// Whether a plane serves a kind of a named group, after a request for it was answered 404: an API server says that it
    /// does not. A gateway that has no such project answers so too, and says nothing about claims in it.
    ///
    /// # Errors
    /// The server is away, or refuses, or is none.
    pub async fn serves(&self, plane: &Plane, kind: Kind) -> Result<bool, ApplyError> {
        match self.discover(plane, kind, Some((kind.group, kind.version))).await {
            Ok(served) => Ok(serves_resource(&served, kind)),
            Err(error) if error.is_not_found() => {
                let groups = self.discover(plane, kind, None).await?;
                if serves_group(&groups, kind) {
                    return Err(error);
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn discover(&self, plane: &Plane, kind: Kind, of: Option<(&str, &str)>) -> Result<Value, ApplyError> {
        let target = Target::cluster(plane, kind, "");
        let client = self.client(plane).await?;
        let request = request::discover(of).map_err(|refusal| ApplyError::of(&target, "discover", refusal))?;
        let answer = request::send(&client, request, OBJECT).await;
        let answer = self.settle(&Server::Of(plane.clone()), answer).await;
        let answer = answer.map_err(|refusal| ApplyError::of(&target, "discover", refusal))?;
        serde_json::from_str(answer.get()).map_err(|_| {
            let why = "it is no answer to a discovery".to_owned();
            ApplyError::of(&target, "discover", Refusal::Unreadable(why))
        })
    }

    /// Asks the discovery server, live, whether there is such a Project.
    ///
    /// # Errors
    /// The server is away, or refuses.
    pub async fn project(&self, project: &str) -> Result<ProjectAnswer, ApplyError> {
        let Some((client, kind)) = &self.options.discovery else {
            return Ok(ProjectAnswer::Unasked);
        };
        let mut target = Target::cluster(&Plane::Project(project.to_owned()), PROJECT, project);
        target.kind = *kind;
        self.may_go_on()?;
        self.may_ask(&Server::Discovery).await?;
        let found = self.read_with(client, &Server::Discovery, &target).await?;
        Ok(found.map_or(ProjectAnswer::Gone, |found| ProjectAnswer::Is(found.uid().to_owned())))
    }
}
