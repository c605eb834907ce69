//! Derived names, their syntax and their limits.
//!
//! Why: `docs/decisions/02-names-and-conflicts.md`.

use popcell_api::conditions::reasons::INVALID_CITY_CODE;
use popcell_api::names::{CITY_POLICY_PREFIX, HUB_NAMESPACE_PREFIX, PROJECT_LABEL_PREFIX};
pub use popcell_contract::names::{LABEL_LENGTH, is_dns_label, is_dns_subdomain};
pub(crate) use popcell_contract::names::{is_label_value, is_qualified_name};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::plan::cut;

/// Longest city code.
pub const CITY_CODE_LENGTH: usize = 32;
/// What the highest ordinal adds to the name of a WorkloadDeployment: `-999` (minReplicas is at most 1000).
const ORDINAL_LENGTH: usize = 4;
/// Longest name of a WorkloadDeployment whose Instances all have names that fit a label.
pub const DEPLOYMENT_LENGTH: usize = LABEL_LENGTH - ORDINAL_LENGTH;
/// Hexadecimal digits at the end of a name that was shortened.
const HASH_LENGTH: usize = 10;
/// Longest project id whose label value fits.
pub const PROJECT_LENGTH: usize = LABEL_LENGTH - PROJECT_LABEL_PREFIX.len();

/// Reason of a condition: a derived name does not fit. Only a change of the object ends it.
pub const INVALID_NAME: &str = "InvalidName";

/// What is wrong with a name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Not `[A-Za-z0-9]([-A-Za-z0-9]{0,30}[A-Za-z0-9])?`.
    #[error("city code \"{0}\" must be 1 to 32 letters, digits and '-', and begin and end with a letter or digit")]
    CityCode(String),
    /// It would not fit the label of its Instances.
    #[error("name \"{name}\" of the Workload has {} characters, at most {LABEL_LENGTH} fit", name.len())]
    WorkloadLength {
        /// The name.
        name: String,
    },
    /// The names of the Instances would not fit a label.
    #[error("name \"{name}\" of the WorkloadDeployment has {} characters, at most {DEPLOYMENT_LENGTH} fit", name.len())]
    DeploymentLength {
        /// The derived name.
        name: String,
    },
    /// Not a DNS-1123 subdomain.
    #[error("project id \"{0}\" is not a DNS-1123 subdomain")]
    ProjectId(String),
    /// The label value would not fit.
    #[error("project id \"{0}\" is too long: {PROJECT_LENGTH} characters at most")]
    ProjectLength(String),
}

/// The namespace of the hub, and of the cell, for a project Namespace of this uid.
pub fn hub_namespace(uid: &str) -> String {
    format!("{HUB_NAMESPACE_PREFIX}{uid}")
}

/// The WorkloadDeployment of a placement in a city: the three joined by `-`, the city in lower case. Where that is longer than
/// [`DEPLOYMENT_LENGTH`], its beginning and a hash of the three.
pub fn workload_deployment(workload: &str, placement: &str, city: &str) -> String {
    let whole = unshortened(workload, placement, city);
    if whole.len() <= DEPLOYMENT_LENGTH {
        return whole;
    }
    let mut digest = Sha256::new();
    for part in [workload, placement, city.to_lowercase().as_str()] {
        // No name has this byte, so other parts are other bytes.
        digest.update(part);
        digest.update([0]);
    }
    let hash = format!("{:x}", digest.finalize());
    format!("{}-{}", start(&whole), cut(&hash, HASH_LENGTH))
}

/// The same, however long: a name that objects of upstream's operator may have.
pub(crate) fn unshortened(workload: &str, placement: &str, city: &str) -> String {
    format!("{workload}-{placement}-{}", city.to_lowercase())
}

/// Whether a WorkloadDeployment has the name of a placement in a city, or the one that it had before names were shortened.
pub fn is_workload_deployment(name: &str, workload: &str, placement: &str, city: &str) -> bool {
    name == workload_deployment(workload, placement, city) || name == unshortened(workload, placement, city)
}

/// What stays of a name that is shortened. Of the name of a Workload it is what those of all its WorkloadDeployments begin with.
pub fn start(name: &str) -> &str {
    let start = cut(name, DEPLOYMENT_LENGTH - HASH_LENGTH - 1);
    start.trim_end_matches(|last: char| !last.is_ascii_alphanumeric())
}

/// Whether a WorkloadDeployment of this name may be one of a Workload of that name; those of all others with the same start
/// may be, too, where names are shortened.
pub fn may_be_of(deployment: &str, workload: &str) -> bool {
    let start = start(workload);
    let rest = deployment.strip_prefix(start);
    rest.is_some_and(|rest| rest.starts_with('-') || start.len() < workload.len())
}

/// Refuses a Workload whose name does not fit a label.
pub fn check_workload(name: &str) -> Result<(), NameError> {
    if name.len() > LABEL_LENGTH {
        return Err(NameError::WorkloadLength { name: name.to_owned() });
    }
    Ok(())
}

/// Refuses a WorkloadDeployment whose Instances could not be named.
pub fn check_deployment(name: &str) -> Result<(), NameError> {
    if name.len() > DEPLOYMENT_LENGTH {
        return Err(NameError::DeploymentLength { name: name.to_owned() });
    }
    Ok(())
}

/// The policy of a city: `city-lax` for `LAX`, `city-new-york` for `New York`.
pub fn city_policy(city: &str) -> String {
    format!("{CITY_POLICY_PREFIX}{}", city.to_lowercase().replace(' ', "-"))
}

/// Checks the syntax of a city code.
pub fn check_city(code: &str) -> Result<(), NameError> {
    let bytes = code.as_bytes();
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let good = bytes.len() <= CITY_CODE_LENGTH
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    if good {
        Ok(())
    } else {
        Err(NameError::CityCode(code.to_owned()))
    }
}

/// Reason and message where a city code, or the name of the WorkloadDeployment for it, can never be used.
pub(crate) fn fault(city: &str, deployment: &str) -> Option<(&'static str, String)> {
    if let Err(error) = check_city(city) {
        return Some((INVALID_CITY_CODE, error.to_string()));
    }
    let named = check_deployment(deployment);
    named.err().map(|error| (INVALID_NAME, error.to_string()))
}

/// A project id as a label value.
pub fn project_label(project: &str) -> String {
    format!("{PROJECT_LABEL_PREFIX}{}", project.replace('/', "_"))
}

/// The project id in a label value: the last segment, so that `cluster-org_project` is `project`. `None` where nothing
/// is left.
pub fn project_of_label(label: &str) -> Option<&str> {
    let encoded = label.strip_prefix(PROJECT_LABEL_PREFIX).unwrap_or(label);
    encoded.rsplit(['_', '/']).next().filter(|id| !id.is_empty())
}

/// Refuses a project before any URL or label is made from its id.
pub fn check_project(id: &str) -> Result<(), NameError> {
    if !is_dns_subdomain(id) {
        return Err(NameError::ProjectId(id.to_owned()));
    }
    if project_label(id).len() > LABEL_LENGTH {
        return Err(NameError::ProjectLength(id.to_owned()));
    }
    Ok(())
}

/// Whether a domain is `parent` or a sub-domain of it.
pub(crate) fn is_within(domain: &str, parent: &str) -> bool {
    domain
        .strip_suffix(parent)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn policies_are_named_after_their_city() {
        for (city, name) in [("DFW", "city-dfw"), ("LAX", "city-lax"), ("New York", "city-new-york")] {
            assert_eq!(city_policy(city), name);
        }
    }

    #[test]
    fn a_project_label_is_decoded_to_the_bare_project_id() {
        for (label, project) in [
            ("cluster-org_project", Some("project")),
            ("cluster-_test-project-abc", Some("test-project-abc")),
            ("cluster-datum-cloud", Some("datum-cloud")),
            ("cluster-single", Some("single")),
            ("cluster-", None),
            ("cluster-a_", None),
            ("", None),
        ] {
            assert_eq!(project_of_label(label), project, "{label}");
        }
        assert_eq!(project_label("org/project"), "cluster-org_project");
    }

    #[test]
    fn city_codes_have_a_syntax_and_a_length() {
        let longest = "a".repeat(32);
        for good in ["DFW", "dfw", "a", "7", "new-york", "a--b", &longest] {
            assert_eq!(check_city(good), Ok(()), "{good}");
        }
        let too_long = "a".repeat(33);
        for bad in [
            "", "nyc_1", "DFW.1", "-dfw", "dfw-", "İST", "New York", "a/b", &too_long,
        ] {
            assert!(check_city(bad).is_err(), "{bad}");
        }
        // Every good code gives a policy name that fits an object and a label.
        assert!(city_policy(&longest).len() <= LABEL_LENGTH);
    }

    #[test]
    fn derived_names_fit_with_the_highest_ordinal() {
        let (long, longest) = ("w".repeat(52), "w".repeat(63));
        let dotted = format!("{}.example", "w".repeat(47));
        for (workload, placement, city, name) in [
            ("web", "us", "DFW", "web-us-dfw".to_owned()),
            // The longest that is as it always was, and the first that is not.
            (&long, "us", "DFW", format!("{long}-us-dfw")),
            (&long, "us1", "DFW", format!("{}-6585468b31", "w".repeat(48))),
            (&long, "us1", "dfw", format!("{}-6585468b31", "w".repeat(48))),
            (
                &longest,
                &longest,
                &"C".repeat(32),
                format!("{}-0a8834a8f1", "w".repeat(48)),
            ),
            // No part of a name ends with "." or "-".
            (&dotted, "us", "DFW", format!("{}-458ad7f1d1", "w".repeat(47))),
        ] {
            let derived = workload_deployment(workload, placement, city);
            assert_eq!(derived, name, "{workload} {placement} {city}");
            assert_eq!(check_deployment(&derived), Ok(()));
            assert!(is_label_value(&crate::slots::instance_name(&derived, 999)), "{derived}");
        }
        assert_eq!(check_deployment(&"a".repeat(59)), Ok(()));
        let error = check_deployment(&"a".repeat(60)).unwrap_err();
        assert!(
            error.to_string().contains("has 60 characters, at most 59 fit"),
            "{error}"
        );
        assert_eq!(check_workload(&longest), Ok(()));
        let error = check_workload(&"w".repeat(64)).unwrap_err();
        assert!(
            error.to_string().contains("has 64 characters, at most 63 fit"),
            "{error}"
        );
    }

    #[test]
    fn a_long_name_is_also_known_as_it_was_before_names_were_shortened() {
        let workload = "w".repeat(60);
        let of = |name: &str| is_workload_deployment(name, &workload, "us", "DFW");
        assert!(of(&workload_deployment(&workload, "us", "DFW")) && of(&format!("{workload}-us-dfw")));
        assert!(!of(&format!("{workload}-us-ord")) && !of("web-us-dfw"));
        assert!(is_workload_deployment("web-us-dfw", "web", "us", "DFW"));
        assert!(may_be_of("web-us-dfw", "web") && !may_be_of("web2-us-dfw", "web") && !may_be_of("web", "web"));
    }

    /// Parts around the length at which names are shortened.
    fn parts() -> impl Strategy<Value = (String, String, String)> {
        (
            "[a-c]{1,2}(-[a-c]{1,2}){0,2}|[a-c]([-a-c]{0,61}[a-c])?",
            "[a-c](-[a-c]){0,2}|[a-c]([-a-c]{0,40}[a-c])?",
            "[A-Ca-c]{1,3}|[A-Ca-c][-A-Ca-c]{0,30}[A-Ca-c]",
        )
    }

    proptest! {
        #[test]
        fn other_parts_have_another_name_and_short_names_are_as_they_were(one in parts(), other in parts()) {
            let [first, second] = [&one, &other].map(|(workload, placement, city)| {
                let whole = format!("{workload}-{placement}-{}", city.to_lowercase());
                (workload_deployment(workload, placement, city), whole)
            });
            for (name, whole) in [&first, &second] {
                prop_assert!(name.len() <= DEPLOYMENT_LENGTH && is_dns_subdomain(name), "{name}");
                prop_assert_eq!(name == whole, whole.len() <= DEPLOYMENT_LENGTH);
            }
            for name in [&first.0, &first.1] {
                prop_assert!(may_be_of(name, &one.0) && is_workload_deployment(name, &one.0, &one.1, &one.2), "{name}");
            }
            let same = |one: &(String, String, String)| (one.0.clone(), one.1.clone(), one.2.to_lowercase());
            if same(&one) == same(&other) {
                prop_assert_eq!(&first.0, &second.0);
            } else if first.1 != second.1 || first.1.len() > DEPLOYMENT_LENGTH {
                prop_assert_ne!(&first.0, &second.0, "{:?} {:?}", one, other);
            }
        }
    }

    #[test]
    fn project_ids_are_subdomains_that_fit_a_label() {
        let fits = "p".repeat(55);
        for good in ["p1", "a.b-c.d", &fits] {
            assert_eq!(check_project(good), Ok(()), "{good}");
        }
        let long = "p".repeat(56);
        assert_eq!(check_project(&long), Err(NameError::ProjectLength(long.clone())));
        for bad in ["", "..", "a/b", "A", "a_b", "a..b", "-a", "a b", "../../x", "a%2f"] {
            assert_eq!(check_project(bad), Err(NameError::ProjectId(bad.to_owned())), "{bad}");
        }
    }
}
