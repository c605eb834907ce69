//! Where a request for a project goes on a server that many projects share.

/// Kinds that the shared server has once for all projects.
const SHARED: [&str; 7] = [
    "locations",
    "locationbindings",
    "customresourcedefinitions",
    "clusterroles",
    "clusterrolebindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];

/// What is in front of a project's id.
pub(super) const PROJECTS: &str = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/";

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// It is sent to this path and query.
    To(String),
    /// It is for a namespace that is not the project's.
    Nowhere,
}

/// Requests below a project's prefix are narrowed to the namespace that is named like the project; others are milo's own
/// and pass as they are.
pub(super) fn route(path: &str, query: Option<&str>) -> Route {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let Some((project, rest)) = of_project(path) else {
        return Route::To(format!("{path}{query}"));
    };
    let segments: Vec<&str> = rest.trim_matches('/').split('/').collect();
    match segments.as_slice() {
        ["api", "v1", "namespaces"] => {
            let joint = if query.is_empty() { '?' } else { '&' };
            Route::To(format!("{rest}{query}{joint}fieldSelector=metadata.name%3D{project}"))
        }
        ["api", _, "namespaces", namespace, ..] | ["apis", _, _, "namespaces", namespace, ..]
            if *namespace != project =>
        {
            Route::Nowhere
        }
        ["apis", group, version, plural] if !SHARED.contains(plural) => {
            Route::To(format!("/apis/{group}/{version}/namespaces/{project}/{plural}{query}"))
        }
        ["api", version, plural] => Route::To(format!("/api/{version}/namespaces/{project}/{plural}{query}")),
        _ => Route::To(format!("{rest}{query}")),
    }
}

/// Project id and the rest of the path below its prefix.
pub(crate) fn of_project(path: &str) -> Option<(&str, &str)> {
    let below = path.strip_prefix(PROJECTS)?;
    let (project, rest) = below.split_once('/')?;
    let rest = rest.strip_prefix("control-plane")?;
    rest.starts_with('/').then_some((project, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/p1/control-plane";
    const COMPUTE: &str = "/apis/compute.datumapis.com/v1alpha";

    fn below(path: &str, query: Option<&str>) -> Route {
        route(&format!("{PREFIX}{path}"), query)
    }

    #[test]
    fn lists_over_all_namespaces_are_narrowed() {
        assert_eq!(
            below(&format!("{COMPUTE}/workloads"), Some("watch=true")),
            Route::To(format!("{COMPUTE}/namespaces/p1/workloads?watch=true"))
        );
        assert_eq!(
            below("/api/v1/events", None),
            Route::To("/api/v1/namespaces/p1/events".to_owned())
        );
        let namespaces = "/api/v1/namespaces";
        for (query, result) in [(None, "?"), (Some("limit=5"), "?limit=5&")] {
            assert_eq!(
                below(namespaces, query),
                Route::To(format!("{namespaces}{result}fieldSelector=metadata.name%3Dp1"))
            );
        }
    }

    #[test]
    fn a_project_has_one_namespace() {
        let own = format!("{COMPUTE}/namespaces/p1/workloads/web");
        assert_eq!(below(&own, None), Route::To(own.clone()));
        assert_eq!(below(&own.replace("p1", "p2"), None), Route::Nowhere);
        assert_eq!(
            below("/api/v1/namespaces/p1", None),
            Route::To("/api/v1/namespaces/p1".to_owned())
        );
        assert_eq!(below("/api/v1/namespaces/kube-system", None), Route::Nowhere);
    }

    #[test]
    fn what_is_not_of_a_project_passes() {
        for path in [
            "/apis/resourcemanager.miloapis.com/v1alpha1/projects",
            "/apis/resourcemanager.miloapis.com/v1alpha1/projects/p1/status",
            "/version",
        ] {
            assert_eq!(route(path, None), Route::To(path.to_owned()));
        }
        let shared = "/apis/networking.datumapis.com/v1alpha/locationbindings";
        assert_eq!(below(shared, None), Route::To(shared.to_owned()));
        assert_eq!(below("/version", None), Route::To("/version".to_owned()));
    }
}
