//! `popcell new`: a module crate from a template that is part of this program.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use crate::{
    args::module::{New, Template},
    console::Console,
    exit::{Exit, Failure, Outcome},
};

/// Runs the command.
pub fn run(args: &New, console: &mut Console) -> Outcome {
    let New { name, template, sdk } = args;
    check_name(name).map_err(|reason| Failure::Usage(format!("failed to name the crate {name:?}: {reason}")))?;
    let sdk = match sdk {
        Some(sdk) => sdk_source(sdk)?,
        None => sdk_around()?,
    };
    let folder = Path::new(name);
    if folder.symlink_metadata().is_ok() {
        return Err(Failure::Usage(format!(
            "{name} is there already: choose another name, or remove it"
        )));
    }
    for (file, text) in files(*template) {
        let path = folder.join(file.strip_suffix(".template").unwrap_or(file));
        write(&path, &filled(text, name, &sdk))?;
    }
    writeln!(
        console.out,
        "made {name} from template {} (popcell-sdk = {{ {sdk} }}). Next:\n  cd {name}\n  cargo test",
        template_name(*template)
    )?;
    Ok(Exit::Success)
}

fn template_name(template: Template) -> String {
    use clap::ValueEnum as _;
    template
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
    std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))
}

fn filled(text: &str, name: &str, sdk: &str) -> String {
    text.replace("{{name}}", name)
        .replace("{{crate}}", &name.replace('-', "_"))
        .replace("{{sdk}}", sdk)
}

/// What is a name for cargo, for a file and for a metric label alike.
fn check_name(name: &str) -> Result<(), &'static str> {
    const KEYWORDS: &str = "test core std alloc proc-macro self super crate async await dyn mod";
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 63 {
        return Err("expected 1 to 63 characters");
    }
    if !name.chars().all(letters)
        || !name.starts_with(|c: char| c.is_ascii_lowercase())
        || name.ends_with('-')
        || name.contains("--")
    {
        return Err("expected lower-case letters, digits and single dashes, a letter first, as in widget-interpreter");
    }
    if KEYWORDS.split(' ').any(|word| word == name) || name == "popcell-sdk" {
        return Err("this name has a meaning of its own in Rust");
    }
    Ok(())
}

/// The dependency on the SDK, as it stands between braces in Cargo.toml.
fn sdk_source(sdk: &str) -> Result<String, Failure> {
    if sdk.contains(['"', '\\', '\n']) {
        return Err(Failure::Usage(format!(
            "--sdk {sdk:?}: it holds a character that Cargo.toml cannot"
        )));
    }
    if sdk.contains("://") || sdk.starts_with("git@") {
        return Ok(format!("git = \"{sdk}\""));
    }
    let found = sdk_in(Path::new(sdk)).ok_or_else(|| {
        Failure::Usage(format!("--sdk {sdk}: it is not the folder of popcell-sdk (interpreter-wasm/sdk of the popcell repository), and not a URL"))
    })?;
    by_path(&found)
}

/// As long as the SDK is in no registry, a newcomer works in a clone of popcell, or with a program that was built in one.
fn sdk_around() -> Result<String, Failure> {
    let places = [std::env::current_dir(), std::env::current_exe()];
    let found = places
        .iter()
        .flatten()
        .find_map(|place| place.ancestors().find_map(sdk_in));
    by_path(&found.ok_or_else(|| {
        Failure::Usage(
            "neither this folder nor this program lies in the popcell repository: give --sdk, the folder of a clone or the URL of the \
             Git repository"
                .to_owned(),
        )
    })?)
}

/// The SDK's folder, if `folder` is that or the repository.
fn sdk_in(folder: &Path) -> Option<PathBuf> {
    [folder.to_owned(), folder.join("interpreter-wasm/sdk")]
        .into_iter()
        .find(|folder| {
            std::fs::read_to_string(folder.join("Cargo.toml"))
                .is_ok_and(|manifest| crate::build::package_name(&manifest) == Some("popcell-sdk"))
        })
}

/// The new crate lies deeper than where the command was typed.
fn by_path(folder: &Path) -> Result<String, Failure> {
    let folder = folder
        .canonicalize()
        .map_err(|error| Failure::file("find", folder, &error))?;
    Ok(format!("path = \"{}\"", folder.display()))
}

macro_rules! files {
    ($folder:literal: $($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../interpreter-wasm/templates/", $folder, "/", $file)))),+]
    };
}

/// The files of each template, in the binary, since `popcell new` needs no network: paths below the new folder and their
/// texts. `.template` at the end of a path is dropped.
fn files(template: Template) -> &'static [(&'static str, &'static str)] {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::ValueEnum as _;

    use super::*;
    use Template;

    #[test]
    fn names_are_checked() {
        for name in ["widget-interpreter", "w", "a1"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "Widget",
            "1a",
            "a_b",
            "-a",
            "a-",
            "a--b",
            "a/b",
            "..",
            "test",
            "popcell-sdk",
            &"a".repeat(64),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_sdk_is_found_in_the_repository_and_in_its_own_folder_only() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let sdk = repository.join("interpreter-wasm/sdk");
        assert_eq!(sdk_in(&repository), Some(sdk.clone()));
        assert_eq!(sdk_in(&sdk), Some(sdk));
        assert_eq!(sdk_in(&repository.join("interpreter-wasm")), None);
    }

    #[test]
    fn no_file_of_a_template_is_forgotten() {
        for template in Template::value_variants() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../interpreter-wasm/templates")
                .join(template_name(*template));
            let mut there = BTreeSet::new();
            let mut folders = vec![folder.clone()];
            while let Some(next) = folders.pop() {
                for entry in std::fs::read_dir(&next).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_dir() {
                        folders.push(path);
                    } else {
                        there.insert(path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned());
                    }
                }
            }
            let embedded: BTreeSet<_> = files(*template).iter().map(|(file, _)| (*file).to_owned()).collect();
            assert_eq!(embedded, there, "{template:?}");
        }
    }

    #[test]
    fn the_hello_world_is_four_files_and_35_lines() {
        let files = files(Template::Health);
        let lines: usize = files.iter().map(|(_, text)| text.lines().count()).sum();
        assert!(files.len() <= 4 && lines <= 35, "{} files, {lines} lines", files.len());
    }

    #[test]
    fn nothing_is_left_to_fill_in() {
        for template in Template::value_variants() {
            for (file, text) in files(*template) {
                let text = filled(text, "a-b", "path = \"x\"").replace("{{EXCLUDE}}", "");
                assert!(!text.contains("{{"), "{template:?} {file}");
            }
        }
    }
}
