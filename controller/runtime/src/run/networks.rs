//! Whether a cell serves the kinds that Instances wait for: what `--networking=auto` goes by, and what Instances report where
//! `--networking=true` asks for kinds that are not served.
//!
//! With `auto`, a cell that has served them once keeps the gates while the process runs: a kind that is lost for a while must
//! not start Instances without their networks. A cell that begins to serve them, or that did not answer at the start and
//! does not serve them, has the process stop, and begin with the other setting.

use std::sync::Arc;
use std::time::Duration;

use kube::{Client, Error};
use popcell_api::kind::{Kind, NETWORK, NETWORK_BINDING};
use tokio::time::{sleep, timeout};
use tracing::{debug, info};

use crate::cell::Cell;
use crate::error::chain;
use crate::flags::Networking;

/// What has to be served.
const KINDS: [Kind; 2] = [NETWORK, NETWORK_BINDING];
/// How long the start waits for the answer. Without one, Instances wait for networks.
const AT_START: Duration = Duration::from_secs(3);
/// How long any other question may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// How often it is asked.
const AGAIN: Duration = Duration::from_secs(30);

/// What the cell's server said of them.
pub(super) struct Networks {
    client: Client,
    mode: Networking,
    /// The last answer; `None` before the first.
    served: Option<bool>,
}

impl Networks {
    /// Asks for the first time.
    pub(super) async fn ask(client: Client, mode: Networking) -> Self {
        let mut networks = Self {
            client,
            mode,
            served: None,
        };
        if mode == Networking::Auto {
            let served = timeout(AT_START, serves(&networks.client)).await;
            networks.served = served.ok().and_then(Result::ok);
        }
        if networks.served == Some(false) {
            info!("Instances do not wait for networks: the cell does not serve Network and NetworkBinding");
        }
        networks
    }

    /// Whether Instances wait for their networks.
    pub(super) fn are_waited_for(&self) -> bool {
        is_on(self.mode, self.served)
    }

    /// Asks again and again, and notes in the cell what is not served; `changed` is called where that is another than before.
    /// Ends when the process has to begin with the other setting.
    pub(super) async fn follow(mut self, cell: Arc<Cell>, changed: impl Fn()) {
        loop {
            match timeout(PATIENCE, serves(&self.client)).await {
                Ok(Ok(served)) => {
                    if must_begin_again(self.mode, self.served, served) {
                        info!(
                            served,
                            "the cell serves Network and NetworkBinding, or not, unlike at the start: stopping to start again"
                        );
                        return;
                    }
                    self.served = Some(served || self.served == Some(true));
                    if cell.networks_are_served(served) {
                        changed();
                    }
                }
                Ok(Err(error)) => debug!(error = chain(&error), "whether networks are served is not known"),
                Err(_) => debug!("whether networks are served is not known: no answer"),
            }
            sleep(AGAIN).await;
        }
    }
}

/// Whether Instances wait for their networks, by the setting and what the cell has said of it.
fn is_on(mode: Networking, served: Option<bool>) -> bool {
    match mode {
        Networking::On => true,
        Networking::Off => false,
        Networking::Auto => served.unwrap_or(true),
    }
}

/// Whether an answer asks for another setting than the one that the process began with.
fn must_begin_again(mode: Networking, before: Option<bool>, served: bool) -> bool {
    // One that has served them keeps its gates.
    mode == Networking::Auto && before != Some(true) && is_on(mode, before) != served
}

/// Whether the server has all of them.
async fn serves(client: &Client) -> Result<bool, Error> {
    match client.list_api_group_resources(&NETWORK.api_version()).await {
        Ok(served) => Ok(KINDS
            .iter()
            .all(|kind| served.resources.iter().any(|one| one.name == kind.plural))),
        Err(Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::service_fn;

    use super::*;

    const MODES: [Networking; 3] = [Networking::Auto, Networking::On, Networking::Off];

    #[test]
    fn only_auto_asks_the_cell_and_an_unknown_cell_has_gates() {
        let on = MODES.map(|mode| [None, Some(true), Some(false)].map(|served| is_on(mode, served)));
        assert_eq!(on, [[true, true, false], [true; 3], [false; 3]]);
    }

    #[test]
    fn gates_that_were_served_once_are_kept_and_the_other_changes_begin_again() {
        for (before, served, expected) in [
            (None, true, false),
            (None, false, true),
            (Some(true), true, false),
            (Some(true), false, false),
            (Some(false), true, true),
            (Some(false), false, false),
        ] {
            let again = MODES.map(|mode| must_begin_again(mode, before, served));
            assert_eq!(again, [expected, false, false], "{before:?} {served}");
        }
    }

    /// A server that answers all with this.
    fn server(code: u16, body: Value) -> Client {
        let answer = service_fn(move |_: Request<Body>| {
            let body = Body::from(body.to_string().into_bytes());
            async move { Response::builder().status(code).body(body) }
        });
        Client::new(answer, "default")
    }

    fn serving(plurals: &[&str]) -> Client {
        let resource =
            |name: &&str| json!({ "name": name, "singularName": "", "namespaced": true, "kind": "K", "verbs": [] });
        let resources: Vec<Value> = plurals.iter().map(resource).collect();
        let version = "networking.datumapis.com/v1alpha";
        server(
            200,
            json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources }),
        )
    }

    #[tokio::test]
    async fn both_kinds_have_to_be_served_and_an_error_is_no_answer() {
        let nothing = server(404, json!("404 page not found"));
        let failing = server(
            503,
            json!({ "kind": "Status", "code": 503, "message": "m", "reason": "r" }),
        );
        for (client, expected) in [
            (serving(&["locations", "networks", "networkbindings"]), Some(true)),
            (serving(&["networkbindings"]), Some(false)),
            (serving(&["networks"]), Some(false)),
            (nothing, Some(false)),
            (failing, None),
        ] {
            assert_eq!(serves(&client).await.ok(), expected);
            let networks = Networks::ask(client, Networking::Auto).await;
            assert_eq!(networks.are_waited_for(), expected.unwrap_or(true));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_served_is_noted_once_and_an_end_only_comes_for_the_other_setting() {
        let (cell, calls) = (Arc::new(Cell::default()), AtomicUsize::new(0));
        let changed = || {
            calls.fetch_add(1, Ordering::Relaxed);
        };
        let on = Networks::ask(serving(&[]), Networking::On).await;
        let long = timeout(10 * AGAIN, on.follow(Arc::clone(&cell), &changed)).await;
        assert!(long.is_err() && cell.lacks_networks());
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        let served = Networks::ask(serving(&["networks", "networkbindings"]), Networking::Auto).await;
        let long = timeout(10 * AGAIN, served.follow(Arc::clone(&cell), &changed)).await;
        assert!(long.is_err() && !cell.lacks_networks());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        let mut late = Networks::ask(serving(&["networks", "networkbindings"]), Networking::Auto).await;
        late.served = Some(false);
        late.follow(cell, &changed).await;
    }
}
