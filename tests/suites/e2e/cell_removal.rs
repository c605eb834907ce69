//! `popcell cell remove` on a real hub. That claims and copies of a removed cell go is in the suite of the cell.

use anyhow::{Result, ensure};
use popcell_api::names::REMOVED_CELLS;
use popcell_suites::steps::{Ran, awaited, gone, ran};
use popcell_suites::world::{DFW, World};
use popcell_test_support::kind::{CLUSTER, CONFIG_MAP};
use popcell_test_support::{artifacts, objects};
use serde_json::json;

const NAME: &str = "removed-01";
const ID: &str = "5f7c0a52-0000-4000-8000-0000000000c1";

fn remove(world: &World, namespace: &str, name: &str) -> Result<Ran> {
    let kubeconfig = format!("--kubeconfig={}", world.lab.kubeconfig("hub")?.display());
    ran(artifacts::popcell()?.args(["cell", "remove", "--namespace", namespace, &kubeconfig, name]))
}

/// A cell that does not answer is recorded and its Cluster deleted; one that does is refused.
pub(crate) async fn removed(world: &World, namespace: &str) -> Result<()> {
    let hub = world.lab.hub().await?;
    hub.apply(&objects::namespace(namespace)).await?;

    let Ran { code, out, err } = remove(world, namespace, DFW)?;
    ensure!(code == Some(1) && err.contains("is Ready"), "{code:?}: {out}{err}");
    let ready = hub.expect(CLUSTER, None, DFW).await?;
    ensure!(ready.metadata.deletion_timestamp.is_none(), "it is being deleted");
    let record = hub.get(CONFIG_MAP, Some(namespace), REMOVED_CELLS).await?;
    ensure!(record.is_none(), "it is recorded");

    // Nobody is there. In Pull mode Karmada would wait for an agent before it lets the Cluster go.
    hub.apply(&json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": { "name": NAME },
        "spec": { "id": ID, "syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1" },
    }))
    .await?;
    let Ran { code, out, err } = remove(world, namespace, NAME)?;
    ensure!(
        code == Some(0) && out.contains("Cluster removed-01: deleted"),
        "{code:?}: {out}{err}"
    );
    gone(&hub, CLUSTER, "", NAME).await?;
    let key = format!("{NAME}_{ID}");
    let since = awaited(&hub, CONFIG_MAP, namespace, REMOVED_CELLS, |record| {
        ensure!(record.data["data"][&key].is_string(), "{}", record.data);
        Ok(())
    })
    .await?;

    let Ran { code, out, err } = remove(world, namespace, NAME)?;
    ensure!(
        code == Some(0) && out.contains("recorded before"),
        "{code:?}: {out}{err}"
    );
    let after = hub.expect(CONFIG_MAP, Some(namespace), REMOVED_CELLS).await?;
    ensure!(after.data == since.data, "{} is not {}", after.data, since.data);
    Ok(())
}
