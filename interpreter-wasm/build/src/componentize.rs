//! Core module to component, without a single import.

use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::{BuildError, heap};

/// What a core module calls the functions of the interface that it exports.
const INTERFACE: &str = "popcell:interpreter/operations@";

/// Makes a component of a core module that carries the interface in its `component-type` section. Refuses a module that
/// imports anything, naming it, and one that does not export the interface.
pub fn componentize(core: &[u8]) -> Result<Vec<u8>, BuildError> {
    let surface = Surface::of(core)?;
    if !surface.imports.is_empty() {
        return Err(BuildError::Imports {
            cause: usual_cause(&surface.imports),
            imports: surface.imports,
        });
    }
    if !surface.exports_interface {
        return Err(refused("it does not export popcell:interpreter/operations"));
    }
    let core = heap::provide(core)?;
    let mut encoder = ComponentEncoder::default();
    encoder
        .validate(true)
        .module(&core)
        .map_err(refused)?
        .encode()
        .map_err(refused)
}

pub(crate) fn refused(error: impl std::fmt::Display) -> BuildError {
    BuildError::Component {
        reason: format!("{error:#}"),
    }
}

/// What of a core module can be seen from outside.
struct Surface {
    /// `module::field` of everything that it imports.
    imports: Vec<String>,
    exports_interface: bool,
}

impl Surface {
    fn of(core: &[u8]) -> Result<Self, BuildError> {
        let mut surface = Self {
            imports: Vec::new(),
            exports_interface: false,
        };
        for payload in Parser::new(0).parse_all(core) {
            match payload.map_err(refused)? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import.map_err(refused)?;
                        surface.imports.push(format!("{}::{}", import.module, import.name));
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        surface.exports_interface |= export.map_err(refused)?.name.starts_with(INTERFACE);
                    }
                }
                _ => {}
            }
        }
        Ok(surface)
    }
}

/// Where such imports come from, judged by the first of them.
fn usual_cause(imports: &[String]) -> &'static str {
    match imports.first().map(String::as_str) {
        Some(import) if import.starts_with("wasi") => {
            "a crate that reads a clock, random numbers, files or the environment through WASI"
        }
        Some(import) if import.starts_with("__wbindgen") => {
            "a crate that reads a clock or random numbers through JavaScript, such as getrandom, chrono or uuid with \
             their features for browsers"
        }
        _ => "a C library, or an `extern` block that nothing defines",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_refused_with_its_name_and_usual_cause() {
        for (import, cause) in [
            (r#""wasi_snapshot_preview1" "clock_time_get""#, "through WASI"),
            (r#""__wbindgen_placeholder__" "__wbg_now""#, "through JavaScript"),
            (r#""env" "gettimeofday""#, "a C library"),
        ] {
            let core = wat::parse_str(format!("(module (import {import} (func)))")).unwrap();
            let error = componentize(&core).unwrap_err().to_string();
            assert!(
                error.contains(&import.replace("\" \"", "::").replace('"', "")),
                "{error}"
            );
            assert!(error.contains(cause), "{error}");
        }
    }

    #[test]
    fn a_module_without_the_interface_is_refused() {
        let core = wat::parse_str(r#"(module (func (export "main")))"#).unwrap();
        let error = componentize(&core).unwrap_err().to_string();
        assert!(
            error.contains("does not export popcell:interpreter/operations"),
            "{error}"
        );
    }

    #[test]
    fn bytes_that_are_no_module_are_refused() {
        assert!(matches!(componentize(b"nonsense"), Err(BuildError::Component { .. })));
    }
}
