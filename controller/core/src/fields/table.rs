//! The rows: what popcell does with each field.
//!
//! A path has `[]` behind a list, and `*` for every key of a map that has no row of its own. A row that refuses or warns, and
//! one of a status, is for all fields below it too; what is done is said for each field.

use popcell_api::kind::{self, Kind};

/// Who does what a field asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The reconciler `workload`, in the project.
    Workload,
    /// The reconcilers `federation` and `policy`, on the hub.
    Federation,
    /// The reconciler `data-copy`, on the hub.
    Data,
    /// The reconciler `deployment`, in the cell.
    Deployment,
    /// The reconciler `instance-claim`, in the cell.
    Claim,
    /// The provider of the cell, which reads the Instance.
    Provider,
    /// A provider of virtual machines.
    MachineProvider,
}

impl Actor {
    /// As docs name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Workload => "`workload`",
            Self::Federation => "`federation` and `policy`",
            Self::Data => "`data-copy`",
            Self::Deployment => "`deployment`",
            Self::Claim => "`instance-claim`",
            Self::Provider => "the provider",
            Self::MachineProvider => "a provider of virtual machines",
        }
    }
}

/// What popcell does with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// What it asks for is done: by this actor, and what that is.
    Done(Actor, &'static str),
    /// Admission refuses it.
    Refused(&'static str),
    /// It is accepted, and not done or not whole: admission warns with this text.
    Warned(&'static str),
    /// A field of a status: who writes it.
    Written(&'static str),
}

use Actor::{Claim, Data, Deployment, Federation, MachineProvider, Provider, Workload};
use Handling::{Done, Refused, Warned, Written};

type Row = (&'static str, Handling);

/// Why an amount is refused.
pub(crate) const NO_AMOUNTS: &str = "not implemented: remove it, since the instance type is the size of the Instance";
/// Why a choice of keys is refused.
pub(crate) const NO_ITEMS: &str = "not implemented: remove it, and name the keys as the files are to be named";
const OF_THE_CELL: &str = "the cell sets it on each Instance, whatever it is here: remove it";
const TO_AUTOSCALER: &str =
    "the HorizontalPodAutoscaler of the cell, which asks for Instances between minReplicas and maxReplicas";
const NO_SUM: &str = "an autoscaler takes no sum: use averageValue or averageUtilization";
const CONFIG_MAP: &str = "of the Workload's namespace, carried to its cities; a change rolls nothing";
const SECRET: &str = "of the Workload's namespace, carried to its cities; a change rolls nothing";
const ON_INSTANCES: &str = "each Instance gets it; a change rolls the Instances";

const TEMPLATE: &[Row] = &[
    ("metadata.annotations.*", Done(Deployment, ON_INSTANCES)),
    ("metadata.labels.*", Done(Deployment, ON_INSTANCES)),
    ("spec.controller", Warned(OF_THE_CELL)),
    ("spec.location", Warned(OF_THE_CELL)),
    (
        "spec.networkInterfaces[].network.name",
        Done(Deployment, "a NetworkBinding for each interface"),
    ),
    (
        "spec.networkInterfaces[].network.namespace",
        Done(
            Deployment,
            "where the Network is: the namespace of the object; one of another is not carried to cities (NetworkNotFound)",
        ),
    ),
    (
        "spec.networkInterfaces[].networkPolicy",
        Warned("popcell does not enforce it: unless the provider of the cell does, all traffic is let in"),
    ),
    (
        "spec.runtime.resources.instanceType",
        Done(Claim, "the size of the claim; the provider gives as much"),
    ),
    ("spec.runtime.resources.requests", Refused(NO_AMOUNTS)),
    (
        "spec.runtime.sandbox.containers[].env[].name",
        Done(Provider, "environment of the container"),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].value",
        Done(Provider, "environment of the container"),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.configMapKeyRef.key",
        Done(Provider, "one value of it"),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.configMapKeyRef.name",
        Done(Data, CONFIG_MAP),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.configMapKeyRef.optional",
        Done(Provider, "without it, when it is not there"),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.fieldRef.apiVersion",
        Done(Provider, "a field of what runs in the cell"),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.fieldRef.fieldPath",
        Done(
            Provider,
            "name, namespace, uid, a label, an annotation or an address of what runs in the cell; admission refuses what is its node's",
        ),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.fileKeyRef",
        Warned("no volume of an Instance can hold the file: use value"),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.resourceFieldRef.containerName",
        Done(Provider, "an amount of what runs in the cell"),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.resourceFieldRef.divisor",
        Done(Provider, "an amount of what runs in the cell"),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.resourceFieldRef.resource",
        Done(Provider, "an amount of what runs in the cell"),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.secretKeyRef.key",
        Done(Provider, "one value of it"),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.secretKeyRef.name",
        Done(Data, SECRET),
    ),
    (
        "spec.runtime.sandbox.containers[].env[].valueFrom.secretKeyRef.optional",
        Done(Provider, "without it, when it is not there"),
    ),
    (
        "spec.runtime.sandbox.containers[].envFrom[].configMapRef.name",
        Done(Data, CONFIG_MAP),
    ),
    (
        "spec.runtime.sandbox.containers[].envFrom[].configMapRef.optional",
        Done(Provider, "without it, when it is not there"),
    ),
    (
        "spec.runtime.sandbox.containers[].envFrom[].prefix",
        Done(Provider, "in front of the name of each variable"),
    ),
    (
        "spec.runtime.sandbox.containers[].envFrom[].secretRef.name",
        Done(Data, SECRET),
    ),
    (
        "spec.runtime.sandbox.containers[].envFrom[].secretRef.optional",
        Done(Provider, "without it, when it is not there"),
    ),
    (
        "spec.runtime.sandbox.containers[].image",
        Done(Provider, "image of the container"),
    ),
    (
        "spec.runtime.sandbox.containers[].name",
        Done(Provider, "name of the container"),
    ),
    (
        "spec.runtime.sandbox.containers[].ports[].name",
        Done(Provider, "a port of the container"),
    ),
    (
        "spec.runtime.sandbox.containers[].ports[].port",
        Done(Provider, "a port of the container"),
    ),
    (
        "spec.runtime.sandbox.containers[].ports[].protocol",
        Done(Provider, "TCP by default"),
    ),
    ("spec.runtime.sandbox.containers[].resources", Refused(NO_AMOUNTS)),
    (
        "spec.runtime.sandbox.containers[].volumeAttachments[].mountPath",
        Done(Provider, "where the container sees the volume"),
    ),
    (
        "spec.runtime.sandbox.containers[].volumeAttachments[].name",
        Done(Provider, "a volume of the template"),
    ),
    ("spec.runtime.sandbox.imagePullSecrets[].name", Done(Data, SECRET)),
    (
        "spec.runtime.virtualMachine.ports[].name",
        Done(MachineProvider, "a port of the machine"),
    ),
    (
        "spec.runtime.virtualMachine.ports[].port",
        Done(MachineProvider, "a port of the machine"),
    ),
    (
        "spec.runtime.virtualMachine.ports[].protocol",
        Done(MachineProvider, "TCP by default"),
    ),
    (
        "spec.runtime.virtualMachine.volumeAttachments[].mountPath",
        Done(MachineProvider, "where the machine mounts the volume"),
    ),
    (
        "spec.runtime.virtualMachine.volumeAttachments[].name",
        Done(MachineProvider, "a volume of the template; it boots from the first"),
    ),
    (
        "spec.volumes[].configMap.defaultMode",
        Done(Provider, "permissions of its files"),
    ),
    ("spec.volumes[].configMap.items", Refused(NO_ITEMS)),
    ("spec.volumes[].configMap.name", Done(Data, CONFIG_MAP)),
    (
        "spec.volumes[].configMap.optional",
        Done(Provider, "without it, when it is not there"),
    ),
    (
        "spec.volumes[].disk.deviceName",
        Done(MachineProvider, "`persistent-disk-<index>` by default"),
    ),
    (
        "spec.volumes[].disk.template.metadata.annotations.*",
        Done(MachineProvider, "on the disk"),
    ),
    (
        "spec.volumes[].disk.template.metadata.labels.*",
        Done(MachineProvider, "on the disk"),
    ),
    (
        "spec.volumes[].disk.template.spec.populator.filesystem.type",
        Done(
            Provider,
            "the disk has an empty filesystem at first; that of a Pod has its node's type",
        ),
    ),
    (
        "spec.volumes[].disk.template.spec.populator.image.name",
        Done(MachineProvider, "the disk has the image at first"),
    ),
    (
        "spec.volumes[].disk.template.spec.resources.requests.*",
        Warned("a disk has no other amount than storage: remove it"),
    ),
    (
        "spec.volumes[].disk.template.spec.resources.requests.storage",
        Done(Provider, "the size of the disk"),
    ),
    (
        "spec.volumes[].disk.template.spec.type",
        Done(Provider, "`pd-standard`, which is the only one"),
    ),
    ("spec.volumes[].name", Done(Provider, "what attachments name")),
    (
        "spec.volumes[].secret.defaultMode",
        Done(Provider, "permissions of its files"),
    ),
    ("spec.volumes[].secret.items", Refused(NO_ITEMS)),
    (
        "spec.volumes[].secret.optional",
        Done(Provider, "without it, when it is not there"),
    ),
    ("spec.volumes[].secret.secretName", Done(Data, SECRET)),
];

const SCALE: &[Row] = &[
    (
        "instanceManagementPolicy",
        Done(Deployment, "`OrderedReady`, which is the only one"),
    ),
    (
        "maxReplicas",
        Done(
            Deployment,
            "no more Instances run in each city, whatever an autoscaler asks for; `minReplicas` to 1000",
        ),
    ),
    ("metrics[].resource.name", Done(Deployment, TO_AUTOSCALER)),
    (
        "metrics[].resource.target.averageUtilization",
        Done(Deployment, TO_AUTOSCALER),
    ),
    (
        "metrics[].resource.target.averageValue",
        Done(Deployment, TO_AUTOSCALER),
    ),
    ("metrics[].resource.target.value", Warned(NO_SUM)),
    (
        "minReplicas",
        Done(Deployment, "so many Instances run in each city, and no fewer"),
    ),
];

const PLACEMENT: &[Row] = &[
    ("cityCodes[]", Done(Workload, "a WorkloadDeployment for each")),
    ("name", Done(Workload, "part of the name of each WorkloadDeployment")),
];

const OF_DEPLOYMENT: &[Row] = &[
    ("cityCode", Done(Federation, "the city that it is carried to")),
    ("placementName", Done(Deployment, "label of each Instance")),
    (
        "replicas",
        Done(
            Deployment,
            "in the cell only: so many Instances run, within minReplicas and maxReplicas",
        ),
    ),
    ("workloadRef.name", Done(Deployment, "label of each Instance")),
    ("workloadRef.uid", Done(Deployment, "label of each Instance")),
];

/// Rows below a path; an empty one is the object.
type Part = (&'static str, &'static [Row]);

const WORKLOAD: &[Part] = &[
    ("spec.template", TEMPLATE),
    ("spec.placements[].scaleSettings", SCALE),
    ("spec.placements[]", PLACEMENT),
    (
        "status",
        &[
            ("conditions", Written("`workload`")),
            ("currentReplicas", Written("`workload`")),
            ("deployments", Written("`workload`")),
            ("desiredReplicas", Written("`workload`")),
            ("gateway", Written("reserved: popcell neither reads nor writes it")),
            ("observedGeneration", Written("`workload`")),
            ("placements", Written("`workload`")),
            ("readyReplicas", Written("`workload`")),
            ("replicas", Written("`workload`")),
            ("updatedReplicas", Written("`workload`")),
        ],
    ),
];

const IN_THE_CELL: Handling = Written("`deployment` in the cell; `federation` in the project");

const WORKLOAD_DEPLOYMENT: &[Part] = &[
    ("spec.template", TEMPLATE),
    ("spec.scaleSettings", SCALE),
    ("spec", OF_DEPLOYMENT),
    (
        "status",
        &[
            ("conditions", IN_THE_CELL),
            ("currentReplicas", IN_THE_CELL),
            ("desiredReplicas", IN_THE_CELL),
            ("instanceTypeSize", Written("`deployment` in a single cluster")),
            ("location", IN_THE_CELL),
            ("observedGeneration", IN_THE_CELL),
            ("readyReplicas", IN_THE_CELL),
            ("replicas", IN_THE_CELL),
            ("selector", IN_THE_CELL),
            ("updatedReplicas", IN_THE_CELL),
        ],
    ),
];

/// The rows of a Workload or WorkloadDeployment.
pub(super) fn rows(kind: Kind) -> impl Iterator<Item = (String, Handling)> {
    let parts = if kind == kind::WORKLOAD {
        WORKLOAD
    } else {
        WORKLOAD_DEPLOYMENT
    };
    let all = parts
        .iter()
        .flat_map(|(above, rows)| rows.iter().map(move |row| (above, row)));
    all.map(|(above, (path, handling))| (format!("{above}.{path}"), *handling))
}
