//! Where the API servers of projects are. The only place that makes a URL of a project id.

use http::Uri;
use popcell_core::names::check_project;

use crate::error::ConnectError;

/// How a project's API server is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Below a path of milo's API server.
    Path,
    /// By the name of its own Service, for processes inside the infrastructure cluster.
    Service,
}

/// The URL of a project's API server; `base` is milo's, whose own path stays in front.
///
/// # Errors
/// An id that is no DNS-1123 subdomain, or is too long for a label, is refused before anything is made of it.
pub fn project_url(addressing: Addressing, base: &Uri, id: &str) -> Result<Uri, ConnectError> {
    check_project(id)?;
    let url = match addressing {
        Addressing::Path => {
            let base = base.to_string();
            let base = base.trim_end_matches('/');
            format!("{base}/apis/resourcemanager.miloapis.com/v1alpha1/projects/{id}/control-plane")
        }
        Addressing::Service if id.contains('.') => return Err(ConnectError::NoService(id.to_owned())),
        Addressing::Service => format!("https://milo-apiserver.project-{id}.svc.cluster.local:6443"),
    };
    url.parse().map_err(|source| ConnectError::Url {
        project: id.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(addressing: Addressing, base: &str, id: &str) -> Result<String, ConnectError> {
        let base = base.parse().unwrap();
        project_url(addressing, &base, id).map(|url| url.to_string())
    }

    #[test]
    fn the_url_of_a_project_is_where_milo_serves_it() {
        for base in ["https://milo", "https://milo/"] {
            let path = "apis/resourcemanager.miloapis.com/v1alpha1/projects/p1.x/control-plane";
            assert_eq!(
                url(Addressing::Path, base, "p1.x").unwrap(),
                format!("https://milo/{path}")
            );
            assert_eq!(
                url(Addressing::Path, &format!("https://milo:8443{}", "/a/"), "p1.x").unwrap(),
                format!("https://milo:8443/a/{path}")
            );
            assert_eq!(
                url(Addressing::Service, base, "p1").unwrap(),
                "https://milo-apiserver.project-p1.svc.cluster.local:6443/"
            );
        }
    }

    #[test]
    fn a_project_id_that_would_lead_elsewhere_is_refused() {
        let long = "a".repeat(56);
        for id in [
            "", "..", "a/b", "a/../b", "A", "a%2fb", "a?b", "a#b", "a b", "-a", "a.", "ä", &long,
        ] {
            for addressing in [Addressing::Path, Addressing::Service] {
                let refused = url(addressing, "https://milo", id);
                assert!(matches!(refused, Err(ConnectError::Name(_))), "{id}: {refused:?}");
            }
        }
        assert!(matches!(
            url(Addressing::Service, "https://milo", "a.kube-system"),
            Err(ConnectError::NoService(_))
        ));
    }
}
