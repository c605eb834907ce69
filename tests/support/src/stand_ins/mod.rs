//! Stand-ins for what is outside the project: their kinds, and small controllers that do on a real API server what popcell
//! expects of them.
//!
//! Each controller runs in the process that starts it, on the client that it is given, and ends when its value is dropped.
//! It watches the whole server, so a server has one of each. What goes wrong goes wrong by an annotation, [`FAIL`].

use anyhow::Result;
use popcell_api::kind::{self, Kind};
use serde_json::Value;

use crate::kind::{
    GRANT_CREATION_POLICY, IAM_ROLE, PROTECTED_RESOURCE, RESOURCE_GRANT, RESOURCE_REGISTRATION, SERVICE_CONFIGURATION,
};
use crate::workspace;

mod draft;
mod networks;
mod provider;
mod quota;

pub use networks::Networks;
pub use provider::{Failure, Pace, Provider};
pub use quota::{Amounts, Audit, Budget, Quota};

/// Annotation that makes a stand-in fail at an object: names of failures, with commas between them. Those of the provider
/// are in [`Failure`]; template annotations reach Instances, so a Workload can bring its own misfortune.
pub const FAIL: &str = "standin.test/fail";
/// Annotation on an Instance: the seconds that it takes to start, instead of the provider's own.
pub const START_SECONDS: &str = "standin.test/start-seconds";
/// Annotation on an Instance: the seconds that it takes to tear it down, instead of the provider's own.
pub const TEARDOWN_SECONDS: &str = "standin.test/teardown-seconds";

/// All kinds that have a stand-in.
pub const ALL: [Kind; 15] = [
    kind::LOCATION,
    kind::LOCATION_BINDING,
    kind::NETWORK,
    kind::NETWORK_BINDING,
    kind::NETWORK_CONTEXT,
    kind::SUBNET_CLAIM,
    kind::SUBNET,
    kind::RESOURCE_CLAIM,
    RESOURCE_GRANT,
    kind::PROJECT,
    GRANT_CREATION_POLICY,
    RESOURCE_REGISTRATION,
    SERVICE_CONFIGURATION,
    PROTECTED_RESOURCE,
    IAM_ROLE,
];

/// Those that a cell serves beside ours.
pub const IN_CELLS: [Kind; 6] = [
    kind::LOCATION,
    kind::NETWORK,
    kind::NETWORK_BINDING,
    kind::NETWORK_CONTEXT,
    kind::SUBNET_CLAIM,
    kind::SUBNET,
];

/// Those that a hub serves beside ours and Karmada's.
pub const ON_HUB: [Kind; 1] = [kind::NETWORK];

/// Those that a project serves beside ours.
pub const IN_PROJECTS: [Kind; 4] = [
    kind::NETWORK,
    kind::LOCATION_BINDING,
    kind::RESOURCE_CLAIM,
    RESOURCE_GRANT,
];

/// The CRD of a kind of another owner that the lab does not serve for real: the networking groups, and those of milo. Where servers differ in the scope of a kind it is cluster-scoped, as in the newest release.
pub fn crd(kind: &Kind) -> Result<Value> {
    workspace::yaml(&workspace::stand_in_crds_dir().join(format!("{}_{}.yaml", kind.group, kind.plural)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_the_crd_of_a_kind_that_we_know() {
        for kind in ALL {
            let crd = crd(&kind).unwrap();
            assert_eq!(crd["metadata"]["name"], format!("{}.{}", kind.plural, kind.group));
            assert_eq!(crd["spec"]["group"], kind.group);
            assert_eq!(crd["spec"]["names"]["kind"], kind.kind);
            assert_eq!(crd["spec"]["names"]["plural"], kind.plural);
            assert_eq!(crd["spec"]["versions"][0]["name"], kind.version);
            let scope = &crd["spec"]["scope"];
            let namespaced = kind.scope == kind::Scope::Namespaced;
            assert_eq!(scope, if namespaced { "Namespaced" } else { "Cluster" });
        }
        assert_eq!(
            std::fs::read_dir(workspace::stand_in_crds_dir()).unwrap().count(),
            ALL.len()
        );
    }
}
