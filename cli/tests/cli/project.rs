//! `popcell project apply` on projects of a milo that is served in this process.

use std::{fs, path::PathBuf, process::Stdio};

use serde_json::{Value, json};

use crate::{
    plane::Plane,
    program::{Run, command, finish, popcell, scratch},
};

const PROJECTS: &str = "/apis/resourcemanager.miloapis.com/v1alpha1/projects";
const PART_OF: &str = "app.kubernetes.io/part-of";
/// What each project gets without a webhook.
const OBJECTS: [&str; 7] = [
    "apis/apiextensions.k8s.io/v1/customresourcedefinitions/instances.compute.datumapis.com",
    "apis/apiextensions.k8s.io/v1/customresourcedefinitions/workloaddeployments.compute.datumapis.com",
    "apis/apiextensions.k8s.io/v1/customresourcedefinitions/workloads.compute.datumapis.com",
    "apis/rbac.authorization.k8s.io/v1/clusterroles/compute-manager-project",
    BINDING,
    POLICY,
    "apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/compute-deployment-writers",
];
const WEBHOOKS: [&str; 2] = [
    "apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/compute-mutating",
    "apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/compute-validating",
];
const BINDING: &str = "apis/rbac.authorization.k8s.io/v1/clusterrolebindings/compute-manager-project";
const POLICY: &str = "apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/compute-deployment-writers";

fn id(number: usize) -> String {
    format!("p{number:02}")
}

/// Where a project has an object.
fn of(project: &str, object: &str) -> String {
    format!("{PROJECTS}/{project}/control-plane/{object}")
}

fn listed(milo: &Plane, project: &str, ready: &str) {
    let metadata = json!({ "uid": format!("u-{project}"), "resourceVersion": "1" });
    let status = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
    milo.put(
        &format!("{PROJECTS}/{project}"),
        json!({ "metadata": metadata, "status": status }),
    );
}

fn milo(projects: usize) -> Plane {
    let milo = Plane::start();
    (0..projects).for_each(|number| listed(&milo, &id(number), "True"));
    milo
}

fn apply(milo: &Plane, args: &[&str]) -> Run {
    let mut run = command();
    run.args(["project", "apply", "--mode", "milo"]).args(args);
    finish(run.arg("--project-kubeconfig").arg(milo.kubeconfig()))
}

fn lines(run: &Run) -> Vec<&str> {
    let mut lines: Vec<&str> = run.out.lines().collect();
    lines.sort_unstable();
    lines
}

/// A CA in a file.
fn authority() -> (tempfile::TempDir, PathBuf) {
    let folder = scratch();
    let file = folder.path().join("ca.crt");
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(Vec::<String>::new())
        .unwrap()
        .self_signed(&key)
        .unwrap();
    fs::write(&file, certificate.pem()).unwrap();
    (folder, file)
}

#[test]
fn fifty_projects_get_everything_and_a_second_run_writes_nothing() {
    let milo = milo(50);
    let (_folder, ca) = authority();
    let args = [
        "--all-projects",
        "--webhook-url=https://compute.example.com:9443",
        "--ca-file",
        ca.to_str().unwrap(),
    ];
    let run = apply(&milo, &args).expect(0);
    let created: Vec<String> = (0..50)
        .map(|number| format!("{}: created (9 objects)", id(number)))
        .collect();
    assert_eq!(lines(&run), created);
    assert_eq!(run.err, "50 projects: 50 created\n");
    for number in 0..50 {
        for object in OBJECTS.iter().chain(&WEBHOOKS) {
            let found = milo.get(&of(&id(number), object));
            assert_eq!(found.unwrap()["metadata"]["labels"][PART_OF], "popcell", "{object}");
        }
    }
    assert_eq!(milo.writes().len(), 450);

    let run = apply(&milo, &args).expect(0);
    assert_eq!(run.err, "50 projects: 50 unchanged\n");
    assert_eq!(milo.writes().len(), 450);
}

#[test]
fn rights_policies_and_webhooks_name_the_user_and_the_address() {
    let milo = milo(1);
    let (_folder, ca) = authority();
    let args = [
        "--project=p00",
        "--user=jo@example.com",
        "--webhook-url=https://10.0.0.7:9443/",
        "--ca-file",
        ca.to_str().unwrap(),
    ];
    apply(&milo, &args).expect(0);
    let found = |object: &str| milo.get(&of("p00", object)).unwrap();
    assert_eq!(found(BINDING)["subjects"][0]["name"], "jo@example.com");
    assert_eq!(
        found(POLICY)["spec"]["variables"][0]["expression"],
        "['jo@example.com']"
    );
    let urls = WEBHOOKS.map(|object| {
        let webhooks = found(object)["webhooks"].clone();
        let webhooks = webhooks.as_array().unwrap().clone();
        assert!(webhooks.iter().all(|one| one["clientConfig"]["caBundle"].is_string()));
        assert!(webhooks.iter().all(|one| one["clientConfig"].get("service").is_none()));
        let urls = webhooks
            .iter()
            .map(|one| one["clientConfig"]["url"].as_str().unwrap().to_owned());
        urls.collect::<Vec<_>>()
    });
    let path = |path: &str| format!("https://10.0.0.7:9443/{path}-compute-datumapis-com-v1alpha-workload");
    assert_eq!(urls[0], [path("mutate")]);
    // The last one is of the subresource.
    let of_deployments = path("validate") + "deployment";
    assert_eq!(urls[1], [path("validate"), of_deployments.clone(), of_deployments]);

    // Without a CA the registered one stays, and so does what others have written.
    let annotated = WEBHOOKS[1];
    let mut object = found(annotated);
    object["metadata"]["annotations"] = json!({ "jo": "was here" });
    milo.put(&of("p00", annotated), object.clone());
    let run = apply(
        &milo,
        &[
            "--project=p00",
            "--user=jo@example.com",
            "--webhook-url=https://10.0.0.8:9443",
        ],
    )
    .expect(0);
    let changed = found(annotated);
    let bundle = "/webhooks/0/clientConfig/caBundle";
    assert_eq!(changed.pointer(bundle), object.pointer(bundle));
    assert_eq!(changed["metadata"]["annotations"]["jo"], "was here");
    let names =
        "changed MutatingWebhookConfiguration compute-mutating, ValidatingWebhookConfiguration compute-validating";
    assert_eq!(run.out, format!("p00: changed: {names}\n"));
}

#[test]
fn a_project_that_fails_holds_up_no_other() {
    let milo = milo(50);
    milo.refuse("GET", &of("p07", OBJECTS[0]), 500, "etcd is\nnot there\np08: failed", 1);
    milo.refuse(
        "POST",
        &of("p09", "apis/rbac.authorization.k8s.io/v1/clusterroles"),
        403,
        "not you",
        1,
    );
    let run = apply(&milo, &["--all-projects"]).expect(4);
    assert_eq!(run.err, "50 projects: 48 created, 2 failed\n");
    let failed: Vec<&str> = lines(&run)
        .into_iter()
        .filter(|line| line.contains(": failed"))
        .collect();
    let [first, second] = failed.as_slice() else {
        panic!("{failed:?}")
    };
    assert!(
        first.starts_with("p07: failed: ") && first.contains("etcd is not there p08: failed"),
        "{first}"
    );
    assert!(
        second.starts_with("p09: failed: ClusterRole compute-manager-project: ")
            && second.contains("403 not you (the user of --project-kubeconfig"),
        "{second}"
    );
    // What comes after a refusal is not tried: a webhook without rights would hold up users.
    assert!(milo.get(&of("p09", OBJECTS[2])).is_some() && milo.get(&of("p09", BINDING)).is_none());

    let run = apply(&milo, &["--project=p09", "--project=p08"]).expect(0);
    assert_eq!(lines(&run)[0], "p08: unchanged (7 objects)");
    assert!(
        lines(&run)[1].starts_with("p09: changed: created ClusterRole"),
        "{}",
        run.out
    );
}

#[test]
fn an_object_of_another_owner_is_never_changed_and_its_project_gets_nothing() {
    let milo = milo(3);
    let foreign = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "uid": "f", "resourceVersion": "1", "labels": { PART_OF: "other" } }, "subjects": [] });
    milo.put(&of("p01", BINDING), foreign);
    let before = milo.get(&of("p01", BINDING));
    let run = apply(&milo, &["--all-projects", "-o=json"]).expect(1);
    assert_eq!(milo.get(&of("p01", BINDING)), before);
    assert!(
        milo.writes().iter().all(|write| !write.contains("/p01/")),
        "{:?}",
        milo.writes()
    );
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let states: Vec<&str> = report["projects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["created", "refused", "created"]);
    let refused = &report["projects"][1]["objects"][0];
    assert_eq!(
        (&refused["kind"], &refused["outcome"]),
        (&json!("ClusterRoleBinding"), &json!("refused"))
    );
    assert!(refused["why"].as_str().unwrap().contains(PART_OF), "{refused}");

    // The label hands it over.
    let mut ours = before.unwrap();
    ours["metadata"]["labels"][PART_OF] = json!("popcell");
    milo.put(&of("p01", BINDING), ours);
    apply(&milo, &["--all-projects"]).expect(0);
    assert!(milo.get(&of("p01", BINDING)).unwrap()["subjects"][0]["name"].is_string());
}

#[test]
fn a_newer_crd_is_named_and_kept_unless_its_fields_may_be_dropped() {
    let milo = milo(2);
    apply(&milo, &["--all-projects"]).expect(0);
    let path = of("p01", OBJECTS[2]);
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let mut newer = milo.get(&path).unwrap();
    newer.pointer_mut(field).unwrap()["hostname"] = json!({ "type": "string" });
    milo.put(&path, newer.clone());

    let run = apply(&milo, &["--all-projects"]).expect(1);
    assert!(
        lines(&run)[1].starts_with("p01: refused: CustomResourceDefinition workloads.compute.datumapis.com")
            && run.out.contains("v1alpha: spec.hostname"),
        "{}",
        run.out
    );
    assert_eq!(lines(&run)[0], "p00: unchanged (7 objects)");
    assert_eq!(milo.get(&path), Some(newer));

    apply(&milo, &["--all-projects", "--skip-crds"]).expect(0);
    let run = apply(&milo, &["--all-projects", "--allow-dropped-fields"]).expect(0);
    assert_eq!(
        lines(&run)[1],
        "p01: changed: changed CustomResourceDefinition workloads.compute.datumapis.com"
    );
    assert!(
        milo.get(&path)
            .unwrap()
            .pointer(field)
            .unwrap()
            .get("hostname")
            .is_none()
    );
}

#[test]
fn what_was_changed_by_hand_is_put_back_also_where_a_write_meets_a_newer_object() {
    let milo = milo(1);
    apply(&milo, &["--project=p00"]).expect(0);
    let path = of("p00", BINDING);
    let mut edited = milo.get(&path).unwrap();
    edited["subjects"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "kind": "User", "name": "mallory" }));
    milo.put(&path, edited);
    milo.refuse("PUT", &path, 409, "it has changed", 1);
    let run = apply(&milo, &["--project=p00"]).expect(0);
    assert_eq!(
        run.out,
        "p00: changed: changed ClusterRoleBinding compute-manager-project\n"
    );
    assert_eq!(milo.get(&path).unwrap()["subjects"].as_array().unwrap().len(), 1);

    milo.put(
        &path,
        json!({ "metadata": { "labels": { PART_OF: "popcell" }, "resourceVersion": "1" } }),
    );
    milo.refuse("PUT", &path, 409, "it has changed", 9);
    let run = apply(&milo, &["--project=p00"]).expect(4);
    assert!(run.out.contains("another client keeps modifying it"), "{}", run.out);
}

#[test]
fn a_dry_run_has_the_servers_check_and_writes_nothing() {
    let milo = milo(2);
    let run = apply(&milo, &["--all-projects", "--dry-run"]).expect(0);
    assert_eq!(
        lines(&run),
        ["p00: would be created (7 objects)", "p01: would be created (7 objects)"]
    );
    assert_eq!(milo.writes(), Vec::<String>::new());
    // But for the binding, whose role the server would look up.
    assert_eq!(milo.asked("?dryRun=All"), 12);

    apply(&milo, &["--all-projects"]).expect(0);
    milo.refuse("PUT", &of("p01", POLICY), 422, "expression is no CEL", 1);
    let writes = milo.writes().len();
    let run = apply(&milo, &["--all-projects", "--dry-run", "--user=jo"]).expect(4);
    assert_eq!(
        lines(&run)[0],
        "p00: would be changed: changed ClusterRoleBinding compute-manager-project, ValidatingAdmissionPolicy \
         compute-deployment-writers"
    );
    assert!(lines(&run)[1].contains("422 expression is no CEL"), "{}", run.out);
    assert_eq!(milo.writes().len(), writes);
}

#[test]
fn projects_that_are_not_ready_or_going_or_unknown_get_nothing() {
    let milo = milo(1);
    listed(&milo, "late", "False");
    let going = json!({ "uid": "g", "resourceVersion": "1", "deletionTimestamp": "2026-11-30T09:00:00Z" });
    milo.put(&format!("{PROJECTS}/going"), json!({ "metadata": going }));
    let run = apply(&milo, &["--all-projects"]).expect(1);
    assert_eq!(
        lines(&run),
        [
            "going: skipped: it is being deleted",
            "late: refused: it is not Ready: retry when it is",
            "p00: created (7 objects)",
        ]
    );
    apply(&milo, &["--project=going", "--project=p00"]).expect(0);
    let run = apply(&milo, &["--project=p01"]).expect(1);
    assert!(
        run.out.starts_with("p01: refused: ") && run.out.contains("no such Project"),
        "{}",
        run.out
    );
    // A discovery server that does not answer says nothing about any project.
    milo.refuse("GET", PROJECTS, 403, "not you", 1);
    apply(&milo, &["--all-projects"]).expect(4);
}

/// Runs with something on standard input.
fn piped(milo: &Plane, args: &[&str], stdin: &str) -> Run {
    let folder = scratch();
    let file = folder.path().join("objects.yaml");
    fs::write(&file, stdin).unwrap();
    let mut run = command();
    run.args(["project", "apply", "--mode", "milo", "--all-projects", "-f=-"])
        .args(args);
    run.arg("--project-kubeconfig").arg(milo.kubeconfig());
    finish(run.stdin(Stdio::from(fs::File::open(file).unwrap())))
}

#[test]
fn objects_of_a_kustomization_stand_in_place_of_ours() {
    let milo = milo(1);
    let role = |labels: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: popcell-cell-claims{labels}}}\nrules: []\n"
        )
    };
    let ours = role(", labels: {app.kubernetes.io/part-of: popcell}");
    let run = piped(&milo, &[], &ours).expect(0);
    assert_eq!(run.out, "p00: created (4 objects)\n");
    assert!(
        milo.get(&of(
            "p00",
            "apis/rbac.authorization.k8s.io/v1/clusterroles/popcell-cell-claims"
        ))
        .is_some()
    );
    assert_eq!(milo.get(&of("p00", BINDING)), None);
    let run = piped(&milo, &["--skip-crds"], &ours).expect(0);
    assert_eq!(run.out, "p00: unchanged (1 object)\n");

    for (wrong, said) in [
        (role(""), "lacks the label"),
        (format!("{ours}---\n{ours}"), "is given twice"),
        (
            ours.replace("kind: ClusterRole", "kind: Role"),
            "is no object that a project gets",
        ),
        (ours.replace("popcell-cell-claims", "../x"), "expected a name"),
        (String::new(), "holds no object"),
    ] {
        let run = piped(&milo, &[], &wrong).expect(2);
        assert!(run.err.contains(said), "{wrong}: {}", run.err);
    }
}

#[test]
fn in_mode_single_the_server_is_the_project() {
    let project = Plane::start();
    let mut run = command();
    run.args(["project", "apply", "--project-kubeconfig"])
        .arg(project.kubeconfig());
    let run = finish(&mut run).expect(0);
    assert_eq!(run.out, "single: created (7 objects)\n");
    assert!(project.get(&format!("/{BINDING}")).is_some());
}

#[test]
fn which_projects_are_meant_is_said() {
    for (args, said) in [
        (&["--mode=milo"][..], "--all-projects"),
        (&["--mode=milo", "--all-projects", "--project=p"], "cannot be used"),
        (&["--project=p"], "--mode milo"),
        (&["--mode=milo", "--project=P/x"], "lower-case"),
        (&["--user=x'"], "quotes"),
        (&["--webhook-url=http://a"], "https://"),
        (&["--ca-file=a"], "--webhook-url"),
        (&["-f=a", "--user=jo"], "cannot be used"),
        (&["-f=a", "--webhook-url=https://a"], "cannot be used"),
        (&["--skip-crds", "--allow-dropped-fields"], "cannot be used"),
    ] {
        let mut all = vec!["project", "apply", "--project-kubeconfig=kubeconfig-dead.yaml"];
        all.extend(args);
        let run = popcell(&all).expect(2);
        assert!(run.err.contains(said), "{args:?}: {}", run.err);
    }
    popcell(&["project", "apply"]).expect(2);
    // One that is unreachable is a failed cluster.
    let run = popcell(&["project", "apply", "--project-kubeconfig=kubeconfig-dead.yaml"]).expect(4);
    assert!(
        run.out.starts_with("single: failed: ") && run.out.contains("https://127.0.0.1:1/"),
        "{}",
        run.out
    );
}
