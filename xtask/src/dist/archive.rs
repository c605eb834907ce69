//! Files as an archive, whose bytes depend on what is in it alone: sorted, of user 0, all of the same time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

/// What is at a path.
enum Entry {
    Directory { mode: u32 },
    File { from: PathBuf, mode: u32 },
    Text(String),
    Link(String),
}

/// Paths without a leading `/`, and what is there.
#[derive(Default)]
pub(super) struct Tree(BTreeMap<PathBuf, Entry>);

impl Tree {
    /// A directory that is there even if it is empty, or whose mode is not 0755.
    pub(super) fn directory(&mut self, path: &str, mode: u32) {
        self.put(path.as_ref(), Entry::Directory { mode });
    }

    /// A file with what another holds.
    pub(super) fn file(&mut self, path: &str, from: &Path) {
        let from = from.to_path_buf();
        self.put(path.as_ref(), Entry::File { from, mode: 0o644 });
    }

    /// The same that can be run.
    pub(super) fn program(&mut self, path: &str, from: &Path) {
        let from = from.to_path_buf();
        self.put(path.as_ref(), Entry::File { from, mode: 0o755 });
    }

    /// A file with a text.
    pub(super) fn text(&mut self, path: &str, text: String) {
        self.put(path.as_ref(), Entry::Text(text));
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        self.put(path.as_ref(), Entry::Link(target.to_owned()));
    }

    /// All files of a directory, below `path`.
    pub(super) fn files_of(&mut self, path: &str, directory: &Path) -> Result<()> {
        let context = || format!("failed to list {}", directory.display());
        for entry in fs::read_dir(directory).with_context(context)? {
            let file = entry.with_context(context)?;
            self.file(&format!("{path}/{}", file.file_name().to_string_lossy()), &file.path());
        }
        Ok(())
    }

    fn put(&mut self, path: &Path, entry: Entry) {
        for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            let directory = Entry::Directory { mode: 0o755 };
            self.0.entry(above.to_path_buf()).or_insert(directory);
        }
        self.0.insert(path.to_path_buf(), entry);
    }

    /// Writes all of it, as of a time in seconds since 1970.
    pub(super) fn write(&self, to: impl Write, time: u64) -> Result<()> {
        let mut archive = Builder::new(to);
        for (path, entry) in &self.0 {
            let written = append(&mut archive, path, entry, time);
            written.with_context(|| format!("failed to put {} into an archive", path.display()))?;
        }
        archive.finish().context("failed to end an archive")
    }
}

fn append(archive: &mut Builder<impl Write>, path: &Path, entry: &Entry, time: u64) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(time);
    let (kind, mode) = match entry {
        Entry::Directory { mode } => (EntryType::Directory, *mode),
        Entry::File { mode, .. } => (EntryType::Regular, *mode),
        Entry::Text(_) => (EntryType::Regular, 0o644),
        Entry::Link(_) => (EntryType::Symlink, 0o777),
    };
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    match entry {
        Entry::Directory { .. } => archive.append_data(&mut header, path, io::empty()),
        Entry::File { from, .. } => {
            let file = File::open(from)?;
            header.set_size(file.metadata()?.len());
            archive.append_data(&mut header, path, file)
        }
        Entry::Text(text) => {
            header.set_size(text.len() as u64);
            archive.append_data(&mut header, path, text.as_bytes())
        }
        Entry::Link(target) => archive.append_link(&mut header, path, target),
    }
}

/// Counts and hashes what is written through it.
pub(super) struct Hashing<W> {
    inner: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Hashing<W> {
    pub(super) fn new(inner: W) -> Self {
        let hash = Sha256::new();
        Self { inner, hash, bytes: 0 }
    }

    /// What it wrote to, the SHA-256 of what was written, in hexadecimal, and how many bytes that is.
    pub(super) fn finish(self) -> (W, String, u64) {
        (self.inner, format!("{:x}", self.hash.finalize()), self.bytes)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The SHA-256 of a file, in hexadecimal, and how many bytes it has.
pub(super) fn hash_of(file: &Path) -> Result<(String, u64)> {
    let context = || format!("failed to read {}", file.display());
    let mut hashing = Hashing::new(io::sink());
    io::copy(&mut File::open(file).with_context(context)?, &mut hashing).with_context(context)?;
    let (_, hash, bytes) = hashing.finish();
    Ok((hash, bytes))
}
