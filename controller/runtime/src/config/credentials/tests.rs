use super::*;

/// A kubeconfig with contexts `a`, its current one, and `b`; the texts go into each cluster and user.
fn kubeconfig(cluster: &str, user: &str) -> String {
    let both = |entry: fn(&str, &str) -> String, text: &str| ["a", "b"].map(|name| entry(name, text)).join("\n");
    let clusters = both(
        |name, text| format!("- {{name: {name}, cluster: {{server: \"https://{name}:6443\"{text}}}}}"),
        cluster,
    );
    let users = both(|name, text| format!("- {{name: {name}, user: {{{text}}}}}"), user);
    let contexts = both(
        |name, _| format!("- {{name: {name}, context: {{cluster: {name}, user: {name}}}}}"),
        "",
    );
    format!("current-context: a\nclusters:\n{clusters}\nusers:\n{users}\ncontexts:\n{contexts}\n")
}

struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn hub(file: &Path, context: Option<&str>) -> Credentials {
    Credentials::File {
        setting: "--federation-kubeconfig",
        file: file.to_owned(),
        context: context.map(str::to_owned),
    }
}

#[tokio::test]
async fn a_kubeconfig_gives_the_server_of_its_context() {
    let files = Files::new();
    files.write("token", "secret");
    let file = files.write("hub", &kubeconfig("", "tokenFile: token"));
    for (context, server) in [(None, "https://a:6443/"), (Some("b"), "https://b:6443/")] {
        let config = hub(&file, context).load().await.unwrap();
        assert_eq!(config.cluster_url.to_string(), server);
        // Relative to the kubeconfig, and read again by kube while the process runs.
        let token = config.auth_info.token_file.unwrap();
        assert_eq!(Path::new(&token), files.directory.path().join("token"));
    }
}

#[tokio::test]
async fn the_files_of_the_variable_are_merged() {
    let files = Files::new();
    let only = "current-context: b\n";
    let first = files.write("first", only);
    let second = files.write("second", &kubeconfig("", "token: t"));
    let list = format!("{}:{}", first.display(), second.display());
    let config = Credentials::Variable { files: list }.load().await.unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://b:6443/");
}

#[tokio::test]
async fn credentials_that_cannot_be_used_are_named_with_their_setting_and_file() {
    let files = Files::new();
    files.write("empty", " \n");
    let no_such = "failed to load current context: c";
    for (cluster, user, context, expected) in [
        (
            "",
            "tokenFile: nowhere",
            None,
            "its tokenFile {dir}/nowhere cannot be read: No such file",
        ),
        ("", "tokenFile: empty", None, "its tokenFile {dir}/empty is empty"),
        (
            "",
            "client-key: nowhere",
            None,
            "its client-key {dir}/nowhere cannot be read",
        ),
        (
            ", certificate-authority: nowhere",
            "",
            None,
            "failed to load certificate authority",
        ),
        (
            "",
            "client-certificate-data: '!', client-key-data: '!'",
            None,
            "failed to make a client of {file}",
        ),
        (", server: \"\"", "", None, "duplicate"),
        ("", "", Some("c"), no_such),
    ] {
        let file = files.write("hub", &kubeconfig(cluster, user));
        let error = hub(&file, context).load().await.unwrap_err();
        let message = crate::error::chain(&error);
        let expected = expected
            .replace("{dir}", files.directory.path().to_str().unwrap())
            .replace("{file}", file.to_str().unwrap());
        assert!(message.contains(&expected), "{user}: {message}");
        assert!(message.contains(&*file.to_string_lossy()), "{message}");
        assert!(message.contains("--federation-kubeconfig"), "{message}");
    }
}
