//! Volumes of a Pod, with the content that a kubelet gives them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{list, write};
use crate::kind::{CONFIG_MAP, Kind, SECRET};
use crate::{Lab, Plane};

/// Where kubelets mount the service account's token.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The driver of cert-manager's certificates.
const CERTIFICATES: &str = "csi.cert-manager.io";

pub(super) struct Volumes<'a> {
    pub(super) lab: &'a Lab,
    pub(super) home: &'a Plane,
    pub(super) namespace: &'a str,
    /// Spec of the Pod.
    pub(super) pod: &'a Value,
    pub(super) dir: &'a Path,
}

impl Volumes<'_> {
    /// Fills all volumes; answers what is mounted for the container, and which of its directories are writable.
    pub(super) async fn mounted(&self, container: &Value) -> Result<(Vec<Value>, Vec<Value>)> {
        let (mut mounts, mut empty) = (Vec::new(), Vec::new());
        for mount in list(&container["volumeMounts"]) {
            let known = ["name", "mountPath", "readOnly"];
            let keys = mount.as_object().into_iter().flat_map(|mount| mount.keys());
            for key in keys {
                ensure!(
                    known.contains(&key.as_str()),
                    "{key} of a mount is not understood: {mount}"
                );
            }
            let name = mount["name"].as_str().context("a mount without a name")?;
            let mut volumes = list(&self.pod["volumes"]).iter();
            let volume = volumes.find(|volume| volume["name"] == name);
            let volume = volume.with_context(|| format!("no volume {name}"))?;
            if volume.get("emptyDir").is_some() {
                empty.push(mount["mountPath"].clone());
                continue;
            }
            ensure!(mount["readOnly"] == true, "volume {name} is mounted to be written to");
            let dir = self.dir.join("volumes").join(name);
            let filled = self.fill(volume, &dir).await;
            filled.with_context(|| format!("failed to fill volume {name}"))?;
            mounts.push(json!({ "from": dir, "to": mount["mountPath"] }));
        }
        if self.pod["automountServiceAccountToken"] == true {
            let dir = self.dir.join("volumes/.account");
            self.account(&dir)
                .await
                .context("failed to mount the account's token")?;
            mounts.push(json!({ "from": dir, "to": ACCOUNT }));
        }
        Ok((mounts, empty))
    }

    async fn fill(&self, volume: &Value, dir: &Path) -> Result<()> {
        fs::create_dir_all(dir).with_context(|| format!("failed to make {}", dir.display()))?;
        if let Some(source) = volume.get("configMap") {
            return self.keys(CONFIG_MAP, &source["name"], source, dir).await;
        }
        if let Some(source) = volume.get("secret") {
            return self.keys(SECRET, &source["secretName"], source, dir).await;
        }
        if let Some(projected) = volume.get("projected") {
            for source in list(&projected["sources"]) {
                let token = source.get("serviceAccountToken");
                let token = token.with_context(|| format!("{source} is not understood"))?;
                let asked = json!({
                    "audiences": [token["audience"]], "expirationSeconds": token["expirationSeconds"],
                });
                let text = self.token(&asked).await?;
                let path = token["path"].as_str().context("a token without a path")?;
                self.file(dir, path, text.as_bytes(), &projected["defaultMode"])?;
            }
            return Ok(());
        }
        if let Some(csi) = volume.get("csi") {
            return self.certificate(csi, dir).await;
        }
        bail!("{volume} is not understood")
    }

    /// What is in the volume of a ConfigMap or Secret.
    async fn keys(&self, kind: Kind, name: &Value, source: &Value, dir: &Path) -> Result<()> {
        let name = name.as_str().context("no name")?;
        let object = self.home.expect(kind, Some(self.namespace), name).await?;
        let content = content(&object)?;
        let items: Vec<(String, String)> = match source.get("items") {
            None => content.iter().map(|(key, _)| (key.clone(), key.clone())).collect(),
            Some(items) => list(items)
                .iter()
                .map(|item| Some((item["key"].as_str()?.to_owned(), item["path"].as_str()?.to_owned())))
                .collect::<Option<_>>()
                .context("an item without key or path")?,
        };
        for (key, path) in items {
            let found = content.iter().find(|(found, _)| *found == key);
            let (_, bytes) = found.with_context(|| format!("{} {name} has no key {key}", kind.kind))?;
            self.file(dir, &path, bytes, &source["defaultMode"])?;
        }
        Ok(())
    }

    /// What cert-manager's driver makes, from the lab's authority.
    async fn certificate(&self, csi: &Value, dir: &Path) -> Result<()> {
        let attributes = &csi["volumeAttributes"];
        let attribute = |name: &str| attributes[format!("{CERTIFICATES}/{name}")].as_str();
        ensure!(
            csi["driver"] == CERTIFICATES && csi["readOnly"] == true,
            "{csi} is not understood"
        );
        ensure!(attribute("issuer-name").is_some(), "no issuer is named: {csi}");
        let names = attribute("dns-names").context("no names")?.replace(',', " ");
        let group = attribute("fs-group").and_then(|group| group.parse::<u64>().ok());
        ensure!(group == self.fs_group(), "the Pod cannot read the certificate: {csi}");
        let (certificate, key) = self.lab.server_certificate("csi", &names).await?;
        for (file, name) in [
            (certificate, "tls.crt"),
            (key, "tls.key"),
            (self.lab.ca_file().to_owned(), "ca.crt"),
        ] {
            self.file(dir, name, &read(&file)?, &json!(0o440))?;
        }
        Ok(())
    }

    /// The three files of the account, at the server that the Pod runs on.
    async fn account(&self, dir: &Path) -> Result<()> {
        let mode = json!(0o644);
        self.file(dir, "token", self.token(&json!({})).await?.as_bytes(), &mode)?;
        self.file(dir, "ca.crt", &read(self.lab.ca_file())?, &mode)?;
        self.file(dir, "namespace", self.namespace.as_bytes(), &mode)
    }

    async fn token(&self, asked: &Value) -> Result<String> {
        let account = self.pod["serviceAccountName"].as_str().context("no service account")?;
        self.home.requested_token(self.namespace, account, asked).await
    }

    fn fs_group(&self) -> Option<u64> {
        self.pod["securityContext"]["fsGroup"].as_u64()
    }

    /// Files are root's, and their group is the Pod's.
    fn file(&self, dir: &Path, path: &str, content: &[u8], mode: &Value) -> Result<()> {
        let file: PathBuf = dir.join(path);
        let mode = mode.as_u64().context("no mode")?;
        write(&file, content)?;
        let group = self.fs_group().context("no fsGroup")?;
        chown(&file, Some(0), Some(u32::try_from(group)?)).context("failed to give a file to the Pod's group")?;
        fs::set_permissions(&file, Permissions::from_mode(u32::try_from(mode)?)).context("failed to set a mode")
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("failed to read {}", file.display()))
}

/// Keys and bytes of a ConfigMap or Secret.
fn content(object: &DynamicObject) -> Result<Vec<(String, Vec<u8>)>> {
    let is_secret = object.types.as_ref().is_some_and(|types| types.kind == SECRET.kind);
    let mut found = Vec::new();
    for (field, is_text) in [("data", !is_secret), ("binaryData", false)] {
        for (key, value) in object.data[field].as_object().into_iter().flatten() {
            let text = value.as_str().context("a value is no text")?;
            let bytes = if is_text {
                text.as_bytes().to_vec()
            } else {
                STANDARD.decode(text).context("a value is no base64")?
            };
            found.push((key.clone(), bytes));
        }
    }
    Ok(found)
}
