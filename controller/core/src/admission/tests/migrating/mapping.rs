//! From fields of a Deployment to fields of a Workload.

/// What becomes of a field. Each last text is a note for the user.
pub(super) enum Fate {
    /// It is this field of a Workload.
    Becomes(&'static str, &'static str),
    /// A Workload has this field, and admission refuses it.
    Refused(&'static str, &'static str),
    /// A Workload has no such field, or popcell has no such object.
    NoField(&'static str),
}

use Fate::{Becomes, NoField, Refused};

/// Why a Pod's rights and place on its node are nothing that a template sets.
const NODE: &str = "remove it: a template has no access to the node, and the cell chooses it";
const TOKEN: &str = "remove it: no container gets a token; give it credentials in a Secret";
const PROBE: &str =
    "remove it: a container that runs counts as ready. Let the program exit when it fails, and it is restarted";
const COMMAND: &str = "build an image whose entry point and arguments they are";
const USER: &str = "set the user in the image; the provider of Pods forbids privilege escalation and NET_RAW";
const ROLLOUT: &str = "remove it: Instances are replaced in order, one at a time";
const SCALE: &str = "remove it: it is part of the placement";

/// Fields of a Deployment (a DaemonSet, a HorizontalPodAutoscaler) in the order of the page. A row is also for all fields below
/// it that have no row of their own.
pub(super) const MAPPING: &[(&str, Fate)] = &[
    ("metadata.name", Becomes("metadata.name", "at most 63 characters")),
    (
        "metadata.namespace",
        Becomes("metadata.namespace", "a namespace of the project"),
    ),
    ("metadata.labels", Becomes("metadata.labels", "")),
    ("metadata.annotations", Becomes("metadata.annotations", "")),
    (
        "spec.replicas",
        Becomes(
            "spec.placements[].scaleSettings.minReplicas",
            "for each city; 1 at least",
        ),
    ),
    (
        "spec.selector",
        NoField("remove it: popcell finds its Instances by labels of its own"),
    ),
    ("spec.strategy", NoField(ROLLOUT)),
    ("spec.updateStrategy", NoField(ROLLOUT)),
    (
        "spec.template.metadata.labels",
        Becomes(
            "spec.template.metadata.labels",
            "of the Instance; its Pod does not get them",
        ),
    ),
    (
        "spec.template.metadata.annotations",
        Becomes(
            "spec.template.metadata.annotations",
            "of the Instance; its Pod does not get them",
        ),
    ),
    (
        "spec.template.metadata.name",
        NoField("remove it: Instances are named after their WorkloadDeployment"),
    ),
    (
        "spec.template.spec.containers[].name",
        Becomes("spec.template.spec.runtime.sandbox.containers[].name", ""),
    ),
    (
        "spec.template.spec.containers[].image",
        Becomes("spec.template.spec.runtime.sandbox.containers[].image", ""),
    ),
    ("spec.template.spec.containers[].command", NoField(COMMAND)),
    ("spec.template.spec.containers[].args", NoField(COMMAND)),
    (
        "spec.template.spec.containers[].env",
        Becomes(
            "spec.template.spec.runtime.sandbox.containers[].env",
            "Services are not carried to cities: name addresses. `fieldRef` has no field of the node",
        ),
    ),
    (
        "spec.template.spec.containers[].envFrom",
        Becomes(
            "spec.template.spec.runtime.sandbox.containers[].envFrom",
            "ConfigMaps and Secrets are carried to the cities",
        ),
    ),
    (
        "spec.template.spec.containers[].ports[].containerPort",
        Becomes("spec.template.spec.runtime.sandbox.containers[].ports[].port", ""),
    ),
    (
        "spec.template.spec.containers[].ports[].name",
        Becomes(
            "spec.template.spec.runtime.sandbox.containers[].ports[].name",
            "required",
        ),
    ),
    (
        "spec.template.spec.containers[].ports[].protocol",
        Becomes("spec.template.spec.runtime.sandbox.containers[].ports[].protocol", ""),
    ),
    ("spec.template.spec.containers[].ports[].hostPort", NoField(NODE)),
    (
        "spec.template.spec.containers[].resources",
        Refused(
            "spec.template.spec.runtime.sandbox.containers[].resources",
            "remove it: `instanceType` is the size of the Instance, which its containers share",
        ),
    ),
    ("spec.template.spec.containers[].livenessProbe", NoField(PROBE)),
    ("spec.template.spec.containers[].readinessProbe", NoField(PROBE)),
    ("spec.template.spec.containers[].startupProbe", NoField(PROBE)),
    (
        "spec.template.spec.containers[].lifecycle",
        NoField("remove it: do it in the program"),
    ),
    ("spec.template.spec.containers[].securityContext", NoField(USER)),
    (
        "spec.template.spec.containers[].imagePullPolicy",
        NoField("remove it, and give the image a tag of its own or a digest"),
    ),
    (
        "spec.template.spec.containers[].volumeMounts[].name",
        Becomes(
            "spec.template.spec.runtime.sandbox.containers[].volumeAttachments[].name",
            "",
        ),
    ),
    (
        "spec.template.spec.containers[].volumeMounts[].mountPath",
        Becomes(
            "spec.template.spec.runtime.sandbox.containers[].volumeAttachments[].mountPath",
            "",
        ),
    ),
    (
        "spec.template.spec.containers[].volumeMounts[].readOnly",
        NoField("remove it: ConfigMaps and Secrets are read-only, disks are not"),
    ),
    (
        "spec.template.spec.containers[].volumeMounts[].subPath",
        NoField("mount the whole volume at a folder of its own"),
    ),
    (
        "spec.template.spec.containers[].volumeMounts[].mountPropagation",
        NoField(NODE),
    ),
    (
        "spec.template.spec.initContainers",
        NoField(
            "do its work at the start of the program, or run a sidecar as one more container; no container waits for another",
        ),
    ),
    (
        "spec.template.spec.imagePullSecrets",
        Becomes("spec.template.spec.runtime.sandbox.imagePullSecrets", ""),
    ),
    (
        "spec.template.spec.volumes[].name",
        Becomes("spec.template.spec.volumes[].name", "each volume is attached"),
    ),
    (
        "spec.template.spec.volumes[].configMap",
        Becomes("spec.template.spec.volumes[].configMap", ""),
    ),
    (
        "spec.template.spec.volumes[].configMap.items",
        Refused(
            "spec.template.spec.volumes[].configMap.items",
            "remove it, and name the keys as the files are to be named",
        ),
    ),
    (
        "spec.template.spec.volumes[].secret",
        Becomes("spec.template.spec.volumes[].secret", ""),
    ),
    (
        "spec.template.spec.volumes[].secret.items",
        Refused(
            "spec.template.spec.volumes[].secret.items",
            "remove it, and name the keys as the files are to be named",
        ),
    ),
    (
        "spec.template.spec.volumes[].emptyDir",
        NoField(
            "a `disk` of 10Gi or more with `populator.filesystem`, or no volume: the container can write to its own files",
        ),
    ),
    (
        "spec.template.spec.volumes[].persistentVolumeClaim",
        NoField(
            "a `disk` of 10 to 100Gi with `populator.filesystem`: **it is lost with its Instance**, at each change of the template too",
        ),
    ),
    ("spec.template.spec.volumes[].hostPath", NoField(NODE)),
    (
        "spec.template.spec.volumes[].projected",
        NoField("a volume for each ConfigMap and Secret"),
    ),
    ("spec.template.spec.serviceAccountName", NoField(TOKEN)),
    ("spec.template.spec.automountServiceAccountToken", NoField(TOKEN)),
    ("spec.template.spec.securityContext", NoField(USER)),
    (
        "spec.template.spec.terminationGracePeriodSeconds",
        NoField("remove it: a Pod of popcell has 30 s, the default of Kubernetes"),
    ),
    (
        "spec.template.spec.nodeSelector",
        NoField("remove it: `cityCodes` are the places"),
    ),
    (
        "spec.template.spec.affinity",
        NoField("remove it: `cityCodes` are the places"),
    ),
    ("spec.template.spec.tolerations", NoField(NODE)),
    ("spec.template.spec.priorityClassName", NoField(NODE)),
    ("spec.template.spec.hostNetwork", NoField(NODE)),
    ("spec.template.spec.hostPID", NoField(NODE)),
    (
        "HorizontalPodAutoscaler spec.minReplicas",
        Becomes("spec.placements[].scaleSettings.minReplicas", "for each city"),
    ),
    (
        "HorizontalPodAutoscaler spec.maxReplicas",
        Becomes(
            "spec.placements[].scaleSettings.maxReplicas",
            "for each city; needs `metrics`",
        ),
    ),
    (
        "HorizontalPodAutoscaler spec.metrics[].resource.name",
        Becomes("spec.placements[].scaleSettings.metrics[].resource.name", "`cpu` only"),
    ),
    (
        "HorizontalPodAutoscaler spec.metrics[].resource.target.averageUtilization",
        Becomes(
            "spec.placements[].scaleSettings.metrics[].resource.target.averageUtilization",
            "",
        ),
    ),
    (
        "HorizontalPodAutoscaler spec.metrics[].resource.target.averageValue",
        Becomes(
            "spec.placements[].scaleSettings.metrics[].resource.target.averageValue",
            "",
        ),
    ),
    (
        "HorizontalPodAutoscaler spec.metrics[].resource.target.type",
        NoField("remove it: the name of the target says it"),
    ),
    (
        "HorizontalPodAutoscaler spec.metrics[].type",
        NoField("remove it: each metric is one of a resource"),
    ),
    ("HorizontalPodAutoscaler spec.scaleTargetRef", NoField(SCALE)),
    (
        "Service",
        NoField("there is none: clients use the address of each Instance, `status.networkInterfaces[].assignments`"),
    ),
    (
        "PersistentVolumeClaim",
        NoField("there is none: see `persistentVolumeClaim`"),
    ),
];

/// Of the row that is nearest above.
pub(super) fn fate(field: &str) -> Option<&'static Fate> {
    let rows = MAPPING.iter().filter(|(row, _)| super::is_within(field, row));
    rows.max_by_key(|(row, _)| row.len()).map(|(_, fate)| fate)
}

/// Where a field without a place would be in a Workload; none where that is no single place.
pub(super) fn schema_place(field: &str) -> Option<String> {
    if let Some(rest) = field.strip_prefix("HorizontalPodAutoscaler spec.") {
        return Some(format!("spec.placements[].scaleSettings.{rest}"));
    }
    if !field.contains('.') {
        return None;
    }
    let field = field.replace("volumeMounts[]", "volumeAttachments[]");
    Some(match field.strip_prefix("spec.template.spec.") {
        Some(rest) if rest.starts_with("containers[]") || rest == "initContainers" => {
            format!("spec.template.spec.runtime.sandbox.{rest}")
        }
        _ => field,
    })
}
