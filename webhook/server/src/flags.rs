//! Flags of `popcell-webhook`. Each is also an environment variable; a flag wins.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, Parser, ValueEnum};
use popcell_engine::Settings;
use popcell_https::timeout::parse_duration;
use popcell_https::{FilePair, SelfSigned, Source};

/// Hosts interpreter modules as a Karmada ResourceInterpreterWebhook.
#[derive(Debug, Clone, Parser)]
#[command(name = "popcell-webhook", version, after_help = EXAMPLES)]
pub struct Flags {
    /// Directory with the modules: every *.wasm in it is loaded, and every one must load
    #[arg(long, env = "POPCELL_MODULE_DIR", value_name = "DIR")]
    pub module_dir: PathBuf,

    /// Address of the TLS port, to which Karmada sends requests
    #[arg(long, env = "POPCELL_LISTEN", value_name = "ADDRESS", default_value = "0.0.0.0:8443")]
    pub listen: SocketAddr,

    /// Address of the plain port with /livez, /readyz and /metrics
    #[arg(
        long,
        env = "POPCELL_HEALTH_LISTEN",
        value_name = "ADDRESS",
        default_value = "0.0.0.0:8080"
    )]
    pub health_listen: SocketAddr,

    /// Certificate chain in PEM; it is taken again when the file changes
    #[arg(long, env = "POPCELL_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate in PEM
    #[arg(long, env = "POPCELL_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// How often to look for a new certificate
    #[arg(long, env = "POPCELL_TLS_RELOAD_PERIOD", value_name = "DURATION", default_value = "30s",
          value_parser = reload_period)]
    pub tls_reload_period: Duration,

    /// Make a certificate authority and a certificate instead of reading them
    #[arg(long, env = "POPCELL_SELF_SIGNED", action = ArgAction::SetTrue, value_parser = BoolishValueParser::new())]
    pub self_signed: bool,

    /// With --self-signed: directory that keeps the authority; replicas share it. Clients trust its ca.crt
    #[arg(long, env = "POPCELL_CA_DIR", value_name = "DIR")]
    pub ca_dir: Option<PathBuf>,

    /// Host names and addresses by which Karmada calls. With --self-signed they go into the certificate; with --tls-cert
    /// they must be in it
    #[arg(long, env = "POPCELL_SAN", value_name = "NAME", value_delimiter = ',',
          value_parser = NonEmptyStringValueParser::new())]
    pub san: Vec<String>,

    /// The longest time of one call in a module, 100ms to 30s
    #[arg(long, env = "POPCELL_CALL_TIMEOUT", value_name = "DURATION", default_value = "2s",
          value_parser = call_timeout)]
    pub call_timeout: Duration,

    /// The most memory of one call in a module, such as 64Mi; 1Mi to 1Gi
    #[arg(long, env = "POPCELL_MAX_MEMORY", value_name = "BYTES", default_value = "64Mi", value_parser = memory)]
    pub max_memory: usize,

    /// How many long calls may run at once [default: one for each core, at least 2]
    #[arg(long, env = "POPCELL_SLOTS", value_name = "NUMBER")]
    pub slots: Option<usize>,

    /// Accept modules for kinds of the core, apps, admission and Karmada groups
    #[arg(long, env = "POPCELL_ALLOW_CORE_KINDS", action = ArgAction::SetTrue,
          value_parser = BoolishValueParser::new())]
    pub allow_core_kinds: bool,

    /// Form of the log lines. What is logged is set by RUST_LOG, such as RUST_LOG=popcell_webhook=debug
    #[arg(long, env = "POPCELL_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

const EXAMPLES: &str = "\
Examples:
  A first run, with a certificate made on the spot:
    popcell-webhook --module-dir modules --self-signed --ca-dir ca --san webhook.example.com
  With a certificate that cert-manager renews:
    popcell-webhook --module-dir /modules --tls-cert /tls/tls.crt --tls-key /tls/tls.key

Exit codes: 0 stopped by a signal, 2 wrong flags, 3 a module was refused, 4 a file, port or the system failed.";

/// Form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object for each line.
    Json,
}

impl Flags {
    /// Limits of the engine.
    pub fn settings(&self) -> Settings {
        let defaults = Settings::default();
        Settings {
            call_timeout: self.call_timeout,
            max_memory: self.max_memory,
            slots: self.slots.unwrap_or(defaults.slots),
            allow_core_kinds: self.allow_core_kinds,
            ..defaults
        }
    }

    /// Where the certificate comes from. Refuses what does not say exactly one source.
    pub fn source(&self) -> Result<Source, clap::Error> {
        let refuse = |kind, message: &str| Err(Self::command().error(kind, message));
        match (&self.tls_cert, &self.tls_key, self.self_signed) {
            (Some(_), _, true) | (_, Some(_), true) => refuse(
                ErrorKind::ArgumentConflict,
                "--self-signed cannot be used with --tls-cert or --tls-key",
            ),
            (Some(_), None, _) => refuse(ErrorKind::MissingRequiredArgument, "--tls-cert needs --tls-key"),
            (None, Some(_), _) => refuse(ErrorKind::MissingRequiredArgument, "--tls-key needs --tls-cert"),
            (Some(_), Some(_), false) if self.ca_dir.is_some() => refuse(
                ErrorKind::ArgumentConflict,
                "--ca-dir is for --self-signed, and --tls-cert is given",
            ),
            (Some(certificate), Some(key), false) => Ok(Source::Files(FilePair {
                certificate: certificate.clone(),
                key: key.clone(),
                names: self.san.clone(),
            })),
            (None, None, true) => {
                let Some(ca_dir) = self.ca_dir.clone() else {
                    return refuse(ErrorKind::MissingRequiredArgument, "--self-signed needs --ca-dir");
                };
                if self.san.is_empty() {
                    return refuse(
                        ErrorKind::MissingRequiredArgument,
                        "--self-signed needs --san with the names by which Karmada calls",
                    );
                }
                Ok(Source::SelfSigned(SelfSigned {
                    ca_dir,
                    names: self.san.clone(),
                }))
            }
            (None, None, false) => refuse(
                ErrorKind::MissingRequiredArgument,
                "no certificate: give --tls-cert and --tls-key, or --self-signed with --ca-dir and --san",
            ),
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "not a duration such as 500ms, 2s or 1m30s".to_owned())
}

fn call_timeout(text: &str) -> Result<Duration, String> {
    let (shortest, longest) = Settings::CALL_TIMEOUT;
    let value = duration(text)?;
    if value < shortest || value > longest {
        return Err(format!("must be {shortest:?} to {longest:?}"));
    }
    Ok(value)
}

fn reload_period(text: &str) -> Result<Duration, String> {
    let value = duration(text)?;
    if value < Duration::from_millis(10) {
        return Err("must be at least 10ms".to_owned());
    }
    Ok(value)
}

/// Bytes, with Kubernetes' binary suffixes.
fn memory(text: &str) -> Result<usize, String> {
    let wrong = || "not a size such as 67108864, 64Mi or 1Gi".to_owned();
    let (number, shift) = [("Ki", 10), ("Mi", 20), ("Gi", 30)]
        .into_iter()
        .find_map(|(suffix, shift)| Some((text.strip_suffix(suffix)?, shift)))
        .unwrap_or((text, 0));
    let number: usize = number.parse().map_err(|_| wrong())?;
    let bytes = number.checked_mul(1 << shift).ok_or_else(wrong)?;
    if !(1 << 20..=1 << 30).contains(&bytes) {
        return Err("must be 1Mi to 1Gi".to_owned());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(more: &str) -> Result<Flags, clap::Error> {
        Flags::try_parse_from(format!("popcell-webhook --module-dir m {more}").split_ascii_whitespace())
    }

    fn source(more: &str) -> Result<Source, String> {
        flags(more).unwrap().source().map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_is_well_formed() {
        Flags::command().debug_assert();
    }

    #[test]
    fn every_flag_is_an_environment_variable() {
        for argument in Flags::command().get_arguments() {
            let Some(long) = argument.get_long().filter(|long| !["help", "version"].contains(long)) else {
                continue;
            };
            let expected = format!("POPCELL_{}", long.replace('-', "_").to_uppercase());
            assert_eq!(
                argument.get_env().and_then(std::ffi::OsStr::to_str),
                Some(expected.as_str())
            );
        }
    }

    #[test]
    fn values_are_checked_with_the_fix() {
        for (more, expected) in [
            ("--call-timeout 50ms", "must be 100ms to 30s"),
            ("--call-timeout 31s", "must be 100ms to 30s"),
            ("--call-timeout 2", "not a duration such as"),
            ("--max-memory 512Ki", "must be 1Mi to 1Gi"),
            ("--max-memory 64MB", "not a size such as"),
            ("--max-memory 99999999999999999999Gi", "not a size such as"),
            ("--slots some", "invalid digit"),
            ("--listen 8443", "invalid socket address"),
            ("--log-format xml", "possible values: text, json"),
            ("--tls-reload-period 0s", "must be at least 10ms"),
        ] {
            let message = flags(more).unwrap_err().to_string();
            assert!(message.contains(expected), "{more}: {message}");
        }
        assert_eq!(flags("--max-memory 64Mi").unwrap().max_memory, 64 << 20);
        assert_eq!(
            flags("--call-timeout 1.5s").unwrap().call_timeout,
            Duration::from_millis(1500)
        );
    }

    #[test]
    fn exactly_one_source_of_the_certificate() {
        for (more, expected) in [
            ("", "give --tls-cert and --tls-key, or --self-signed"),
            ("--tls-cert c", "--tls-cert needs --tls-key"),
            ("--tls-key k", "--tls-key needs --tls-cert"),
            ("--tls-cert c --tls-key k --self-signed", "cannot be used with"),
            ("--tls-cert c --tls-key k --ca-dir d", "--ca-dir is for --self-signed"),
            ("--self-signed --san a", "needs --ca-dir"),
            ("--self-signed --ca-dir d", "needs --san"),
        ] {
            let message = source(more).unwrap_err();
            assert!(message.contains(expected), "{more}: {message}");
        }
        assert!(matches!(source("--tls-cert c --tls-key k"), Ok(Source::Files(_))));
        let Ok(Source::SelfSigned(own)) = source("--self-signed --ca-dir d --san a.b,c --san 127.0.0.1") else {
            panic!("not self-signed")
        };
        assert_eq!(own.names, ["a.b", "c", "127.0.0.1"]);
    }
}
