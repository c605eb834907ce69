//! Who a request is from, as a front proxy reports it to an API server.

use anyhow::{Context, Result};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use popcell_api::admission::{EXTRA_PARENT_API_GROUP, EXTRA_PARENT_NAME, EXTRA_PARENT_TYPE};
use popcell_api::resource_manager::{GROUP, PROJECT_KIND};

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const GROUPS: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA: &str = "x-remote-extra-";

/// The bearer token.
pub(super) fn token(request: &HeaderMap) -> Option<&str> {
    let value = request.get(AUTHORIZATION)?.to_str().ok()?;
    value.strip_prefix("Bearer ")
}

/// Headers for the server of `project`; milo's own kinds have no project and no claims.
pub(super) fn headers(request: &HeaderMap, project: Option<&str>) -> Result<Vec<(HeaderName, HeaderValue)>> {
    let (user, group) = match token(request) {
        Some(user) => (user, "system:authenticated"),
        None => ("system:admin", "system:masters"),
    };
    let mut headers = vec![(USER, value(user)?), (GROUPS, value(group)?)];
    if let Some(project) = project {
        for (key, claim) in [
            (EXTRA_PARENT_NAME, project),
            (EXTRA_PARENT_TYPE, PROJECT_KIND),
            (EXTRA_PARENT_API_GROUP, GROUP),
        ] {
            // A name of a header has no slash: API servers decode it.
            let name = format!("{EXTRA}{}", key.replace('/', "%2f"));
            let name = HeaderName::try_from(name).context("a claim has a name that no header can have")?;
            headers.push((name, value(claim)?));
        }
    }
    Ok(headers)
}

fn value(text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(text).with_context(|| format!("not the value of a header: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(token: Option<&'static str>, project: Option<&str>) -> Vec<(String, String)> {
        let token = token.map(|token| (AUTHORIZATION, HeaderValue::from_static(token)));
        let headers = headers(&token.into_iter().collect(), project).unwrap();
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn who_it_is_comes_from_the_token() {
        let expected = [
            pair("x-remote-user", "jo"),
            pair("x-remote-group", "system:authenticated"),
        ];
        assert_eq!(reported(Some("Bearer jo"), None), expected);
        assert_eq!(reported(None, None)[1], pair("x-remote-group", "system:masters"));
    }

    #[test]
    fn a_project_gives_its_claims() {
        let expected = [
            pair("x-remote-extra-iam.miloapis.com%2fparent-name", "p1"),
            pair("x-remote-extra-iam.miloapis.com%2fparent-type", "Project"),
            pair(
                "x-remote-extra-iam.miloapis.com%2fparent-api-group",
                "resourcemanager.miloapis.com",
            ),
        ];
        assert_eq!(reported(None, Some("p1"))[2..], expected);
    }
}
