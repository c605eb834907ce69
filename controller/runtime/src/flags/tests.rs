use std::process::Command as Process;

use super::*;

fn flags(line: &str) -> Result<Flags, String> {
    let words = format!("popcell-controller {line}");
    Flags::read_from(words.split_ascii_whitespace().map(OsString::from)).map_err(|error| error.to_string())
}

/// The variable that each flag reads, in an environment.
fn variables(environment: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
    let find = |name: &str| environment.iter().find(|(key, _)| *key == name);
    let command = command(|name| find(name).map(|(_, value)| OsString::from(value))).unwrap();
    command
        .get_arguments()
        .map(|one| {
            let variable = one.get_env().and_then(OsStr::to_str).map(str::to_owned);
            (one.get_id().to_string(), variable)
        })
        .collect()
}

fn variable(flag: &str, environment: &[(&str, &str)]) -> Option<String> {
    let all = variables(environment);
    let (_, variable) = all.into_iter().find(|(id, _)| id == flag).unwrap();
    variable
}

#[test]
fn the_command_is_well_formed() {
    Flags::command().debug_assert();
}

#[test]
fn every_flag_is_an_environment_variable() {
    for (flag, variable) in variables(&[]) {
        // $KUBECONFIG may name several files and comes after the pod's own credentials: settings look at it.
        let expected = (flag != "kubeconfig").then(|| flag.to_uppercase());
        assert_eq!(variable, expected, "{flag}");
    }
}

#[test]
fn no_controller_runs_by_default() {
    let flags = flags("").unwrap();
    assert!(!flags.enable_management_controllers && !flags.enable_cell_controllers);
    assert!(!flags.dry_run && !flags.reclaim_orphans && flags.leader_elect);
    assert_eq!(flags.health_probe_bind_address, ":8081".parse().unwrap());
    assert_eq!(flags.project_grace, Duration::from_hours(1));
    assert_eq!(flags.cell_grace, Duration::from_hours(1));
    assert_eq!((flags.workers, flags.log_format), (16, LogFormat::Text));
}

#[test]
fn networking_is_a_switch_as_before_and_auto_by_default() {
    for (line, expected) in [
        ("", Networking::Auto),
        ("--networking=auto", Networking::Auto),
        ("--networking=", Networking::Auto),
        ("--networking", Networking::On),
        ("--networking=true", Networking::On),
        ("--networking=1", Networking::On),
        ("--networking=false", Networking::Off),
        ("--networking=off", Networking::Off),
        ("--networking=false --networking", Networking::On),
    ] {
        assert_eq!(flags(line).unwrap().networking, expected, "{line}");
    }
    let error = flags("--networking=maybe").unwrap_err();
    assert!(error.contains("not auto, true or false"), "{error}");
}

#[test]
fn switches_are_written_as_in_go() {
    for (line, expected) in [
        ("--leader-elect", true),
        ("--leader-elect=true", true),
        ("--leader-elect=false", false),
        ("--leader-elect=0", false),
        ("--leader-elect --leader-elect=false", false),
        ("--leader-elect=", true),
    ] {
        assert_eq!(flags(line).unwrap().leader_elect, expected, "{line}");
    }
    assert!(
        !flags("--enable-management-controllers=false")
            .unwrap()
            .enable_management_controllers
    );
    let both = flags("--enable-management-controllers --enable-cell-controllers=true").unwrap();
    assert!(both.enable_management_controllers && both.enable_cell_controllers);
}

#[test]
fn the_federation_kubeconfig_is_accepted_under_its_older_names() {
    let [_, upstream, downstream, karmada] = FEDERATION_NAMES;
    for name in ["federation", "upstream", "downstream", "karmada"] {
        let given = flags(&format!("--{name}-kubeconfig=hub")).unwrap();
        assert_eq!(given.federation_kubeconfig, Some("hub".into()));
    }
    let read = |environment: &[(&str, &str)]| variable("federation_kubeconfig", environment);
    for (environment, name) in [
        (&[(upstream, "a")][..], upstream),
        (&[(downstream, "a")], downstream),
        (&[(karmada, "a")], karmada),
        (&[(upstream, "a"), (FEDERATION, "")], upstream),
        (&[(upstream, "a"), (FEDERATION, "a")], FEDERATION),
        (&[(karmada, "a"), (downstream, "a")], downstream),
        (&[(upstream, "")], FEDERATION),
    ] {
        assert_eq!(read(environment).as_deref(), Some(name), "{environment:?}");
    }
    for (newer, older) in [
        (FEDERATION, upstream),
        (upstream, karmada),
        (downstream, karmada),
        (FEDERATION, downstream),
    ] {
        let differ = |name: &str| [newer, older].contains(&name).then(|| OsString::from(name));
        let message = command(differ).unwrap_err().to_string();
        let expected = format!("{older} and {newer} differ, and they mean the same: unset {older}");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn what_is_empty_is_not_given() {
    assert_eq!(variable("leader_elect", &[("LEADER_ELECT", "")]), None);
    let set = variable("leader_elect", &[("LEADER_ELECT", "false")]);
    assert_eq!(set.as_deref(), Some("LEADER_ELECT"));
    let given = flags("--upstream-kubeconfig= --federation-kubeconfig= --server-config= --health-probe-bind-address=");
    let given = given.unwrap();
    assert_eq!((given.federation_kubeconfig, given.server_config), (None, None));
    let unknown = flags("--no-such-flag=").unwrap_err();
    assert!(unknown.contains("--no-such-flag"), "{unknown}");
}

#[test]
fn values_are_checked_with_the_fix() {
    for (line, expected) in [
        ("--leader-elect=maybe", "--leader-elect"),
        ("--leader-elect false", "unexpected argument 'false'"),
        ("--project-grace 1", "such as 90s, 30m or 1h"),
        ("--project-grace=-1h", "such as 90s, 30m or 1h"),
        ("--workers 0", "1..=256"),
        ("--hub-instances-per-namespace 1000001", "0..=1000000"),
        ("--health-probe-bind-address 8081", "such as :8081"),
        ("--log-format xml", "possible values: text, json"),
    ] {
        let message = flags(line).unwrap_err();
        assert!(message.contains(expected), "{line}: {message}");
    }
    for (text, minutes) in [("0s", 0), ("90m", 90), ("1h30m", 90), ("1.5h", 90)] {
        let grace = flags(&format!("--project-grace {text}")).unwrap().project_grace;
        assert_eq!(grace, Duration::from_mins(minutes), "{text}");
    }
}

/// Variables of a process can be set from outside only, so the test runs itself.
#[test]
fn the_environment_is_read_and_a_flag_wins() {
    const CHILD: &str = "POPCELL_TEST_FLAGS";
    if let Ok(line) = std::env::var(CHILD) {
        println!("{:?}", flags(&line));
        return;
    }
    let read = |line: &str, environment: &[(&str, &str)]| {
        let mut process = Process::new(std::env::current_exe().unwrap());
        process.args([
            "--exact",
            "--nocapture",
            "flags::tests::the_environment_is_read_and_a_flag_wins",
        ]);
        let output = process
            .env(CHILD, line)
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for (line, environment, expected) in [
        (
            "",
            [("LEADER_ELECT", "false"), ("WORKERS", "3")],
            ["leader_elect: false", "workers: 3"],
        ),
        (
            "--leader-elect",
            [("LEADER_ELECT", "false"), ("DRY_RUN", "")],
            ["leader_elect: true", "dry_run: false"],
        ),
        (
            "",
            [("KARMADA_KUBECONFIG", "/hub"), (FEDERATION, "")],
            [
                "federation_kubeconfig: Some(\"/hub\")",
                "enable_cell_controllers: false",
            ],
        ),
        (
            "",
            [("ENABLE_CELL_CONTROLLERS", "true"), ("HEALTH_PROBE_BIND_ADDRESS", "0")],
            ["enable_cell_controllers: true", "health_probe_bind_address: Off"],
        ),
        ("", [("WORKERS", "many"), ("DRY_RUN", "")], ["Err(", "--workers"]),
    ] {
        let output = read(line, &environment);
        for part in expected {
            assert!(output.contains(part), "{environment:?}: {output}");
        }
    }
}
