//! Where tests are: of one module crate, of every crate below a folder, or in files of their own.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use popcell_sdk::test::{
    cases::{CaseFile, FolderError, read_folder},
    yaml,
};

use crate::{console::Console, exit::Failure};

/// Test files, and the crate that they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suite {
    /// Folder of the module crate.
    pub(super) package: Option<PathBuf>,
    /// Folder of test files, or one file, as it is read and shown.
    pub(super) shown: PathBuf,
    /// What the names of its tests begin with: empty when there is only one suite.
    pub(super) prefix: String,
}

impl Suite {
    fn of_module(folder: &Path, prefix: String) -> Self {
        Self {
            package: Some(folder.to_owned()),
            shown: tidy(&folder.join("tests")),
            prefix,
        }
    }
}

/// The suites of a command line's path.
pub(super) fn suites(path: &str, module_given: bool) -> Result<Vec<Suite>, Failure> {
    if let Some(below) = path.strip_suffix("...") {
        let below = Path::new(if below.is_empty() { "." } else { below });
        if module_given {
            return Err(Failure::Usage(
                "--module and --url are one interpreter, `...` are many modules: give a folder of test files"
                    .to_owned(),
            ));
        }
        let mut suites = Vec::new();
        collect(below, &mut suites)?;
        if suites.is_empty() {
            return Err(Failure::Failed(format!("no module crate below {}", below.display())));
        }
        return Ok(suites);
    }
    let path = Path::new(path);
    let metadata = std::fs::metadata(path).map_err(|error| Failure::file("read", path, &error))?;
    if metadata.is_dir() && is_module(path) {
        return Ok(vec![Suite::of_module(path, String::new())]);
    }
    Ok(vec![Suite {
        package: package_above(path),
        shown: path.to_owned(),
        prefix: String::new(),
    }])
}

/// Without a leading `./`.
fn tidy(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_owned()
}

fn collect(folder: &Path, suites: &mut Vec<Suite>) -> Result<(), Failure> {
    let fail = |error| Failure::file("read", folder, &error);
    if is_module(folder) {
        let name = tidy(folder).display().to_string();
        let prefix = if name.is_empty() { name } else { format!("{name}::") };
        suites.push(Suite::of_module(folder, prefix));
    }
    let mut below = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let skipped = name == "target" || name.to_string_lossy().starts_with('.');
        if !skipped && entry.file_type().map_err(fail)?.is_dir() {
            below.push(entry.path());
        }
    }
    below.sort();
    below.iter().try_for_each(|folder| collect(folder, suites))
}

/// A crate that exports an interpreter: it depends on the SDK and makes a `cdylib`.
fn is_module(folder: &Path) -> bool {
    std::fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|manifest| {
        manifest.contains("popcell-sdk")
            && manifest.contains("cdylib")
            && crate::build::package_name(&manifest).is_some()
    })
}

fn package_above(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find(|folder| is_module(folder)).map(Path::to_owned)
}

/// Reads the test files. Manifests that lie beside them, as Karmada's customizations.yaml does, are not changed.
pub(super) fn files(suite: &Suite, console: &mut Console) -> Result<Vec<CaseFile>, Failure> {
    if !suite.shown.exists() {
        return Err(Failure::Failed(format!(
            "no test found: there is no {}",
            suite.shown.display()
        )));
    }
    let mut files = read_folder(&suite.shown, &suite.shown).map_err(|error| match error {
        FolderError::Unreadable { .. } => Failure::Environment(error.to_string()),
        FolderError::Empty { .. } => Failure::Failed(error.to_string()),
    })?;
    let (manifests, tests): (Vec<_>, Vec<_>) = files.drain(..).partition(|file| is_manifest(&file.text));
    for file in manifests {
        writeln!(
            console.err,
            "skipped {}: it holds Kubernetes objects, not tests",
            file.name
        )?;
    }
    Ok(tests)
}

fn is_manifest(text: &str) -> bool {
    let object = |document: &yaml::Node| {
        document.field("apiVersion").is_some()
            && document.field("kind").is_some()
            && document.field("operation").is_none()
    };
    yaml::documents(text).is_ok_and(|documents| !documents.is_empty() && documents.iter().all(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_distinguished_from_tests() {
        assert!(is_manifest("apiVersion: v1\nkind: ConfigMap\n"));
        assert!(!is_manifest("name: a\noperation: Retain\n"));
        assert!(!is_manifest(
            "apiVersion: v1\nkind: ConfigMap\n---\nname: a\noperation: Retain\n"
        ));
        assert!(!is_manifest(""));
        assert!(!is_manifest("a: [\n"));
    }

    #[test]
    fn every_module_below_a_folder_is_a_suite_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, manifest: &str, tests: bool| {
            let package = folder.path().join(name);
            std::fs::create_dir_all(&package).unwrap();
            std::fs::write(package.join("Cargo.toml"), manifest).unwrap();
            if tests {
                std::fs::create_dir(package.join("tests")).unwrap();
            }
        };
        let module =
            "[package]\nname = \"x\"\n[lib]\ncrate-type = [\"cdylib\"]\n[dependencies]\npopcell-sdk = \"0.1\"\n";
        make("b", module, true);
        make("deep/a", module, true);
        make("without-tests", module, false); // which is reported
        make(
            "library",
            "[package]\nname = \"y\"\n[dependencies]\npopcell-sdk = \"0.1\"\n",
            true,
        );
        make("target/c", module, true);
        make(".hidden", module, true);
        let found = suites(&format!("{}/...", folder.path().display()), false).unwrap();
        let below = |path: &Path| path.strip_prefix(folder.path()).unwrap().to_owned();
        let found: Vec<_> = found.iter().map(|suite| below(&suite.shown)).collect();
        assert_eq!(found, ["b/tests", "deep/a/tests", "without-tests/tests"].map(Path::new));
        assert!(suites(&format!("{}/library/...", folder.path().display()), false).is_err());
    }
}
