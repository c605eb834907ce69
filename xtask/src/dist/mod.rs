//! `dist`: what operators get, in one folder: programs, image, install files, chart, bill of materials, checksums.
//!
//! Invariants: what is written is taken apart again and run before the command ends; the same programs make the same archives.

mod archive;
mod bill;
mod image;
mod install;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use object::{Object as _, ObjectSection as _};
use popcell_test_support::workspace;
use serde_json::Value;

use crate::module;
use crate::steps::Steps;
use crate::test::cargo;
use archive::{Tree, hash_of};

/// What is shipped.
const PROGRAMS: [&str; 4] = [
    "popcell",
    "popcell-controller",
    "popcell-provider-pod",
    "popcell-webhook",
];
/// By this name kubectl finds popcell: `kubectl popcell`.
const KUBECTL_PLUGIN: &str = "kubectl-popcell";
/// The module that is in the image.
const MODULE: &str = "compute.wasm";
/// Where Debian keeps Mozilla's authorities, for API servers whose certificates are public; the bundle in /etc may have others of the
/// machine.
const AUTHORITIES: &str = "/usr/share/ca-certificates/mozilla";
/// Where programs look for them.
const BUNDLE: &str = "etc/ssl/certs/ca-certificates.crt";
/// So much an image may have to be pulled, in bytes.
const LARGEST_IMAGE: u64 = 60_000_000;
/// So large `popcell` may be, which people download.
const LARGEST_POPCELL: u64 = 40_000_000;
const CHECKSUMS: &str = "SHA256SUMS";
const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];

/// Arguments of `dist`.
#[derive(Args)]
pub(crate) struct Dist {
    /// Folder to write to, which is replaced (`release-files` in the target folder without it)
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// What is released.
struct Release {
    version: String,
    /// As git names it; with `-dirty` where files differ from it.
    commit: String,
    /// When it was made, in seconds since 1970: all that is written is as of then.
    time: u64,
    /// As image-spec calls it.
    architecture: &'static str,
    /// An SPDX expression.
    license: String,
}

impl Release {
    /// What is in this folder.
    fn here() -> Result<Self> {
        let (commit, time) = (git(&["rev-parse", "HEAD"])?, git(&["log", "-1", "--format=%ct"])?);
        let is_dirty = !git(&["status", "--porcelain"])?.is_empty();
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: if is_dirty { format!("{commit}-dirty") } else { commit },
            time: time.parse().context("git named no time of the commit")?,
            architecture,
            license: env!("CARGO_PKG_LICENSE").to_owned(),
        })
    }

    /// As RFC 3339.
    fn created(&self) -> String {
        let seconds = i64::try_from(self.time).unwrap_or_default();
        Timestamp::from_second(seconds).unwrap_or_default().to_string()
    }

    /// The image, as the manifests name it.
    fn image(&self) -> String {
        format!("{}:{}", image::REPOSITORY, self.version)
    }

    /// A file's name with version and architecture.
    fn file(&self, suffix: &str) -> String {
        format!("popcell-{}-linux-{}{suffix}", self.version, self.architecture)
    }
}

fn git(arguments: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(workspace::root())
        .output();
    let output = output.context("failed to start git")?;
    ensure!(
        output.status.success(),
        "git {} failed: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Dist {
    /// Builds, writes, and takes apart again.
    pub(crate) fn run(&self) -> Result<()> {
        let release = Release::here()?;
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let output = self
            .output
            .clone()
            .unwrap_or_else(|| workspace::target_dir().join("release-files"));
        replaceable(&output)?;
        let mut steps = Steps::new();
        steps.call("modules", "cargo xtask module", module::build_all)?;
        steps.run("programs", &mut build(&target, &release.commit))?;
        let programs = workspace::target_dir().join(&target).join("dist");
        let repeat = "cargo xtask dist";
        steps.call("archives", repeat, || write(&output, &programs, &target, &release))?;
        steps.call("the image runs", repeat, || check(&output, &release))?;
        show(&output)
    }
}

/// Static programs: they run on any Linux, and an image needs nothing else.
fn build(target: &str, commit: &str) -> Command {
    let mut build = cargo(&["build", "--locked", "--profile=dist", "--workspace", "--target", target]);
    build.args(PROGRAMS.map(|name| format!("--bin={name}")));
    let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", target.to_uppercase().replace('-', "_"));
    build
        .env(flags, "-C target-feature=+crt-static")
        .env("POPCELL_COMMIT", commit);
    build
}

fn write(output: &Path, programs: &Path, target: &str, release: &Release) -> Result<()> {
    for name in PROGRAMS {
        let program = programs.join(name);
        ensure!(
            is_static(&program)?,
            "{} needs libraries of its machine",
            program.display()
        );
    }
    if output.exists() {
        fs::remove_dir_all(output).with_context(|| format!("failed to remove {}", output.display()))?;
    }
    fs::create_dir_all(output).with_context(|| format!("failed to make {}", output.display()))?;
    let work = tempfile::tempdir_in(output).context("failed to make a folder")?;

    let layout = work.path().join("image");
    let image = image::write(&layout, &of_image(programs)?, release)?;
    ensure!(image.bytes <= LARGEST_IMAGE, "the image has {} bytes", image.bytes);
    let mut archived = Tree::default();
    for name in ["oci-layout", "index.json"] {
        archived.file(name, &layout.join(name));
    }
    archived.files_of("blobs/sha256", &layout.join("blobs/sha256"))?;
    let file = output.join(release.file("-image.tar"));
    let created = File::create(&file).with_context(|| format!("failed to create {}", file.display()))?;
    archived.write(created, release.time)?;

    compress(
        &output.join(release.file(".tar.gz")),
        &of_machine(programs, work.path(), release)?,
        release,
    )?;
    let installations = install::render(release, &image.digest)?;
    install::write(&output.join("install"), &installations)?;
    let chart = install::chart(&installations, release, &image.digest)?;
    compress(
        &output.join(format!("popcell-chart-{}.tgz", release.version)),
        &chart,
        release,
    )?;
    let module = workspace::modules_dir().join(MODULE);
    fs::copy(&module, output.join(MODULE)).with_context(|| format!("failed to copy {}", module.display()))?;
    let bill = bill::of_materials(release, target)?;
    let file = output.join(format!("popcell-{}.cdx.json", release.version));
    fs::write(&file, format!("{bill:#}\n")).with_context(|| format!("failed to write {}", file.display()))?;
    work.close().context("failed to remove a folder")?;
    checksums(output)
}

/// Whether a program asks for no interpreter, which would load its libraries.
fn is_static(program: &Path) -> Result<bool> {
    let bytes = fs::read(program).with_context(|| format!("failed to read {}", program.display()))?;
    let file = object::File::parse(&*bytes).with_context(|| format!("failed to understand {}", program.display()))?;
    let asks = file.sections().any(|section| section.name() == Ok(".interp"));
    Ok(!asks)
}

/// What is in the image.
fn of_image(programs: &Path) -> Result<Tree> {
    let mut files = Tree::default();
    for name in PROGRAMS {
        files.program(&format!("usr/local/bin/{name}"), &programs.join(name));
    }
    files.link(&format!("usr/local/bin/{KUBECTL_PLUGIN}"), "popcell");
    files.file(&format!("modules/{MODULE}"), &workspace::modules_dir().join(MODULE));
    files.text(BUNDLE, authorities()?);
    files.text("etc/nsswitch.conf", "hosts: files dns\n".to_owned());
    files.text(
        "etc/passwd",
        "nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n".to_owned(),
    );
    files.text("etc/group", "nonroot:x:65532:\n".to_owned());
    files.directory("tmp", 0o1777);
    Ok(files)
}

/// The authorities that Mozilla trusts, as one file.
fn authorities() -> Result<String> {
    let fix = || format!("{AUTHORITIES} is needed for the image: install Debian's package ca-certificates");
    let mut bundle = String::new();
    for file in files_below(AUTHORITIES.as_ref()).with_context(fix)? {
        let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        bundle.push_str(text.trim_end());
        bundle.push('\n');
    }
    ensure!(bundle.contains("BEGIN CERTIFICATE"), "{}", fix());
    Ok(bundle)
}

/// Nothing is replaced but what an earlier run has written.
fn replaceable(output: &Path) -> Result<()> {
    let is_ours = output.join(CHECKSUMS).is_file();
    let is_empty = fs::read_dir(output).map_or(true, |mut entries| entries.next().is_none());
    ensure!(
        is_ours || is_empty,
        "{} has other files than those of a release: give an empty folder",
        output.display()
    );
    Ok(())
}

/// What people unpack on their machines: programs, man pages, completion, manifests.
fn of_machine(programs: &Path, work: &Path, release: &Release) -> Result<Tree> {
    let (mut files, top) = (Tree::default(), release.file(""));
    for name in PROGRAMS {
        files.program(&format!("{top}/bin/{name}"), &programs.join(name));
    }
    files.link(&format!("{top}/bin/{KUBECTL_PLUGIN}"), "popcell");
    let popcell = programs.join("popcell");
    let bytes = fs::metadata(&popcell).context("failed to look at popcell")?.len();
    ensure!(bytes <= LARGEST_POPCELL, "popcell has {bytes} bytes");
    for shell in SHELLS {
        let script = answer(Command::new(&popcell).args(["completion", shell]))?;
        files.text(&format!("{top}/completion/popcell.{shell}"), script);
    }
    let pages = work.join("man");
    answer(Command::new(&popcell).arg("man-pages").arg(&pages))?;
    files.files_of(&format!("{top}/man/man1"), &pages)?;
    for name in ["LICENSE", "CHANGELOG.md"] {
        files.file(&format!("{top}/{name}"), &workspace::root().join(name));
    }
    let root = workspace::root();
    for file in files_below(&root.join("manifests"))? {
        let name = file.strip_prefix(&root).unwrap_or(&file);
        files.file(&format!("{top}/{}", name.display()), &file);
    }
    Ok(files)
}

fn compress(file: &Path, files: &Tree, release: &Release) -> Result<()> {
    let context = || format!("failed to write {}", file.display());
    let mut compressed = GzEncoder::new(File::create(file).with_context(context)?, Compression::best());
    files.write(&mut compressed, release.time)?;
    compressed
        .finish()
        .and_then(|mut file| file.flush())
        .with_context(context)
}

/// What a program prints.
fn answer(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("failed to start {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} printed something that is no text"))
}

/// All files below a folder, by their paths in it, sorted.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let context = || format!("failed to list {}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        if path.is_dir() {
            found.extend(files_below(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// SHA256SUMS, as `sha256sum --check` reads it.
fn checksums(output: &Path) -> Result<()> {
    let line = |file: &PathBuf| {
        let (hash, _) = hash_of(file)?;
        let name = file.strip_prefix(output).unwrap_or(file);
        Ok(format!("{hash}  {}\n", name.display()))
    };
    let lines: Result<String> = files_below(output)?.iter().map(line).collect();
    let sums = output.join(CHECKSUMS);
    fs::write(&sums, lines?).with_context(|| format!("failed to write {}", sums.display()))
}

/// The image as an operator gets it: its programs run, its module is the one that was built.
fn check(output: &Path, release: &Release) -> Result<()> {
    let home = tempfile::tempdir().context("failed to make a folder")?;
    let (layout, root) = (home.path().join("image"), home.path().join("root"));
    let file = output.join(release.file("-image.tar"));
    let opened = File::open(&file).with_context(|| format!("failed to open {}", file.display()))?;
    tar::Archive::new(opened)
        .unpack(&layout)
        .context("failed to unpack the image")?;
    let configuration = image::unpack(&layout, &root)?;
    let entry = configuration["config"]["Entrypoint"][0]
        .as_str()
        .unwrap_or_default()
        .trim_start_matches('/');
    ensure!(
        root.join(entry).is_file(),
        "the image begins with {entry}, which is not in it"
    );
    let bin = root.join("usr/local/bin");
    for name in PROGRAMS.iter().chain([&KUBECTL_PLUGIN]) {
        let said = answer(Command::new(bin.join(name)).arg("--version"))?;
        ensure!(said.trim().ends_with(&release.version), "{name} says that it is {said}");
    }
    let said = answer(Command::new(bin.join("popcell")).args(["version", "-o", "json"]))?;
    let said: Value = serde_json::from_str(&said).context("popcell version printed no JSON")?;
    ensure!(
        said["commit"] == release.commit.as_str(),
        "popcell says that it is {said}"
    );
    let (module, built) = (root.join("modules").join(MODULE), workspace::modules_dir().join(MODULE));
    ensure!(
        hash_of(&module)? == hash_of(&built)?,
        "the module in the image is another one"
    );
    answer(
        Command::new(bin.join("popcell"))
            .arg("check")
            .arg(&module)
            .args(["--calls", "0"]),
    )?;
    Ok(())
}

fn show(output: &Path) -> Result<()> {
    println!("\n{}", output.display());
    let mut out = io::stdout().lock();
    for file in files_below(output)? {
        let bytes = fs::metadata(&file)
            .with_context(|| format!("failed to look at {}", file.display()))?
            .len();
        let name = file.strip_prefix(output).unwrap_or(&file);
        writeln!(out, "{bytes:>12}  {}", name.display()).context("failed to print")?;
    }
    Ok(())
}

#[cfg(test)]
impl Release {
    /// One that there is not.
    fn example() -> Self {
        Self {
            version: "1.2.3".to_owned(),
            commit: "c0ffee".to_owned(),
            time: 1_767_225_600,
            architecture: "amd64",
            license: "Apache-2.0".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_that_sha256sum_checks() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("install")).unwrap();
        fs::write(home.path().join("install/cell.yaml"), "a").unwrap();
        fs::write(home.path().join("b"), "b").unwrap();
        checksums(home.path()).unwrap();
        let mut check = Command::new("sha256sum");
        let said = answer(check.args(["--check", "SHA256SUMS"]).current_dir(home.path())).unwrap();
        assert_eq!(said, "b: OK\ninstall/cell.yaml: OK\n");
    }

    #[test]
    fn only_what_an_earlier_run_has_written_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let output = home.path().join("out");
        replaceable(&output).unwrap();
        fs::create_dir(&output).unwrap();
        replaceable(&output).unwrap();
        fs::write(output.join("a"), "").unwrap();
        let refused = replaceable(&output).unwrap_err().to_string();
        assert!(refused.contains("give an empty folder"), "{refused}");
        checksums(&output).unwrap();
        replaceable(&output).unwrap();
    }

    #[test]
    fn a_program_that_loads_libraries_is_not_static() {
        assert!(!is_static(&std::env::current_exe().unwrap()).unwrap());
    }
}
