//! A directory of modules, such as a mounted ConfigMap or image volume.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::LoadError;
use crate::{Engine, Module, Modules};

impl Engine {
    /// Loads every `*.wasm` in a directory, in the order of their names. Hidden entries are passed over and links
    /// followed: in a ConfigMap volume every file is a link into `..data`. The error names every file that is refused and
    /// every two modules that conflict.
    pub fn load_dir(self: &Arc<Self>, directory: &Path) -> Result<Modules, LoadError> {
        let files = module_files(directory)?;
        let (mut modules, mut errors) = (Vec::new(), Vec::new());
        for loaded in side_by_side(&files, |file| self.load_file(file)) {
            match loaded {
                Ok(module) => modules.push(module),
                Err(error) => errors.push(error),
            }
        }
        let (modules, conflicts) = Modules::of(modules);
        errors.extend(conflicts);
        LoadError::all(errors).map_or(Ok(modules), Err)
    }

    /// Loads one file.
    pub fn load_file(self: &Arc<Self>, path: &Path) -> Result<Module, LoadError> {
        let wasm = fs::read(path).map_err(|source| LoadError::File {
            path: path.to_owned(),
            source,
        })?;
        self.load(&path.display().to_string(), &wasm)
    }
}

/// The files that [`Engine::load_dir`] loads; none is an error.
pub fn module_files(directory: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let files = files(directory).map_err(|source| LoadError::Directory {
        path: directory.to_owned(),
        source,
    })?;
    if files.is_empty() {
        return Err(LoadError::Empty {
            path: directory.to_owned(),
        });
    }
    Ok(files)
}

fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.extension().is_some_and(|extension| extension == "wasm") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Applies `work` to every item on as many threads as there are cores; results in the order of the items.
fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let (index, Some(item)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            (index, items.get(index))
        } {
            done.push((index, work(item)));
        }
        done
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut done = worker();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
