//! An OCI image layout, made without an engine: one layer, a configuration, a manifest (opencontainers/image-spec 1.1).

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::Release;
use super::archive::{Hashing, Tree, hash_of};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIGURATION: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Where an image is kept, as the manifests name it.
pub(super) const REPOSITORY: &str = "ghcr.io/popcell/popcell";

/// An image that was written.
pub(super) struct Image {
    /// The digest of its manifest, by which manifests name it: `sha256:...`.
    pub(super) digest: String,
    /// What is pulled of it.
    pub(super) bytes: u64,
}

/// Writes an image with these files into a new directory.
///
/// # Errors
/// The directory is there already, or cannot be written.
pub(super) fn write(layout: &Path, files: &Tree, release: &Release) -> Result<Image> {
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs).with_context(|| format!("failed to make {}", blobs.display()))?;
    let (layer, uncompressed) = layer(&blobs, files, release.time)?;
    let configuration = json!({
        "created": release.created(),
        "architecture": release.architecture,
        "os": "linux",
        "config": {
            "User": "65532:65532",
            "Env": ["PATH=/usr/local/bin"],
            "Entrypoint": ["/usr/local/bin/popcell-webhook"],
            "Labels": {
                "org.opencontainers.image.title": "popcell",
                "org.opencontainers.image.description": "Compute that is declared once and runs in the cells of Karmada",
                "org.opencontainers.image.licenses": release.license,
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.revision": release.commit,
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{uncompressed}")] },
        "history": [{ "created": release.created(), "created_by": "cargo xtask dist" }],
    });
    let configuration = blob(&blobs, CONFIGURATION, &configuration)?;
    let bytes = layer.bytes + configuration.bytes;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": configuration.json(),
        "layers": [layer.json()],
    });
    let manifest = blob(&blobs, MANIFEST, &manifest)?;
    let mut named = manifest.json();
    named["platform"] = json!({ "architecture": release.architecture, "os": "linux" });
    named["annotations"] = json!({
        "org.opencontainers.image.ref.name": release.version,
        "io.containerd.image.name": format!("{REPOSITORY}:{}", release.version),
    });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [named] });
    for (name, content) in [
        ("oci-layout", json!({ "imageLayoutVersion": "1.0.0" })),
        ("index.json", index),
    ] {
        let file = layout.join(name);
        fs::write(&file, content.to_string()).with_context(|| format!("failed to write {}", file.display()))?;
    }
    Ok(Image {
        digest: manifest.digest,
        bytes,
    })
}

/// A blob as others name it.
struct Descriptor {
    media_type: &'static str,
    digest: String,
    bytes: u64,
}

impl Descriptor {
    fn json(&self) -> Value {
        json!({ "mediaType": self.media_type, "digest": self.digest, "size": self.bytes })
    }
}

fn blob(blobs: &Path, media_type: &'static str, content: &Value) -> Result<Descriptor> {
    let mut hashing = Hashing::new(Vec::new());
    write!(hashing, "{content}").context("failed to write JSON")?;
    let (text, hash, bytes) = hashing.finish();
    let file = blobs.join(&hash);
    fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
    let digest = format!("sha256:{hash}");
    Ok(Descriptor {
        media_type,
        digest,
        bytes,
    })
}

/// The files as a layer, and the hash of them before they are compressed.
fn layer(blobs: &Path, files: &Tree, time: u64) -> Result<(Descriptor, String)> {
    let unnamed = blobs.join("layer");
    let file = File::create(&unnamed).with_context(|| format!("failed to create {}", unnamed.display()))?;
    // The header of gzip has no time and no name.
    let compressed = GzEncoder::new(Hashing::new(BufWriter::new(file)), Compression::best());
    let mut plain = Hashing::new(compressed);
    files.write(&mut plain, time)?;
    let (compressed, uncompressed, _) = plain.finish();
    let hashed = compressed.finish().context("failed to compress the layer")?;
    let (mut file, hash, bytes) = hashed.finish();
    file.flush().context("failed to write the layer")?;
    let named = blobs.join(&hash);
    fs::rename(&unnamed, &named).with_context(|| format!("failed to rename {}", unnamed.display()))?;
    let digest = format!("sha256:{hash}");
    let descriptor = Descriptor {
        media_type: LAYER,
        digest,
        bytes,
    };
    Ok((descriptor, uncompressed))
}

/// Unpacks the one image of a layout into a directory, as an engine does; its configuration.
///
/// # Errors
/// A blob is not what its digest says, or something is missing.
pub(super) fn unpack(layout: &Path, to: &Path) -> Result<Value> {
    let index = read(&layout.join("index.json"))?;
    let manifest = opened(layout, &index["manifests"][0])?;
    let configuration = opened(layout, &manifest["config"])?;
    let layer = checked(layout, &manifest["layers"][0])?;
    let file = File::open(&layer).with_context(|| format!("failed to open {}", layer.display()))?;
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    archive.unpack(to).context("failed to unpack the layer")?;
    Ok(configuration)
}

fn opened(layout: &Path, descriptor: &Value) -> Result<Value> {
    read(&checked(layout, descriptor)?)
}

/// The file of a blob, which is what the descriptor says.
fn checked(layout: &Path, descriptor: &Value) -> Result<std::path::PathBuf> {
    let digest = descriptor["digest"]
        .as_str()
        .and_then(|digest| digest.strip_prefix("sha256:"));
    let digest = digest.with_context(|| format!("no digest in {descriptor}"))?;
    let file = layout.join("blobs/sha256").join(digest);
    let (hash, bytes) = hash_of(&file)?;
    ensure!(
        hash == digest && descriptor["size"] == bytes,
        "{} has {bytes} bytes and the SHA-256 {hash}, not what its image says: {descriptor}",
        file.display()
    );
    Ok(file)
}

fn read(file: &Path) -> Result<Value> {
    let text = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("failed to understand {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(from: &Path) -> Tree {
        let mut files = Tree::default();
        files.program("usr/local/bin/popcell", from);
        files.link("usr/local/bin/kubectl-popcell", "popcell");
        files.text("etc/nsswitch.conf", "hosts: files dns\n".to_owned());
        files.directory("tmp", 0o1777);
        files
    }

    #[test]
    fn an_image_is_unpacked_as_it_was_written_and_the_same_files_make_the_same_image() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("program");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        let (one, two) = (home.path().join("one"), home.path().join("two"));
        let image = write(&one, &files(&program), &Release::example()).unwrap();
        assert_eq!(
            write(&two, &files(&program), &Release::example()).unwrap().digest,
            image.digest
        );
        let root = home.path().join("root");
        let configuration = unpack(&one, &root).unwrap();
        assert_eq!(configuration["created"], "2026-01-01T00:00:00Z");
        assert_eq!(configuration["config"]["User"], "65532:65532");
        let labels = &configuration["config"]["Labels"];
        assert_eq!(labels["org.opencontainers.image.revision"], "c0ffee");
        assert_eq!(
            fs::read_to_string(root.join("usr/local/bin/kubectl-popcell")).unwrap(),
            "#!/bin/sh\n"
        );
        let mode = |path: &str| {
            use std::os::unix::fs::PermissionsExt as _;
            fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!(
            (mode("usr/local/bin/popcell"), mode("etc/nsswitch.conf")),
            (0o755, 0o644)
        );
    }

    #[test]
    fn a_blob_that_was_changed_is_named() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("program");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        let layout = home.path().join("layout");
        let image = write(&layout, &files(&program), &Release::example()).unwrap();
        let hash = image.digest.strip_prefix("sha256:").unwrap();
        fs::write(layout.join("blobs/sha256").join(hash), "{}").unwrap();
        let error = unpack(&layout, &home.path().join("root")).unwrap_err();
        assert!(error.to_string().contains(hash), "{error:#}");
    }
}
