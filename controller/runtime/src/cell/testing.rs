//! A cell as tests want it.

use super::*;
use crate::planes::testing::CLUSTER;

/// A cell with quota and a hub; `single`: the one project of its only server, and no hub.
pub(crate) fn cell(single: Option<&str>) -> Cell {
    let cell = Cell {
        cluster: CLUSTER.to_owned(),
        hub: single.is_none(),
        quota: true,
        single: single.map(str::to_owned),
        networking: false,
        namespace: "compute-system".to_owned(),
        no_budget_grace: NO_BUDGET_GRACE,
        ..Cell::default()
    };
    cell.id.set("cell-uid".to_owned()).unwrap();
    cell
}
