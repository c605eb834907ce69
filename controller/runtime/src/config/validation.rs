//! Combinations that are refused at the start, each with both settings and the fix
//! (docs/decisions/26-settings-refused-at-start.md).

use std::path::{Path, PathBuf};

use popcell_core::names::{check_project, is_dns_label};

use super::ProcessEnvironment;
use super::credentials::{Certificate, METRICS, WEBHOOK};
use super::{ConfigError, DiscoveryConfig, Mode, ServerConfig};
use crate::flags::Flags;

const FEDERATION: &str = "--federation-kubeconfig";
const CLUSTER_NAME: &str = "discovery.clusterName";
const PROJECT: &str = "discovery.projectID";

/// Refuses what cannot run as it is asked.
pub(super) fn check(flags: &Flags, file: &ServerConfig, around: &dyn ProcessEnvironment) -> Result<(), ConfigError> {
    combinations(flags, &file.discovery)?;
    values(flags, &file.discovery)?;
    missing(flags, file, around)
}

fn combinations(flags: &Flags, discovery: &DiscoveryConfig) -> Result<(), ConfigError> {
    let (management, cell) = (flags.enable_management_controllers, flags.enable_cell_controllers);
    let hub = flags.federation_kubeconfig.is_some();
    let quota = discovery.quota_file().filter(|_| cell);
    let single_cluster = management && cell;
    let refused = |first, relation, second, fix| {
        Err(ConfigError::Refused {
            first,
            second,
            relation,
            fix,
        })
    };
    if flags.federation_context.is_some() && !hub {
        return refused("--federation-context", "needs", FEDERATION, "give both or neither");
    }
    if single_cluster && hub {
        return refused(
            "--enable-management-controllers with --enable-cell-controllers",
            "excludes",
            FEDERATION,
            "what is federated would run here too; leave it out, or run the management plane and the cell as two processes",
        );
    }
    if management && discovery.mode == Mode::Milo && !hub {
        return refused(
            "--enable-management-controllers in discovery.mode milo",
            "needs",
            FEDERATION,
            "give the kubeconfig of the hub, or use discovery.mode single",
        );
    }
    if cell && discovery.cluster_name.is_none() {
        let remote = hub.then_some(FEDERATION).or(quota.map(|(setting, _)| setting));
        if let Some(setting) = remote {
            return refused(
                setting,
                "with --enable-cell-controllers needs",
                CLUSTER_NAME,
                "set it to the name of this cell's Karmada Cluster",
            );
        }
    }
    match (quota, &discovery.project) {
        (Some((setting, _)), None) if single_cluster => refused(
            setting,
            "with both groups of controllers needs",
            PROJECT,
            "set it to the id of the project whose quota this cluster uses, or leave quota out",
        ),
        (_, Some(_)) if !cell || hub => refused(
            PROJECT,
            "needs",
            "--enable-cell-controllers without --federation-kubeconfig",
            "remove it: elsewhere the labels of each namespace name its project",
        ),
        _ => Ok(()),
    }
}

fn values(flags: &Flags, discovery: &DiscoveryConfig) -> Result<(), ConfigError> {
    let wrong = |path: &str, problem: String| {
        Err(ConfigError::Field {
            file: flags.server_config.clone().unwrap_or_default(),
            path: path.to_owned(),
            problem,
        })
    };
    if let Some(name) = discovery.cluster_name.as_deref().filter(|name| !is_dns_label(name)) {
        let rule = "must be the name of a Karmada Cluster: lower case letters, digits and '-'";
        return wrong(CLUSTER_NAME, format!("\"{name}\" {rule}"));
    }
    match discovery.project.as_deref().map(check_project) {
        Some(Err(error)) => wrong(PROJECT, error.to_string()),
        _ => Ok(()),
    }
}

/// Files that are set and missing. Those of `$KUBECONFIG` are found out when they are read.
fn missing(flags: &Flags, file: &ServerConfig, around: &dyn ProcessEnvironment) -> Result<(), ConfigError> {
    let leave = "leave the setting out";
    let absent = |setting, path: &Path, fix| {
        Err(ConfigError::Missing {
            setting,
            file: PathBuf::from(path),
            fix,
        })
    };
    let discovery = &file.discovery;
    let named = [
        ("--kubeconfig", flags.kubeconfig.as_deref()),
        (FEDERATION, flags.federation_kubeconfig.as_deref()),
        (
            "discovery.discoveryKubeconfigPath",
            discovery.discovery_kubeconfig.as_deref().map(Path::new),
        ),
        (
            "discovery.projectKubeconfigPath",
            discovery.project_kubeconfig.as_deref().map(Path::new),
        ),
        (
            "discovery.quotaKubeconfigPath",
            discovery.quota_kubeconfig.as_deref().map(Path::new),
        ),
    ];
    for (setting, path) in named {
        if let Some(path) = path.filter(|path| !around.has(path)) {
            return absent(setting, path, leave);
        }
    }
    let webhook = file
        .webhook
        .as_ref()
        .map(|server| (WEBHOOK, &server.tls, "leave webhookServer out"));
    let secure = file.metrics.is_secure() && file.metrics.listen.socket(false).is_some();
    let metrics = secure.then_some((METRICS, &file.metrics.tls, "set metricsServer.secureServing to false"));
    for (defaults, tls, fix) in webhook.into_iter().chain(metrics) {
        let Certificate { certificate, key } = Certificate::of(tls, defaults, around);
        for path in [certificate, key] {
            if !around.has(&path) {
                return absent(defaults.setting, &path, fix);
            }
        }
    }
    Ok(())
}
