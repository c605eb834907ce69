//! The files of each template, in the binary: `popcell new` needs no network.

use crate::args::module::Template;

macro_rules! files {
    ($folder:literal: $($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../../interpreter-wasm/templates/", $folder, "/", $file)))),+]
    };
}

/// Paths below the new folder and their texts. `.template` at the end of a path is dropped.
pub(super) fn files(template: Template) -> &'static [(&'static str, &'static str)] {
    match template {
        Template::Health => {
            files!("health": "Cargo.toml.template", "src/lib.rs", "tests/cases.rs", "tests/health.yaml")
        }
        Template::Replicas => {
            files!("replicas": "Cargo.toml.template", "src/lib.rs", "tests/cases.rs", "tests/replicas.yaml", "tests/revise.yaml")
        }
        Template::Aggregate => {
            files!("aggregate": "Cargo.toml.template", "src/lib.rs", "tests/aggregate.yaml", "tests/cases.rs", "tests/status.yaml")
        }
        Template::Full => {
            files!("full": "Cargo.toml.template", "src/lib.rs", "tests/cases.rs", "tests/dependencies.yaml", "tests/health.yaml", "tests/replicas.yaml", "tests/retain.yaml", "tests/revise.yaml", "tests/status.yaml")
        }
    }
}
