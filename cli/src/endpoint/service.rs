//! A Service as Karmada resolves it (pkg/resourceinterpreter/customized/webhook/serviceresolvers.go).

use k8s_openapi::api::core::v1::Service;

use super::Endpoint;
use crate::planes::karmada::ServiceReference;

/// Where Karmada dials for a Service. `found` is the Service in the Karmada API server, which is the first place where it
/// looks; without it the DNS of the caller decides.
pub fn endpoint(reference: &ServiceReference, found: Option<&Service>) -> Result<Endpoint, String> {
    let ServiceReference {
        namespace,
        name,
        port,
        path,
    } = reference;
    let port = port.unwrap_or(443);
    let server_name = format!("{name}.{namespace}.svc");
    let host = match found.and_then(|service| service.spec.as_ref()) {
        None => server_name.clone(),
        Some(spec) if spec.type_.as_deref() == Some("ExternalName") => spec
            .external_name
            .clone()
            .ok_or_else(|| format!("Service {namespace}/{name} has no externalName"))?,
        Some(spec) => {
            let known = spec.ports.iter().flatten().any(|known| known.port == i32::from(port));
            if !known {
                return Err(format!(
                    "Service {namespace}/{name} in the Karmada API server has no port {port}"
                ));
            }
            match spec.cluster_ip.as_deref() {
                None | Some("" | "None") => {
                    return Err(format!(
                        "Service {namespace}/{name} is headless: Karmada cannot call it"
                    ));
                }
                Some(ip) => ip.to_owned(),
            }
        }
    };
    let path = format!("/{}", path.as_deref().unwrap_or_default().trim_matches('/'));
    Ok(Endpoint {
        host,
        port,
        path,
        server_name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            endpoint(&reference(), None).unwrap().to_string(),
            "https://hook.ns.svc:443/interpret"
        );
        let found =
            service(&serde_json::json!({"type": "ClusterIP", "clusterIP": "10.1.2.3", "ports": [{"port": 443}]}));
        let resolved = endpoint(&reference(), Some(&found)).unwrap();
        assert_eq!(
            (resolved.to_string().as_str(), resolved.server_name.as_str()),
            ("https://10.1.2.3:443/interpret", "hook.ns.svc")
        );
        let found = service(&serde_json::json!({"type": "ExternalName", "externalName": "hook.example.org"}));
        assert_eq!(endpoint(&reference(), Some(&found)).unwrap().host, "hook.example.org");
    }

    #[test]
    fn a_service_that_karmada_cannot_call_is_refused() {
        let headless = service(&serde_json::json!({"clusterIP": "None", "ports": [{"port": 443}]}));
        assert!(
            endpoint(&reference(), Some(&headless))
                .unwrap_err()
                .contains("headless")
        );
        let other = service(&serde_json::json!({"clusterIP": "10.1.2.3", "ports": [{"port": 80}]}));
        assert!(
            endpoint(&reference(), Some(&other))
                .unwrap_err()
                .contains("no port 443")
        );
    }
}
