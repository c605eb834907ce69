//! A webhook as Karmada's client sees it: resolve, connect, handshake, call. Each step fails with an error of its own, so
//! that a person learns which one to mend. kube's client (5.0) and hyper-util's (0.1) tell neither the step nor the certificate
//! that was shown, so these steps are our own. Rules of the address: docs/karmada.md#service-addresses.

pub mod call;
pub mod certificate;
pub mod clock;
pub mod dial;
pub mod service;

use std::fmt;

/// Where a webhook is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Host to dial: a name or an IP address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path of the POST, with its leading slash.
    pub path: String,
    /// Name that the certificate has to carry.
    pub server_name: String,
}

/// An address that Karmada would refuse.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to read the webhook's URL {url:?}: {reason}")]
pub struct AddressError {
    url: String,
    reason: &'static str,
}

impl Endpoint {
    /// Reads a `clientConfig.url`: https, a host, no user, query or fragment.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let fail = |reason| AddressError {
            url: url.to_owned(),
            reason,
        };
        let rest = url
            .strip_prefix("https://")
            .ok_or_else(|| fail("it has to start with https://"))?;
        if rest.contains(['?', '#']) {
            return Err(fail("Karmada allows no query and no fragment"));
        }
        let (authority, path) = rest
            .split_once('/')
            .map_or((rest, ""), |(authority, path)| (authority, path));
        if authority.contains('@') {
            return Err(fail("Karmada allows no user in it"));
        }
        let (host, port) =
            split_authority(authority).ok_or_else(|| fail("expected a host and, if given, a port 1-65535"))?;
        let valid = rustls_pki_types::ServerName::try_from(host).is_ok();
        if !valid {
            return Err(fail("the host is neither a DNS name nor an IP address"));
        }
        // Karmada joins the path and loses a slash at its end.
        let path = format!("/{}", path.trim_end_matches('/'));
        if path.parse::<hyper::Uri>().is_err() {
            return Err(fail("the path holds a character that has to be escaped"));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
            path,
            server_name: host.to_owned(),
        })
    }

    /// The same place, but with another name expected in its certificate.
    #[must_use]
    pub fn with_server_name(mut self, name: Option<&str>) -> Self {
        if let Some(name) = name {
            name.clone_into(&mut self.server_name);
        }
        self
    }
}

/// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`; port 443 unless said.
fn split_authority(authority: &str) -> Option<(&str, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest
            .split_once(']')
            .map(|(host, port)| (host, port.strip_prefix(':').or(port.is_empty().then_some(""))))?,
        None => authority
            .split_once(':')
            .map_or((authority, Some("")), |(host, port)| (host, Some(port))),
    };
    let explicit = authority.ends_with(|c: char| c.is_ascii_digit()) || !authority.ends_with(':');
    let port = match port? {
        "" if explicit => 443,
        text => text.parse().ok().filter(|port| *port > 0)?,
    };
    (!host.is_empty()).then_some((host, port))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, path, .. } = self;
        if host.contains(':') {
            write!(f, "https://[{host}]:{port}{path}")
        } else {
            write!(f, "https://{host}:{port}{path}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Option<(String, u16, String)> {
        Endpoint::parse(url)
            .ok()
            .map(|endpoint| (endpoint.host, endpoint.port, endpoint.path))
    }

    #[test]
    fn an_address_is_read_as_karmada_reads_it() {
        let expect = |host: &str, port, path: &str| Some((host.to_owned(), port, path.to_owned()));
        assert_eq!(
            parsed("https://hook.example.org/interpret"),
            expect("hook.example.org", 443, "/interpret")
        );
        assert_eq!(
            parsed("https://hook.example.org:8443/a/b/"),
            expect("hook.example.org", 8443, "/a/b")
        );
        assert_eq!(parsed("https://10.0.0.7:8443"), expect("10.0.0.7", 8443, "/"));
        assert_eq!(
            parsed("https://[fd00::7]:8443/interpret"),
            expect("fd00::7", 8443, "/interpret")
        );
        assert_eq!(parsed("https://[fd00::7]/"), expect("fd00::7", 443, "/"));
    }

    #[test]
    fn an_address_that_karmada_refuses_is_refused() {
        for url in [
            "http://hook/interpret",
            "https://",
            "https:///x",
            "https://hook?x=1",
            "https://hook/#x",
            "https://me@hook/",
            "https://hook:0/",
            "https://hook:70000/",
            "https://hook:/",
            "https://[fd00::7]x/",
            "https://a b/",
            "https://hook/a b",
            "hook:8443",
        ] {
            assert_eq!(parsed(url), None, "{url}");
        }
    }
}
