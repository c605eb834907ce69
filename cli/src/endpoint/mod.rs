//! A webhook as Karmada's client sees it: resolve, connect, handshake, call. Each step fails with an error of its own, so
//! that a person learns which one to mend. kube's client (5.0) and hyper-util's (0.1) tell neither the step nor the certificate
//! that was shown, so these steps are our own. Rules of the address: docs/karmada.md#service-addresses.

pub mod call;
pub mod certificate;
pub mod dial;

use std::fmt;

use k8s_openapi::api::core::v1::Service;

use crate::planes::karmada::ServiceReference;

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

impl Endpoint {
    /// Reads a `clientConfig.url`: https, a host, no user, query or fragment.
    pub fn parse(url: &str) -> Result<Self, String> {
        let fail = |reason: &str| format!("failed to read the webhook's URL {url:?}: {reason}");
        let rest = url
            .strip_prefix("https://")
            .ok_or_else(|| fail("it has to start with https://"))?;
        if rest.contains(['?', '#']) {
            return Err(fail("Karmada allows no query and no fragment"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(fail("Karmada allows no user in it"));
        }
        let (host, port) =
            split_authority(authority).ok_or_else(|| fail("expected a host and, if given, a port 1-65535"))?;
        if rustls_pki_types::ServerName::try_from(host).is_err() {
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

    /// Where Karmada dials for a Service (its pkg/resourceinterpreter/customized/webhook/serviceresolvers.go). `found` is the
    /// Service in the Karmada API server, which is the first place where it looks; without it the DNS of the caller decides.
    pub fn of_service(reference: &ServiceReference, found: Option<&Service>) -> Result<Self, String> {
        let ServiceReference { namespace, name, .. } = reference;
        let fail = |why: &str| Err(format!("Service {namespace}/{name} {why}"));
        let port = reference.port.unwrap_or(443);
        let server_name = format!("{name}.{namespace}.svc");
        let host = match found.and_then(|service| service.spec.as_ref()) {
            None => server_name.clone(),
            Some(spec) if spec.type_.as_deref() == Some("ExternalName") => match &spec.external_name {
                Some(host) => host.clone(),
                None => return fail("has no externalName"),
            },
            Some(spec) if !spec.ports.iter().flatten().any(|known| known.port == i32::from(port)) => {
                return fail(&format!("in the Karmada API server has no port {port}"));
            }
            Some(spec) => match spec.cluster_ip.as_deref() {
                None | Some("" | "None") => return fail("is headless: Karmada cannot call it"),
                Some(ip) => ip.to_owned(),
            },
        };
        let path = reference.path.as_deref().unwrap_or_default();
        Ok(Self {
            host,
            port,
            path: format!("/{}", path.trim_matches('/')),
            server_name,
        })
    }

    /// Host and port, as in a URL.
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
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
        Some(rest) => match rest.split_once(']')? {
            (host, "") => (host, None),
            (host, port) => (host, Some(port.strip_prefix(':')?)),
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
        None => 443,
    };
    (!host.is_empty()).then_some((host, port))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}{}", self.authority(), self.path)
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

    fn reference() -> ServiceReference {
        ServiceReference {
            namespace: "ns".into(),
            name: "hook".into(),
            port: None,
            path: Some("/interpret".into()),
        }
    }

    fn service(spec: &serde_json::Value) -> Service {
        serde_json::from_value(serde_json::json!({ "spec": spec })).unwrap()
    }

    #[test]
    fn a_service_is_resolved_as_karmada_does() {
        assert_eq!(
            Endpoint::of_service(&reference(), None).unwrap().to_string(),
            "https://hook.ns.svc:443/interpret"
        );
        let found =
            service(&serde_json::json!({"type": "ClusterIP", "clusterIP": "10.1.2.3", "ports": [{"port": 443}]}));
        let resolved = Endpoint::of_service(&reference(), Some(&found)).unwrap();
        assert_eq!(
            (resolved.to_string().as_str(), resolved.server_name.as_str()),
            ("https://10.1.2.3:443/interpret", "hook.ns.svc")
        );
        let found = service(&serde_json::json!({"type": "ExternalName", "externalName": "hook.example.org"}));
        assert_eq!(
            Endpoint::of_service(&reference(), Some(&found)).unwrap().host,
            "hook.example.org"
        );
    }

    #[test]
    fn a_service_that_karmada_cannot_call_is_refused() {
        let headless = service(&serde_json::json!({"clusterIP": "None", "ports": [{"port": 443}]}));
        assert!(
            Endpoint::of_service(&reference(), Some(&headless))
                .unwrap_err()
                .contains("headless")
        );
        let other = service(&serde_json::json!({"clusterIP": "10.1.2.3", "ports": [{"port": 80}]}));
        assert!(
            Endpoint::of_service(&reference(), Some(&other))
                .unwrap_err()
                .contains("no port 443")
        );
    }
}
