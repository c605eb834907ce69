//! How servers are reached: Karmada's API server and our entry there, a module file, a running webhook.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use kube::core::GroupVersionKind;
use popcell_https::timeout::parse_duration;

/// Which API server.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Karmada")]
pub struct Cluster {
    /// Kubeconfig of the Karmada API server [default: $KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// A kubeconfig by itself, with its current context.
impl From<PathBuf> for Cluster {
    fn from(kubeconfig: PathBuf) -> Self {
        Self {
            kubeconfig: Some(kubeconfig),
            context: None,
        }
    }
}

/// The names of our entry. Karmada consults webhooks in the order of `<config>/<webhook>`: the names decide precedence.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Names")]
pub struct Names {
    /// Name of the ResourceInterpreterWebhookConfiguration
    #[arg(long, value_name = "NAME", default_value = "popcell")]
    pub config_name: String,
    /// Name of our webhook in it: a domain name of at least three labels
    #[arg(long, value_name = "FQDN", default_value = "interpreter.popcell.datumapis.com")]
    pub webhook_name: String,
}

/// A module or a webhook.
#[derive(Args, Clone, Debug)]
pub struct Source {
    /// Module to ask: a WebAssembly component
    #[arg(long, value_name = "FILE", required_unless_present = "url", conflicts_with = "url")]
    pub module: Option<PathBuf>,
    /// Running webhook to ask, for example https://127.0.0.1:8443/interpret
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    // How the webhook is reached.
    #[command(flatten)]
    pub trust: Trust,
}

/// How a webhook proves who it is.
#[derive(Args, Clone, Debug)]
pub struct Trust {
    /// PEM file with the certificates that the webhook's is checked against [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Name to expect in the webhook's certificate [default: the host of the URL]
    #[arg(long, value_name = "NAME")]
    pub server_name: Option<String>,
    /// How long to wait for an answer, as in 5s or 500ms
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub timeout: Duration,
}

/// Reads a duration as all programs of popcell do, above zero.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let read = parse_duration(text).filter(|duration| !duration.is_zero());
    read.ok_or_else(|| "expected a duration above zero, such as 500ms, 5s, 1m30s or 1h".to_owned())
}

/// Reads `group/version/kind`, or `version/kind`.
pub(super) fn kind(text: &str) -> Result<GroupVersionKind, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (group, version, kind) = match parts.as_slice() {
        [version, kind] => ("", *version, *kind),
        [group, version, kind] if !group.is_empty() => (*group, *version, *kind),
        _ => return Err(WRONG_KIND.to_owned()),
    };
    let plain = |text: &str, also: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || also.contains(c);
        text.chars().all(fits)
    };
    // They become part of a URL.
    if version.is_empty() || kind.is_empty() || !plain(group, ".-") || !plain(version, "") || !plain(kind, "") {
        return Err(WRONG_KIND.to_owned());
    }
    Ok(GroupVersionKind::gvk(group, version, kind))
}

const WRONG_KIND: &str = "expected group/version/kind, as in apps/v1/Deployment, or version/kind, as in v1/ConfigMap";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_number_above_zero_and_a_unit() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h"), Ok(Duration::from_hours(1)));
        for wrong in ["", "5", "0s", "-1s", "5d", "s", "18446744073709551615m"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_kind_is_read_with_and_without_group() {
        let read = |text| kind(text).map(|kind| (kind.group, kind.version, kind.kind));
        let parts =
            |group: &str, version: &str, kind: &str| Ok((group.to_owned(), version.to_owned(), kind.to_owned()));
        assert_eq!(read("apps/v1/Deployment"), parts("apps", "v1", "Deployment"));
        assert_eq!(read("v1/ConfigMap"), parts("", "v1", "ConfigMap"));
        for wrong in [
            "",
            "Deployment",
            "apps/v1/",
            "/v1/ConfigMap",
            "a/b/c/d",
            "apps/v1/../x",
            "apps/v1?/X",
            "a b/v1/X",
        ] {
            assert!(kind(wrong).is_err(), "{wrong}");
        }
    }
}
