//! Volumes, virtual machines, and keys of the template.

use super::*;

#[test]
fn volumes_and_disks() {
    let at = |rest: &str| format!("/spec/template/spec/volumes/0{rest}");
    let (disk, config, secret, name) = (at("/disk"), at("/configMap"), at("/secret"), at("/name"));
    let spec = at("/disk/template/spec");
    let (class, storage) = (format!("{spec}/type"), format!("{spec}/resources/requests/storage"));
    let (populator, resources) = (format!("{spec}/populator"), format!("{spec}/resources"));
    let image = json!({ "image": { "name": "datumcloud/ubuntu-2204-lts" } });
    let list = "/spec/template/spec/volumes";
    let volume = workload().pointer(&format!("{list}/0")).unwrap().clone();
    let mut second = volume.clone();
    second["disk"]["deviceName"] = json!("persistent-disk-0");
    table(
        workload,
        &[
            (&name, json!("A"), "spec.template.spec.volumes[0].name: Invalid value"),
            (
                &name,
                json!("other"),
                "volumes[0].name: Invalid value: \"other\": must be attached at least once",
            ),
            (
                list,
                json!([volume.clone(), volume.clone()]),
                r#"volumes[1].name: Duplicate value: "data""#,
            ),
            (
                list,
                json!([volume, second]),
                r#"volumes[1].disk.deviceName: Duplicate value: "persistent-disk-0""#,
            ),
            (&disk, json!(null), "volumes[0]: Required value"),
            (&config, json!({ "name": "c" }), "volumes[0]: Forbidden"),
            (
                &config,
                json!({ "name": "" }),
                "volumes[0].configMap.name: Required value",
            ),
            (
                &config,
                json!({ "name": "c", "defaultMode": 512 }),
                "configMap.defaultMode: Invalid value: 512",
            ),
            (
                &config,
                json!({ "name": "c", "items": [] }),
                "configMap.items: Forbidden: not implemented",
            ),
            (&secret, json!({}), "volumes[0].secret.secretName: Required value"),
            (
                &class,
                json!("pd-ssd"),
                r#"disk.template.spec.type: Unsupported value: "pd-ssd": supported values: "pd-standard""#,
            ),
            (
                &storage,
                json!("9Gi"),
                "resources.requests[storage]: Invalid value: \"9Gi\": must be greater than or equal to 10Gi",
            ),
            (&storage, json!("101Gi"), "must be less than or equal to 100Gi"),
            (&storage, json!("10.5Gi"), "must be a multiple of 1Gi"),
            (&storage, json!("lots"), "must be a quantity"),
            (&resources, json!(null), "resources.requests[storage]: Required value"),
            (
                &populator,
                json!(null),
                "volumeAttachments[0].mountPath: Forbidden: mounting a disk needs a populator",
            ),
            (&populator, json!({}), "disk.template.spec.populator: Required value"),
            (
                &populator,
                image,
                "must be greater than or equal to the 25Gi of the image",
            ),
            (
                &populator,
                json!({ "image": { "name": "x" } }),
                r#"populator.image.name: Unsupported value: "x""#,
            ),
        ],
    );
}

#[test]
fn virtual_machines_and_their_keys() {
    let keys = "/spec/template/metadata/annotations/compute.datumapis.com~1ssh-keys";
    let attachments = "/spec/template/spec/runtime/virtualMachine/volumeAttachments";
    let boot = "/spec/template/spec/volumes/0/disk/template/spec";
    let path = "spec.template.metadata.annotations[compute.datumapis.com/ssh-keys]";
    let at = |rule: &str| format!("{path}: {rule}");
    table(
        machine,
        &[
            (keys, json!(null), &at("Required value")),
            (keys, json!("\n \n"), &at("Required value")),
            (keys, json!("ssh-ed25519 AAAA"), "line 1: must be user:key"),
            (
                keys,
                json!(format!("{KEY}\n:{KEY}")),
                "line 2: the user must not be empty",
            ),
            (
                keys,
                json!("me:ssh-ed25519 AAAA"),
                "line 1: the key must be one of authorized_keys",
            ),
            (
                keys,
                json!("me:ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"),
                "authorized_keys",
            ),
            (
                attachments,
                json!([]),
                "virtualMachine.volumeAttachments: Required value",
            ),
            (
                boot,
                json!({ "type": "pd-standard", "resources": { "requests": { "storage": "10Gi" } } }),
                "volumeAttachments[0].name: Invalid value: \"boot\": the first must be a disk with an image populator",
            ),
        ],
    );
}

#[test]
fn reserved_and_unreadable_template_keys() {
    let metadata = "/spec/template/metadata";
    let forbidden =
        |kind: &str, key: &str| format!("spec.template.metadata.{kind}[{key}]: Forbidden: the key is reserved");
    for key in [
        "karmada.io/managed",
        "work.karmada.io/name",
        "compute.datumapis.com/workload-uid",
        "quota.compute.datumapis.com/x",
        "quota.miloapis.com/x",
        "meta.datumapis.com/upstream-namespace",
        "topology.datum.net/city-code",
    ] {
        let value = json!({ key: "x" });
        let rows = [
            (metadata, json!({ "labels": value }), forbidden("labels", key)),
            (metadata, json!({ "annotations": value }), forbidden("annotations", key)),
        ];
        for (pointer, value, expected) in rows {
            table(workload, &[(pointer, value, &expected)]);
        }
    }
    // The two that are made for users are annotations, not labels.
    let restarted = json!({ "compute.datumapis.com/restartedAt": "2026" });
    table(
        workload,
        &[
            (
                metadata,
                json!({ "labels": restarted }),
                "Forbidden: the key is reserved",
            ),
            (
                metadata,
                json!({ "labels": { "a b": "x" } }),
                "spec.template.metadata.labels: Invalid value: \"a b\"",
            ),
            (
                metadata,
                json!({ "labels": { "a": "x".repeat(64) } }),
                "spec.template.metadata.labels[a]: Invalid value",
            ),
        ],
    );
    let mut good = workload();
    set(
        &mut good,
        metadata,
        json!({ "annotations": restarted, "labels": { "app": "web", "example.com/a": "" } }),
    );
    assert_eq!(faults(None, good), Vec::<String>::new());
}

#[test]
fn instance_types_are_those_of_the_catalogue_and_a_kept_template_may_name_an_earlier_one() {
    let of = |name: &str| {
        object(
            json!({ "metadata": { "name": name.replace('/', "-") }, "spec": { "name": name, "cpu": "1", "memory": "1Gi" } }),
        )
    };
    let types = ["acme/small", "acme/large"].map(of);
    let (types, _) = Catalogue::of(&types.each_ref());
    let check = |old: Option<&Value>, new: &Value, types: Observed<&Catalogue>| -> Vec<String> {
        let old = old.cloned().map(object);
        let errors = validate(old.as_ref(), &object(new.clone()), &["DFW", "ORD"].into(), types);
        errors.iter().map(ToString::to_string).collect()
    };
    let path = "/spec/template/spec/runtime/resources/instanceType";
    let with = |name: &str| {
        let mut new = workload();
        set(&mut new, path, json!(name));
        new
    };
    let field = "spec.template.spec.runtime.resources.instanceType";
    let refused = |name: &str, supported: &str| {
        vec![format!(
            "{field}: Unsupported value: \"{name}\": supported values: {supported}"
        )]
    };
    let (all, built_in) = ("\"acme/large\", \"acme/small\"", "datumcloud/d1-standard-2");
    let known = Observed::Known(&types);
    assert_eq!(check(None, &with("acme/large"), known), Vec::<String>::new());
    assert_eq!(check(None, &with(built_in), known), refused(built_in, all));
    assert_eq!(
        check(None, &with("acme/large"), Observed::Known(&Catalogue::default())),
        refused("acme/large", "\"datumcloud/d1-standard-2\"")
    );
    // The type of what runs was removed: it may become less, and neither more nor another.
    let old = with("acme/removed");
    let scaled = |number: i64| {
        let mut new = old.clone();
        set(&mut new, "/spec/placements/0/scaleSettings/minReplicas", json!(number));
        new
    };
    let (few, many) = (scaled(1), scaled(3));
    assert_eq!(check(Some(&many), &few, known), Vec::<String>::new());
    assert_eq!(check(Some(&few), &many, known), refused("acme/removed", all));
    let mut image = old.clone();
    set(
        &mut image,
        "/spec/template/spec/runtime/sandbox/containers/0/image",
        json!("b"),
    );
    assert_eq!(check(Some(&old), &image, known), refused("acme/removed", all));
    // What is not read yet refuses nothing that needs no answer.
    assert_eq!(check(Some(&many), &few, Observed::Unknown), Vec::<String>::new());
    let unknown = format!("{field}: Internal error: the platform's instance types are not read yet: try again");
    assert_eq!(check(None, &with(built_in), Observed::Unknown), [unknown]);
}
