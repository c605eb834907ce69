//! `popcell scale`, `restart`, `rollout` and `quota` on a project that is served in this process.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    sync::mpsc,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    plane::Plane,
    program::{Run, command, finish, popcell},
};

/// A test that waits so long has failed.
const LONG: Duration = Duration::from_mins(1);
const COMPUTE: &str = "/apis/compute.datumapis.com/v1alpha/namespaces/shop";
const CLAIMS: &str = "/apis/quota.miloapis.com/v1alpha1/namespaces/shop/resourceclaims";
const WEB: &str = "/apis/compute.datumapis.com/v1alpha/namespaces/shop/workloads/web";
const DFW: &str = "/apis/compute.datumapis.com/v1alpha/namespaces/shop/workloaddeployments/web-us-dfw";

fn template(image: &str) -> Value {
    json!({ "spec": { "runtime": { "sandbox": { "containers": [{ "name": "web", "image": image }] } } } })
}

fn workload() -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Workload",
        "metadata": { "namespace": "shop", "uid": "w1", "generation": 1 },
        "spec": { "template": template("a"), "placements": [
            { "name": "us", "cityCodes": ["DFW"], "scaleSettings": { "minReplicas": 2 } }] },
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "WorkloadDeployment",
        "metadata": { "namespace": "shop", "generation": 1, "labels": { "compute.datumapis.com/workload-uid": "w1" } },
        "spec": { "workloadRef": { "name": "web", "uid": "w1" }, "template": template("a"),
            "scaleSettings": { "minReplicas": 2 } },
        "status": { "observedGeneration": 1, "desiredReplicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "replicas": 2 },
    })
}

fn instance(hash: &str, image: &str, ready: &str, message: &str) -> Value {
    let mut spec = template(image)["spec"].clone();
    spec["controller"] = json!({ "templateHash": hash });
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Instance",
        "metadata": { "namespace": "shop", "labels": { "compute.datumapis.com/workload-uid": "w1",
            "compute.datumapis.com/workload-deployment-name": "web-us-dfw" } },
        "spec": spec,
        "status": { "conditions": [{ "type": "Ready", "status": ready, "reason": "SchedulingGatesPresent", "message": message }] },
    })
}

/// Everything runs.
fn project() -> Plane {
    let project = Plane::start();
    project.put(WEB, workload());
    project.put(DFW, deployment());
    project
}

fn args(project: &Plane, args: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = args.iter().map(|one| (*one).to_owned()).collect();
    all.push(format!("--kubeconfig={}", project.kubeconfig().display()));
    all
}

fn run(project: &Plane, more: &[&str]) -> Run {
    finish(command().args(args(project, more)))
}

/// A command that goes on, and its lines.
fn follow(project: &Plane, more: &[&str]) -> (Child, mpsc::Receiver<String>) {
    let mut child = command()
        .args(args(project, more))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (tell, reported) = mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
    (child, reported)
}

fn replicas(project: &Plane) -> Value {
    project.get(WEB).unwrap()["spec"]["placements"][0]["scaleSettings"]["minReplicas"].clone()
}

#[test]
fn scaling_writes_one_number_and_nothing_where_it_is_so() {
    let project = project();
    let ran = run(&project, &["scale", "workload/web", "-n=shop", "--replicas=3"]).expect(0);
    assert_eq!(ran.out, "workload.compute.datumapis.com/web scaled\n");
    let mut expected = workload();
    expected["metadata"]["name"] = json!("web");
    expected["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(3);
    assert_eq!(project.get(WEB).unwrap(), expected);
    assert_eq!(project.writes(), [format!("PATCH {WEB}")]);
    let ran = run(&project, &["scale", "wl", "web", "-n=shop", "--replicas=3"]).expect(0);
    assert_eq!(ran.out, "workload.compute.datumapis.com/web unchanged\n");
    assert_eq!(project.writes().len(), 1);
}

#[test]
fn scaling_on_another_number_than_expected_writes_nothing() {
    let project = project();
    let ran = run(
        &project,
        &["scale", "web", "-n=shop", "--replicas=3", "--current-replicas=1"],
    )
    .expect(1);
    assert!(ran.err.contains("to ask for 1 replicas, it asks for 2"), "{}", ran.err);
    let ran = run(&project, &["scale", "web", "-n=shop", "--replicas=3", "--placement=eu"]).expect(2);
    assert!(
        ran.err.contains("no placement eu") && ran.err.contains("us"),
        "{}",
        ran.err
    );
    for wrong in ["0", "1001"] {
        let ran = run(&project, &["scale", "web", "-n=shop", "--replicas", wrong]).expect(2);
        assert!(ran.err.contains("from 1 to 1000"), "{}", ran.err);
    }
    assert_eq!((project.writes(), replicas(&project)), (Vec::new(), json!(2)));
}

#[test]
fn what_the_server_says_to_a_scale_is_shown_and_steers_no_terminal() {
    let project = project();
    for (code, said, shown) in [
        (
            403,
            "denied the request: \u{1b}[2Jno\nmore",
            "403 denied the request: \\u{1b}[2Jno\nmore",
        ),
        // Nothing has changed meanwhile: it is not the patch's test that failed.
        (
            422,
            "the server rejected our request",
            "422 the server rejected our request",
        ),
    ] {
        project.refuse("PATCH", WEB, code, said, 1);
        let ran = run(&project, &["scale", "web", "-n=shop", "--replicas=3"]).expect(4);
        assert!(ran.err.contains(shown) && !ran.err.contains('\u{1b}'), "{}", ran.err);
    }
    assert_eq!(replicas(&project), json!(2));
}

#[test]
fn a_restart_sets_the_time_in_the_template_unless_the_workload_is_paused() {
    let project = project();
    let ran = run(&project, &["restart", "workload/web", "-n=shop"]).expect(0);
    assert_eq!(ran.out, "workload.compute.datumapis.com/web restarted\n");
    let restarted = project.get(WEB).unwrap();
    let annotations = &restarted["spec"]["template"]["metadata"]["annotations"];
    let time = annotations["compute.datumapis.com/restartedAt"].as_str().unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    assert_eq!(restarted["spec"]["template"]["spec"], template("a")["spec"]);

    let mut paused = workload();
    paused["metadata"]["annotations"] = json!({ "compute.datumapis.com/paused": "true" });
    project.put(WEB, paused);
    let ran = run(&project, &["restart", "web", "-n=shop"]).expect(1);
    assert!(ran.err.contains("compute.datumapis.com/paused"), "{}", ran.err);
    assert_eq!(project.writes().len(), 1);
}

#[test]
fn the_wait_for_a_rollout_ends_when_the_last_city_is_done() {
    let project = project();
    let mut rolls = deployment();
    rolls["status"]["readyReplicas"] = json!(1);
    rolls["status"]["updatedReplicas"] = json!(1);
    project.put(DFW, rolls);
    let waits = instance("h1", "a", "False", "Scheduling gates present: Network");
    let path = format!("{COMPUTE}/instances/web-us-dfw-1");
    project.put(&path, waits);
    let (mut child, lines) = follow(&project, &["rollout", "status", "wl/web", "-n=shop"]);
    let next = || lines.recv_timeout(LONG).expect("nothing more is printed");
    assert_eq!(
        next(),
        "us DFW: 1 of 2 updated, 1 ready; waiting: web-us-dfw-1: SchedulingGatesPresent: Scheduling gates present: Network"
    );
    project.put(&path, instance("h1", "a", "True", ""));
    assert_eq!(next(), "us DFW: 1 of 2 updated, 1 ready");
    project.put(DFW, deployment());
    assert_eq!(next(), "us DFW: done, 2 of 2 updated and ready");
    assert_eq!(next(), "workload \"web\" successfully rolled out");
    assert!(child.wait().unwrap().success());
    assert_eq!(project.writes(), Vec::<String>::new());
    // One list and one watch of each kind, and the Workload itself.
    let asked = ["/workloads", "/workloaddeployments", "/instances"].map(|kind| project.asked(kind));
    assert_eq!(asked, [3, 2, 2]);
}

#[test]
fn a_rollout_that_cannot_end_is_an_error() {
    let project = project();
    let mut rolls = deployment();
    rolls["metadata"]["generation"] = json!(2);
    project.put(DFW, rolls.clone());
    let ran = run(&project, &["rollout", "status", "web", "-n=shop", "--timeout=1s"]).expect(1);
    assert!(
        ran.err.contains("timed out waiting for us DFW") && ran.err.contains("has not observed the change yet"),
        "{}",
        ran.err
    );
    let ran = run(
        &project,
        &["rollout", "status", "web", "-n=shop", "--watch=false", "-o=json"],
    )
    .expect(0);
    let reported: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&reported["state"], &reported["cities"][0]["desired"]),
        (&json!("waiting"), &json!(2))
    );

    rolls["status"]["conditions"] = json!([{ "type": "Available", "status": "False", "reason": "CityCodeConflict",
        "message": "dfw has it", "observedGeneration": 2 }]);
    project.put(DFW, rolls);
    let ran = run(&project, &["rollout", "status", "web", "-n=shop"]).expect(1);
    assert!(
        ran.err.contains("cannot proceed") && ran.err.contains("dfw has it"),
        "{}",
        ran.err
    );
}

#[test]
fn a_workload_that_is_deleted_ends_the_wait() {
    let project = project();
    let mut rolls = deployment();
    rolls["metadata"]["generation"] = json!(2);
    project.put(DFW, rolls);
    let (child, lines) = follow(&project, &["rollout", "status", "web", "-n=shop", "-o=json"]);
    lines.recv_timeout(LONG).expect("nothing is printed");
    project.remove(WEB);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), said.contains("was deleted meanwhile")),
        (Some(1), true),
        "{said}"
    );
}

#[test]
fn a_server_that_refuses_a_list_ends_the_wait() {
    let project = project();
    project.refuse("GET", &format!("{COMPUTE}/instances"), 403, "not you", 100);
    let ran = run(&project, &["rollout", "status", "web", "-n=shop"]).expect(4);
    assert!(
        ran.err.contains("watch instances") && ran.err.contains("not you"),
        "{}",
        ran.err
    );
}

#[test]
fn history_shows_the_templates_in_use_and_says_that_there_are_no_revisions() {
    let project = project();
    let mut restarted = workload();
    restarted["spec"]["template"]["metadata"] =
        json!({ "annotations": { "compute.datumapis.com/restartedAt": "2026-01-01T12:00:00Z" } });
    project.put(WEB, restarted);
    project.put(
        &format!("{COMPUTE}/instances/web-us-dfw-0"),
        instance("0123456789abcdef", "old\u{1b}[2J", "True", ""),
    );
    let ran = run(&project, &["rollout", "history", "web", "-n=shop"]).expect(0);
    let lines: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split_whitespace().collect()).collect();
    let [heads, current, old] = lines.as_slice() else {
        panic!("{}", ran.out);
    };
    assert_eq!(heads.first(), Some(&"PLACEMENT"));
    assert_eq!(current[..2], ["us", "DFW"]);
    assert_eq!(current[3..], ["(current)", "0", "0", "2026-01-01T12:00:00Z", "a"]);
    assert_eq!(*old, ["us", "DFW", "0123456789abcdef", "1", "1", "-", "old\\u{1b}[2J"]);
    let ran = run(&project, &["rollout", "history", "web", "-n=shop", "-o=json"]).expect(0);
    let reported: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(reported["templates"][1]["instances"], 1);
    let help = popcell(&["rollout", "history", "--help"]).expect(0).out;
    assert!(help.contains("no list of revisions"), "{help}");
}

#[test]
fn claims_are_listed_page_by_page_and_add_up() {
    let project = project();
    for number in 0..1_203 {
        let reason = if number == 700 {
            "QuotaExceeded"
        } else {
            "PendingEvaluation"
        };
        project.put(
            &format!("{CLAIMS}/instance-web-us-dfw-{number:04}"),
            json!({ "metadata": { "namespace": "shop", "labels": { "compute.datumapis.com/source-cluster": "dfw-01" } },
                "spec": { "requests": [{ "resourceType": "compute.datumapis.com/instances", "amount": 1 }] },
                "status": { "conditions": [{ "type": "Granted", "status": "False", "reason": reason, "message": "why" }] } }),
        );
    }
    let ran = run(&project, &["quota", "--limit=2"]).expect(0);
    assert_eq!(project.asked("resourceclaims"), 3);
    assert!(
        ran.err.contains("2 of 1202 waiting claims are listed; --limit"),
        "{}",
        ran.err
    );
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(
        lines[1].contains("web-us-dfw-0700") && lines[1].ends_with("QuotaExceeded: why"),
        "{}",
        ran.out
    );
    assert!(
        lines[2].contains("web-us-dfw-0000") && lines[3].contains("web-us-dfw-0001"),
        "{}",
        ran.out
    );
    let waiting: Vec<&str> = lines[7].split_whitespace().collect();
    assert_eq!(waiting, ["waiting", "1202", "1202", "0m", "0Mi"]);
    let ran = run(&project, &["quota", "-n=other", "-o=json"]).expect(0);
    let reported: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&reported["claims"], &reported["sums"]["denied"]["claims"]),
        (&json!([]), &json!(0))
    );
}

#[test]
fn a_workload_that_is_not_there_and_a_name_that_is_none_are_usage_errors() {
    let project = project();
    for command in [
        &["restart"][..],
        &["scale", "--replicas=1"],
        &["rollout", "status"],
        &["rollout", "history"],
    ] {
        // The context names no namespace.
        let ran = run(&project, &[command, &["web"]].concat()).expect(2);
        assert!(
            ran.err.contains("workload web not found in namespace default") && ran.err.contains("-n"),
            "{}",
            ran.err
        );
        let ran = run(&project, &[command, &["wd/web-us-dfw"]].concat()).expect(2);
        assert!(ran.err.contains("follows its Workload"), "{}", ran.err);
        run(&project, &[command, &["web", "-n=a/b"]].concat()).expect(2);
    }
    let dead = finish(command().args(["quota", "--kubeconfig", "kubeconfig-dead.yaml"])).expect(4);
    assert!(dead.err.contains("127.0.0.1:1"), "{}", dead.err);
}
