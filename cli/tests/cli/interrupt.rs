//! What a person at a terminal does.

use std::{
    net::TcpListener,
    process::{Command, Stdio},
    time::Duration,
};

use crate::program::{command, scratch};

#[test]
fn an_interrupt_ends_with_130() {
    // A server that takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let server = silent.local_addr().unwrap();
    let folder = scratch();
    let kubeconfig = folder.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: silent\n\
         clusters: [{{name: silent, cluster: {{server: 'https://{server}'}}}}]\n\
         users: [{{name: silent, user: {{token: none}}}}]\n\
         contexts: [{{name: silent, context: {{cluster: silent, user: silent}}}}]\n"
    );
    std::fs::write(&kubeconfig, text).unwrap();
    let mut child = command()
        .arg("doctor")
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _waiting = loop {
        if let Ok(connection) = silent.accept() {
            break connection;
        }
        assert_eq!(child.try_wait().unwrap(), None, "it ended without asking");
        std::thread::sleep(Duration::from_millis(10));
    };
    let sent = Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
