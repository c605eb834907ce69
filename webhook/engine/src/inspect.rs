//! Looks into a file before anything is compiled, so that a refusal can say what is wrong in the author's terms.

use wasmparser::{Encoding, Parser, Payload};

use crate::limits::{MAX_CORE_INSTANCES, MAX_MEMORIES, MAX_TABLE_ELEMENTS, MAX_TABLES};

/// The version of `popcell:interpreter` that this host speaks.
pub const INTERFACE_VERSION: &str = "0.1.0";
/// The interface that a module exports, without its version.
pub(crate) const INTERFACE: &str = "popcell:interpreter/operations";
const PAGE: u64 = 64 << 10;

/// What the outside of a WebAssembly file shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// A component; otherwise a core module.
    pub is_component: bool,
    /// Names of what it imports. A module may import nothing.
    pub imports: Vec<String>,
    /// Names of what it exports.
    pub exports: Vec<String>,
    /// Linear memories in all its core modules.
    pub memories: usize,
    /// The largest memory that a core module starts with, in bytes.
    pub min_memory: u64,
    /// Tables in all its core modules.
    pub tables: usize,
    /// The largest table that a core module starts with, in elements.
    pub min_table: u64,
    /// Core instances that it makes.
    pub core_instances: usize,
}

impl Inspection {
    /// The version of `popcell:interpreter` that the file exports, if any.
    pub fn interface_version(&self) -> Option<&str> {
        self.exports
            .iter()
            .find_map(|export| export.strip_prefix(INTERFACE)?.strip_prefix('@'))
    }

    /// Why the file cannot be a module, if so.
    pub(crate) fn objection(&self, max_memory: usize) -> Option<Objection> {
        if !self.is_component {
            return Some(Objection::CoreModule);
        }
        if let Some(import) = self.imports.first() {
            return Some(Objection::Import {
                import: import.clone(),
                cause: cause_of(import),
            });
        }
        match self.interface_version() {
            None => {
                return Some(Objection::NoInterface {
                    exports: self.exports.join(", "),
                });
            }
            Some(version) if version != INTERFACE_VERSION => return Some(Objection::Version(version.to_owned())),
            Some(_) => {}
        }
        if self.min_memory > max_memory as u64 {
            return Some(Objection::Memory {
                minimum: self.min_memory,
            });
        }
        let counted = [
            ("a table of", self.min_table, MAX_TABLE_ELEMENTS, "elements"),
            ("", self.memories as u64, MAX_MEMORIES, "linear memories"),
            ("", self.tables as u64, MAX_TABLES, "tables"),
            ("", self.core_instances as u64, MAX_CORE_INSTANCES, "core instances"),
        ];
        counted
            .into_iter()
            .find(|(_, found, limit, _)| *found > *limit as u64)
            .map(|(what, found, limit, unit)| Objection::Size {
                found: format!("{what} {found} {unit}").trim().to_owned(),
                limit,
            })
    }
}

/// Why a file is not accepted, before it is compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Objection {
    #[error(
        "it is a core WebAssembly module, not a component: build it with `popcell build`, which makes the component"
    )]
    CoreModule,
    #[error("it imports {import:?}, and a module may import nothing: {cause}")]
    Import { import: String, cause: &'static str },
    #[error("it does not export {INTERFACE}@{INTERFACE_VERSION}: build it with popcell-sdk (exports: {exports})")]
    NoInterface { exports: String },
    #[error(
        "it was built for popcell:interpreter@{0}, this host speaks {INTERFACE_VERSION}: rebuild it with the \
         popcell-sdk of this host's release, or run the host of the module's release"
    )]
    Version(String),
    #[error("it starts with {} MiB of memory, more than the limit: raise --max-memory", minimum.div_ceil(1 << 20))]
    Memory { minimum: u64 },
    #[error("it has {found}, more than the limit of {limit}")]
    Size { found: String, limit: usize },
}

fn cause_of(import: &str) -> &'static str {
    if import.starts_with("wasi:") || import.starts_with("wasi_snapshot") {
        "it was built for a WASI target, or uses a clock, random numbers, files or the environment; \
         build it for wasm32-unknown-unknown with `popcell build` and without those"
    } else {
        "remove the dependency that needs it"
    }
}

/// Reads the outside of a file. The error says what makes it no WebAssembly.
pub fn inspect(wasm: &[u8]) -> Result<Inspection, String> {
    if !wasm.starts_with(b"\0asm") {
        return Err("it is not a WebAssembly file: it does not start with \\0asm".to_owned());
    }
    let mut found = Inspection::default();
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload.map_err(|error| broken(&error))?;
        match payload {
            Payload::Version { encoding, .. } => {
                if depth == 0 {
                    found.is_component = encoding == Encoding::Component;
                }
                depth += 1;
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            payload => found.add(payload, depth == 1).map_err(|error| broken(&error))?,
        }
    }
    if depth > 0 {
        Err("it is cut off".to_owned())
    } else {
        Ok(found)
    }
}

fn broken(error: &wasmparser::BinaryReaderError) -> String {
    format!("it is damaged or cut off: {error}")
}

impl Inspection {
    fn add(&mut self, payload: Payload<'_>, outermost: bool) -> Result<(), wasmparser::BinaryReaderError> {
        match payload {
            Payload::ImportSection(imports) if outermost => {
                for import in imports.into_imports() {
                    let import = import?;
                    self.imports.push(format!("{}.{}", import.module, import.name));
                }
            }
            Payload::ExportSection(exports) if outermost => {
                for export in exports {
                    self.exports.push(export?.name.to_owned());
                }
            }
            Payload::ComponentImportSection(imports) if outermost => {
                for import in imports {
                    self.imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(exports) if outermost => {
                for export in exports {
                    self.exports.push(export?.name.name.to_owned());
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    self.memories += 1;
                    self.min_memory = self.min_memory.max(memory?.initial.saturating_mul(PAGE));
                }
            }
            Payload::TableSection(tables) => {
                for table in tables {
                    self.tables += 1;
                    self.min_table = self.min_table.max(table?.ty.initial);
                }
            }
            Payload::InstanceSection(instances) => {
                self.core_instances += usize::try_from(instances.count()).unwrap_or(usize::MAX);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPORT: &str = r#"(instance) (export "popcell:interpreter/operations@0.1.0" (instance 0))"#;

    fn component(text: &str) -> Inspection {
        inspect(&wat::parse_str(text).unwrap()).unwrap()
    }

    fn objection(text: &str) -> String {
        component(text).objection(64 << 20).unwrap().to_string()
    }

    #[test]
    fn the_version_is_that_of_the_interface_text() {
        let text = include_str!("../../../wit/interpreter.wit");
        assert!(text.contains(&format!("package popcell:interpreter@{INTERFACE_VERSION};")));
    }

    #[test]
    fn an_import_of_a_clock_is_named() {
        let text = objection(r#"(component (import "wasi:clocks/wall-clock@0.2.3" (instance)))"#);
        assert!(
            text.contains("\"wasi:clocks/wall-clock@0.2.3\"") && text.contains("a clock"),
            "{text}"
        );
    }

    #[test]
    fn a_core_module_is_distinguished_from_a_component() {
        assert!(objection("(module)").contains("popcell build"));
    }

    #[test]
    fn both_versions_are_named() {
        let text =
            objection(r#"(component (instance $i) (export "popcell:interpreter/operations@0.2.0" (instance $i)))"#);
        assert!(
            text.contains("popcell:interpreter@0.2.0") && text.contains("speaks 0.1.0"),
            "{text}"
        );
    }

    #[test]
    fn a_truncated_file_is_no_module() {
        let text = format!("(component (core module (memory 1)) {EXPORT})");
        let whole = wat::parse_str(text).unwrap();
        assert_eq!(inspect(&whole).unwrap().objection(64 << 20), None);
        for length in 0..whole.len() {
            // Cut between two sections it is still WebAssembly, but what it exports is gone.
            let objection = inspect(&whole[..length]).map(|inspection| inspection.objection(64 << 20));
            assert!(!matches!(objection, Ok(None)), "{length}");
        }
    }

    #[test]
    fn large_memories_and_tables_are_refused_by_name() {
        let memory = objection(&format!("(component (core module (memory 1280)) {EXPORT})"));
        assert!(memory.contains("80 MiB") && memory.contains("--max-memory"), "{memory}");
        let table = objection(&format!("(component (core module (table 25000 funcref)) {EXPORT})"));
        assert!(table.contains("25000 elements") && table.contains("20000"), "{table}");
    }
}
