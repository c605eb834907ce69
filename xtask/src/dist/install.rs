//! What is applied to clusters: a file for each overlay, and a Helm chart, both made from what kustomize makes of the manifests.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use popcell_test_support::manifests::{self, API_SERVERS};
use popcell_test_support::{artifacts, workspace};
use serde_json::{Value, json};

use super::Release;
use super::archive::Tree;
use super::image::REPOSITORY;

/// What is for developers.
const NOT_SHIPPED: &str = "overlays/dev";
/// The name of the generated ConfigMap of the controller, before its hash.
const CONFIGURATION: &str = "compute-config-";

/// In place of what is a value of the chart: plain in YAML, and in no manifest.
const IMAGE: &str = "POPCELL-CHART-IMAGE";
const API_SERVER_BLOCKS: &str = "POPCELL-CHART-API-SERVERS";
const CONFIGURATION_TEXT: &str = "POPCELL-CHART-CONFIGURATION";
const CONFIGURATION_HASH: &str = "POPCELL-CHART-HASH";
const DIGEST_OF_RELEASE: &str = "POPCELL-CHART-DIGEST";

/// By this Helm keeps what it would delete: with a CRD or a Namespace goes all that users have in it.
const KEEP: (&str, &str) = ("helm.sh/resource-policy", "keep");
/// What it is for.
const KEPT: [&str; 2] = ["CustomResourceDefinition", "Namespace"];

/// What one overlay makes.
pub(super) struct Installation {
    /// What it is called in the chart, and its file.
    pub(super) name: String,
    /// Its objects, as YAML.
    pub(super) text: String,
}

/// All overlays, each with the image by its digest.
///
/// # Errors
/// One cannot be made.
pub(super) fn render(release: &Release, digest: &str) -> Result<Vec<Installation>> {
    let kustomize = artifacts::lab_programs()?.join("kustomize");
    let (tagged, pinned) = (release.image(), format!("{}@{digest}", release.image()));
    let mut rendered = Vec::new();
    for overlay in manifests::overlays()? {
        if overlay == Path::new(NOT_SHIPPED) {
            continue;
        }
        let output = Command::new(&kustomize)
            .arg("build")
            .arg(workspace::root().join("manifests").join(&overlay))
            .output();
        let output = output.with_context(|| format!("failed to start {}", kustomize.display()))?;
        ensure!(
            output.status.success(),
            "kustomize build {} failed: {}",
            overlay.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let text = String::from_utf8(output.stdout).context("kustomize wrote something that is no text")?;
        rendered.push(Installation {
            name: name_of(&overlay),
            text: text.replace(&tagged, &pinned),
        });
    }
    Ok(rendered)
}

/// `webhook` for webhook/overlays/default, `cell` for overlays/cell, and so on.
fn name_of(overlay: &Path) -> String {
    let parts = overlay.iter().map(|part| part.to_string_lossy());
    let parts: Vec<_> = parts
        .filter(|part| !["overlays", "default"].contains(&&**part))
        .collect();
    parts.join("-")
}

/// The chart, below the directory `popcell`.
///
/// # Errors
/// What kustomize made is no YAML.
pub(super) fn chart(installations: &[Installation], release: &Release, digest: &str) -> Result<Tree> {
    let mut chart = Tree::default();
    let mut put = |name: &str, text: String| chart.text(&format!("popcell/{name}"), text);
    let about = json!({
        "apiVersion": "v2",
        "name": "popcell",
        "description": "Compute that is declared once and runs in the cells of Karmada",
        "type": "application",
        "version": release.version,
        "appVersion": release.version,
        "kubeVersion": ">=1.31.0-0",
    });
    put("Chart.yaml", yaml(&about)?);
    let values = json!({
        "install": "",
        "image": { "repository": REPOSITORY, "tag": release.version, "digest": "" },
        "apiServers": [],
        "config": "",
    });
    put("values.yaml", format!("{VALUES_HEAD}{}", yaml(&values)?));
    let names: Vec<&str> = installations.iter().map(|one| one.name.as_str()).collect();
    put("values.schema.json", schema(&names).to_string());
    put("templates/_values.tpl", HELPERS.replace(DIGEST_OF_RELEASE, digest));
    for Installation { name, text } in installations {
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(text).context("kustomize wrote something that is no YAML")?;
        let template = template(name, objects, release, digest)?;
        put(&format!("templates/{name}.yaml"), template.text);
        if let Some(configuration) = template.configuration {
            put(&format!("config/{name}.yaml"), configuration);
        }
    }
    Ok(chart)
}

const VALUES_HEAD: &str = "\
# install: what this release is; one release for each, in the cluster that it is for. The names are those of the install files.
# image: where you keep it. With the tag of this release it is named by its digest, which is the same in each registry.
# apiServers: for management-plane and single-cluster, the addresses that your API servers call webhooks from: [192.0.2.0/24].
# config: the config file of popcell-controller, in place of config/NAME.yaml of this chart; a cell has to be given its own.
";

const HELPERS: &str = r#"{{- define "popcell.image" -}}
{{- with .Values.image -}}
{{ .repository }}:{{ .tag }}
{{- with .digest | default (ternary "POPCELL-CHART-DIGEST" "" (eq .tag $.Chart.AppVersion)) }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}
{{- define "popcell.apiServers" -}}
{{- $from := list -}}
{{- if not .Values.apiServers -}}
{{- fail "set apiServers to the addresses that your API servers call webhooks from, such as [192.0.2.0/24]" -}}
{{- end -}}
{{- range .Values.apiServers -}}
{{- $from = append $from (dict "ipBlock" (dict "cidr" .)) -}}
{{- end -}}
{{- toJson $from -}}
{{- end -}}
{{- define "popcell.config" -}}
{{- if and (eq .Values.install "cell") (not .Values.config) -}}
{{- fail "set config to the config file of this cell, which names it: config/cell.yaml of the chart has an example" -}}
{{- end -}}
{{- .Values.config | default (.Files.Get (printf "config/%s.yaml" .Values.install)) -}}
{{- end -}}
"#;

fn schema(names: &[&str]) -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "install": { "enum": names },
            "image": {
                "type": "object",
                "additionalProperties": false,
                "required": ["repository", "tag"],
                "properties": {
                    "repository": { "type": "string", "minLength": 1 },
                    "tag": { "type": "string", "minLength": 1 },
                    "digest": { "type": "string" },
                },
            },
            "apiServers": { "type": "array", "items": { "type": "string" } },
            "config": { "type": "string" },
            "global": { "type": "object" },
        },
    })
}

struct Template {
    text: String,
    /// The config file that the objects bring.
    configuration: Option<String>,
}

fn template(name: &str, mut objects: Vec<Value>, release: &Release, digest: &str) -> Result<Template> {
    let image = format!("{}@{digest}", release.image());
    let mut configuration = None;
    let mut named = None;
    for object in &mut objects {
        if KEPT.iter().any(|kind| object["kind"] == *kind) {
            object["metadata"]["annotations"][KEEP.0] = json!(KEEP.1);
        }
        let is_configured = object["metadata"]["name"]
            .as_str()
            .filter(|name| name.starts_with(CONFIGURATION));
        if let Some(whole) = is_configured.filter(|_| object["kind"] == "ConfigMap") {
            named = Some(whole.to_owned());
            let text = &mut object["data"]["config.yaml"];
            configuration = text.as_str().map(str::to_owned);
            *text = json!(CONFIGURATION_TEXT);
        }
        let rules = object.pointer_mut("/spec/ingress").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten() {
            if rule["from"][0]["ipBlock"]["cidr"] == API_SERVERS {
                rule["from"] = json!(API_SERVER_BLOCKS);
            }
        }
    }
    let mut text = format!("{{{{- if eq .Values.install {name:?} }}}}\n");
    for object in &objects {
        let object = yaml(object)?.replace("{{", "{{ \"{{\" }}").replace(&image, IMAGE);
        let object = match &named {
            Some(named) => object.replace(named, &format!("{CONFIGURATION}{CONFIGURATION_HASH}")),
            None => object,
        };
        text.push_str("---\n");
        text.push_str(&object);
    }
    for (mark, value) in [
        (IMAGE, r#"{{ include "popcell.image" . }}"#),
        (API_SERVER_BLOCKS, r#"{{ include "popcell.apiServers" . }}"#),
        (CONFIGURATION_TEXT, r#"{{ include "popcell.config" . | toJson }}"#),
        (
            CONFIGURATION_HASH,
            r#"{{ include "popcell.config" . | sha256sum | trunc 10 }}"#,
        ),
    ] {
        text = text.replace(mark, value);
    }
    text.push_str("{{- end }}\n");
    Ok(Template { text, configuration })
}

fn yaml(value: &Value) -> Result<String> {
    let text = serde_saphyr::to_string(value).context("failed to write YAML")?;
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

/// Writes the install files into a new directory.
pub(super) fn write(directory: &Path, installations: &[Installation]) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("failed to make {}", directory.display()))?;
    for Installation { name, text } in installations {
        let file = directory.join(format!("{name}.yaml"));
        fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:c0ffee";

    #[test]
    fn what_operators_choose_is_a_value_of_the_chart_and_all_else_stays() {
        let release = Release::example();
        let objects = vec![
            json!({ "kind": "ConfigMap", "metadata": { "name": "compute-config-abc" }, "data": { "config.yaml": "mode: single\n" } }),
            json!({ "kind": "Deployment", "spec": { "image": format!("{REPOSITORY}:1.2.3@{DIGEST}"), "config": "compute-config-abc",
                "note": "a {{ b }}" } }),
            json!({ "kind": "NetworkPolicy", "spec": { "ingress": [{ "from": [{ "ipBlock": { "cidr": API_SERVERS } }] }] } }),
        ];
        let made = template("cell", objects, &release, DIGEST).unwrap();
        assert_eq!(made.configuration.as_deref(), Some("mode: single\n"));
        for line in [
            "{{- if eq .Values.install \"cell\" }}\n",
            "image: {{ include \"popcell.image\" . }}\n",
            "name: compute-config-{{ include \"popcell.config\" . | sha256sum | trunc 10 }}\n",
            "config: compute-config-{{ include \"popcell.config\" . | sha256sum | trunc 10 }}\n",
            "config.yaml: {{ include \"popcell.config\" . | toJson }}\n",
            "from: {{ include \"popcell.apiServers\" . }}\n",
            "a {{ \"{{\" }} b }}",
        ] {
            assert!(made.text.contains(line), "{line}\n{}", made.text);
        }
    }

    #[test]
    fn overlays_have_short_names() {
        for (overlay, name) in [
            ("overlays/cell", "cell"),
            ("webhook/overlays/default", "webhook"),
            ("hub-rbac", "hub-rbac"),
        ] {
            assert_eq!(name_of(overlay.as_ref()), name);
        }
    }

    /// That of the overlay.
    const CELL_CONFIG: &str = include_str!("../../../manifests/overlays/cell/config.yaml");

    /// What Helm makes of the chart with these values, or why it makes nothing.
    fn helm(chart: &Path, values: &Value) -> Result<String, String> {
        let home = chart.parent().unwrap();
        let file = home.join("values.json");
        fs::write(&file, values.to_string()).unwrap();
        let mut helm = Command::new(artifacts::lab_programs().unwrap().join("helm"));
        helm.args(["template", "popcell", "--kube-version=1.31.0"])
            .arg(chart)
            .arg("--values")
            .arg(&file);
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            helm.env(variable, home);
        }
        let output = helm.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        }
    }

    /// Objects in an order of their own, and the controller's ConfigMap without its hash.
    fn objects(text: &str) -> Vec<String> {
        let mut parts = text.split(CONFIGURATION);
        let mut named = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            named.push_str("compute-config");
            named.push_str(part.trim_start_matches(|one: char| one.is_ascii_alphanumeric()));
        }
        let found: Vec<Value> = serde_saphyr::from_multiple(&named).unwrap();
        let without_policy = |mut one: Value| {
            let is_kept = KEPT.iter().any(|kind| one["kind"] == *kind);
            let annotations = one.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
            assert!(annotations.and_then(|all| all.remove(KEEP.0)).is_none() || is_kept);
            if one.pointer("/metadata/annotations") == Some(&json!({})) {
                one["metadata"].as_object_mut().unwrap().remove("annotations");
            }
            one.to_string()
        };
        let found = found.into_iter().filter(|one| !one.is_null());
        let mut found: Vec<String> = found.map(without_policy).collect();
        found.sort();
        found
    }

    #[test]
    fn the_chart_makes_what_the_install_files_have() {
        let release = Release {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Release::example()
        };
        let installations = render(&release, DIGEST).unwrap();
        let names: Vec<&str> = installations.iter().map(|one| one.name.as_str()).collect();
        assert!(
            ["cell", "management-plane", "single-cluster", "webhook"]
                .iter()
                .all(|name| names.contains(name))
        );
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("chart.tgz");
        super::super::compress(&file, &chart(&installations, &release, DIGEST).unwrap(), &release).unwrap();
        let mut pinned = 0;
        for Installation { name, text } in &installations {
            let config = if name == "cell" { CELL_CONFIG } else { "" };
            let values = json!({ "install": name, "apiServers": [API_SERVERS], "config": config });
            let made = helm(&file, &values).unwrap();
            let is_kept = |kind: &&str| made.contains(&format!("kind: {kind}\n"));
            assert_eq!(
                made.contains("helm.sh/resource-policy: keep"),
                KEPT.iter().any(is_kept),
                "{name}"
            );
            let (made, expected) = (objects(&made), objects(text));
            let others: Vec<&String> = made.iter().filter(|one| !expected.contains(one)).collect();
            assert!(others.is_empty() && made.len() == expected.len(), "{name}: {others:?}");
            pinned += text.matches(&format!("{}@{DIGEST}", release.image())).count();
        }
        assert_eq!(pinned, 5, "an image without its digest, or a Deployment more");
        let other = json!({ "install": "cell", "config": "mode: other", "image": { "repository": "r.example/p", "tag": "2", "digest": "" } });
        let made = helm(&file, &other).unwrap();
        assert!(
            made.contains("image: r.example/p:2\n") && made.contains("config.yaml: \"mode: other\"\n"),
            "{made}"
        );
        for (values, says) in [
            (json!({}), "install"),
            (json!({ "install": "cells" }), "install"),
            (
                json!({ "install": "management-plane" }),
                "set apiServers to the addresses",
            ),
            (
                json!({ "install": "cell" }),
                "set config to the config file of this cell",
            ),
            (json!({ "install": "cell", "imag": {} }), "imag"),
        ] {
            let refused = helm(&file, &values).unwrap_err();
            assert!(refused.contains(says), "{refused}");
        }
    }
}
