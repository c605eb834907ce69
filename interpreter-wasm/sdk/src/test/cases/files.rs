//! The test files of a folder.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{Case, CaseError, read};

/// One test file with its cases, and the documents that are none.
#[derive(Debug, Clone)]
pub struct CaseFile {
    /// The file below the folder, with `/` between its parts.
    pub name: String,
    /// Its text, for showing lines of it.
    pub text: String,
    /// Its documents.
    pub cases: Vec<Result<Case, CaseError>>,
}

/// Why a folder holds no tests.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder or a file in it cannot be read.
    #[error("failed to read {}: {source}", path.display())]
    Unreadable {
        /// What was read.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// There is nothing to run; a test run that tests nothing must not pass.
    #[error("no test in {}: expected at least one .yaml or .yml file with a document in it", folder.display())]
    Empty {
        /// Where tests were looked for.
        folder: PathBuf,
    },
}

/// Reads every `.yaml` and `.yml` file below `folder`, in the order of their names. `shown` is how the folder is shown
/// in messages (`tests`). A single file is taken as well.
///
/// # Errors
/// When something cannot be read, and when there is no document at all.
pub fn read_folder(folder: &Path, shown: &Path) -> Result<Vec<CaseFile>, FolderError> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|source| unreadable(&path, source))?;
        let below = path.strip_prefix(folder).unwrap_or(&path);
        let (below, shown) = match below.file_name() {
            Some(_) => (below, shown.join(below)),
            None => (path.as_path(), shown.to_owned()),
        };
        let name = below
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect::<Vec<_>>()
            .join("/");
        files.push(CaseFile {
            name,
            cases: read(&shown, &text),
            text,
        });
    }
    if files.iter().all(|file| file.cases.is_empty()) {
        return Err(FolderError::Empty {
            folder: folder.to_owned(),
        });
    }
    Ok(files)
}

fn collect(path: &Path, paths: &mut Vec<PathBuf>) -> Result<(), FolderError> {
    if !path.is_dir() {
        fs::metadata(path).map_err(|source| unreadable(path, source))?;
        paths.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(|source| unreadable(path, source))? {
        let path = entry.map_err(|source| unreadable(path, source))?.path();
        let yaml = path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml");
        if path.is_dir() || yaml {
            collect(&path, paths)?;
        }
    }
    Ok(())
}

fn unreadable(path: &Path, source: io::Error) -> FolderError {
    FolderError::Unreadable {
        path: path.to_owned(),
        source,
    }
}
