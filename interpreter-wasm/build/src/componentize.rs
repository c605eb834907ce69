//! Core module to component, without a single import.

use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::BuildError;

/// Makes a component of a core module that carries the interface in its `component-type` section. Refuses a module that
/// imports anything, naming it.
pub fn componentize(core: &[u8]) -> Result<Vec<u8>, BuildError> {
    let imports = imports(core)?;
    if !imports.is_empty() {
        return Err(BuildError::Imports { imports });
    }
    let mut encoder = ComponentEncoder::default();
    encoder
        .validate(true)
        .module(core)
        .map_err(refused)?
        .encode()
        .map_err(refused)
}

fn refused(error: impl std::fmt::Display) -> BuildError {
    BuildError::Component {
        reason: format!("{error:#}"),
    }
}

/// `module::field` of everything that a core module imports.
fn imports(core: &[u8]) -> Result<Vec<String>, BuildError> {
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(core) {
        if let Payload::ImportSection(section) = payload.map_err(refused)? {
            for import in section.into_imports() {
                let import = import.map_err(refused)?;
                found.push(format!("{}::{}", import.module, import.name));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c04_an_import_is_refused_by_name() {
        let core = wat::parse_str(r#"(module (import "wasi_snapshot_preview1" "clock_time_get" (func)))"#).unwrap();
        let error = componentize(&core).unwrap_err().to_string();
        assert!(error.contains("wasi_snapshot_preview1::clock_time_get"), "{error}");
        assert!(error.contains("clock"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_module_are_refused() {
        assert!(matches!(componentize(b"nonsense"), Err(BuildError::Component { .. })));
    }
}
