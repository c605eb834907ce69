//! A Pod of the manifests, as the program in it finds it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use popcell_controller_runtime::config::{ProcessEnvironment, ServerConfig, Settings};
use popcell_controller_runtime::flags::Flags;
use serde_json::Value;

use crate::manifests::only;

/// Where kubelets put the service account's token.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// The Secret that cert-manager writes for `components/serving-certificate`.
pub(crate) const SERVING_CERTIFICATE: &str = "compute-serving-cert";

/// A Pod as the program in it finds it, with the objects that came along.
pub(crate) struct Pod<'a> {
    shipped: &'a [Value],
    namespace: &'a str,
    spec: &'a Value,
}

impl<'a> Pod<'a> {
    /// The Pods of the one Deployment.
    pub(crate) fn of(shipped: &'a [Value]) -> Result<Self> {
        let deployment = only(shipped, "Deployment")?;
        Ok(Self {
            shipped,
            namespace: deployment["metadata"]["namespace"].as_str().context("no namespace")?,
            spec: &deployment["spec"]["template"]["spec"],
        })
    }

    /// What the program makes of its environment and of the file that came along.
    pub(crate) fn settings(&self) -> Result<(Flags, Settings)> {
        let flags = Flags::read_from(self.arguments()).context("the environment is refused")?;
        let file = flags.server_config.clone().context("no config file")?;
        let text = self
            .shipped_text(&file)
            .with_context(|| format!("no {}", file.display()))?;
        let settings = Settings::resolve(&flags, &ServerConfig::parse(&file, text)?, self)?;
        Ok((flags, settings))
    }

    /// The user that a token of the Pods names.
    pub(crate) fn user(&self) -> Result<String> {
        let account = self.spec["serviceAccountName"].as_str().context("no service account")?;
        Ok(format!("system:serviceaccount:{}:{account}", self.namespace))
    }

    /// The Pods' own description.
    pub(crate) fn spec(&self) -> &Value {
        self.spec
    }

    /// The port of a name.
    pub(crate) fn port(&self, name: &str) -> Option<u64> {
        let mut ports = self.container()["ports"].as_array().into_iter().flatten();
        ports.find(|port| port["name"] == name)?["containerPort"].as_u64()
    }

    fn container(&self) -> &Value {
        &self.spec["containers"][0]
    }

    /// The environment as arguments: every flag is a variable of its name (controller/runtime/src/flags.rs).
    fn arguments(&self) -> Vec<std::ffi::OsString> {
        let variables = self.container()["env"].as_array().into_iter().flatten();
        let flags = variables.filter_map(|variable| {
            let name = variable["name"].as_str()?.to_lowercase().replace('_', "-");
            Some(format!("--{name}={}", variable["value"].as_str()?).into())
        });
        [self.container()["command"][0].as_str().unwrap_or_default().into()]
            .into_iter()
            .chain(flags)
            .collect()
    }

    /// The volume that a file is in, and the file's path there.
    fn volume(&self, file: &Path) -> Option<(&Value, PathBuf)> {
        let mounts = self.container()["volumeMounts"].as_array()?;
        mounts.iter().find_map(|mount| {
            let path = file.strip_prefix(mount["mountPath"].as_str()?).ok()?;
            let mut volumes = self.spec["volumes"].as_array()?.iter();
            Some((volumes.find(|volume| volume["name"] == mount["name"])?, path.to_owned()))
        })
    }

    /// The text of a file, where it is from a ConfigMap that came along.
    pub(crate) fn shipped_text(&self, file: &Path) -> Option<&str> {
        let (volume, key) = self.volume(file)?;
        let name = &volume["configMap"]["name"];
        let mut maps = self.shipped.iter().filter(|object| object["kind"] == "ConfigMap");
        maps.find(|map| map["metadata"]["name"] == *name)?["data"][key.to_str()?].as_str()
    }
}

impl ProcessEnvironment for Pod<'_> {
    fn has(&self, file: &Path) -> bool {
        if file == Path::new(TOKEN) {
            return self.spec["automountServiceAccountToken"] == true;
        }
        let Some((volume, path)) = self.volume(file) else {
            return false;
        };
        let is_certificate = [Path::new("tls.crt"), Path::new("tls.key")].contains(&path.as_path());
        match volume
            .as_object()
            .and_then(|volume| volume.keys().find(|key| *key != "name"))
            .map(String::as_str)
        {
            // What the operator gives has the keys that the heads of components ask for.
            Some("configMap") => self.shipped_text(file).is_some() || path == Path::new("ca.crt"),
            Some("projected") => path == Path::new("token"),
            Some("secret") if volume["secret"]["secretName"] == SERVING_CERTIFICATE => is_certificate,
            Some("secret") => path == Path::new("kubeconfig"),
            Some("csi") => is_certificate,
            _ => false,
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "KUBERNETES_SERVICE_HOST").then(|| "10.0.0.1".to_owned())
    }

    fn text(&self, file: &Path) -> Option<String> {
        file.ends_with("namespace").then(|| self.namespace.to_owned())
    }
}
