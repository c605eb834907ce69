//! Environment variables: as many and as large as a process can be started with.
//!
//! Kubernetes itself bounds them by the size of the object only. These are its bounds of what is comparable, and those of
//! Linux, beyond which nothing starts.

use popcell_api::Container;

use super::LONGEST_LIST;
use super::field::Faults;

/// What all variables of a template may have together, names and values, in bytes: as its annotations may
/// (k8s.io/apimachinery, pkg/api/validation `TotalAnnotationSizeLimitB`). Linux takes 2 MiB for a process, arguments
/// included, and a ConfigMap may have 1 MiB; but the object has to be carried with all else that it has.
const TOGETHER: usize = 256 * 1024;
/// What one may have, its name included: `name=value` and its end are one string of 32 pages at most (Linux,
/// `MAX_ARG_STRLEN`), or the container never starts.
const ONE: usize = 128 * 1024 - 2;

/// The variables of all containers. `path` is that of the list of containers.
pub(super) fn check(path: &str, containers: &[Container], faults: &mut Faults) {
    let mut together = 0_usize;
    for (index, container) in containers.iter().enumerate() {
        let path = format!("{path}[{index}].env");
        let variables = faults.at_most(&path, &container.env, LONGEST_LIST);
        for (number, variable) in variables.iter().enumerate() {
            let value = variable.value.as_deref().unwrap_or_default();
            let size = variable.name.len().saturating_add(value.len());
            if size > ONE {
                let rule = format!(
                    "bytes of name and value must be at most {ONE}, or Linux starts no process with it: put it in a file, as \
                     by a volume"
                );
                faults.invalid(format!("{path}[{number}].value"), size, &rule);
            }
            let from = variable.value_from.as_ref().map(serde_json::to_string);
            let from = from.and_then(Result::ok).map_or(0, |text| text.len());
            together = together.saturating_add(size).saturating_add(from);
        }
    }
    if together > TOGETHER {
        let rule = format!(
            "bytes of the variables of all containers together, names included, must be at most {TOGETHER}: keep what is \
             large in a ConfigMap or Secret, and refer to it by valueFrom or a volume"
        );
        faults.invalid(path, together, &rule);
    }
}
