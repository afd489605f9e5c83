//! What `cargo metadata` says of the workspace: crates, their folders, their dependencies.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The platform that products are built for.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// The platform that crates are declared for of which only the sources are used.
const NOWHERE: &str = "x86_64-unknown-none";

#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) description: Option<String>,
    /// Absent for a crate of the workspace.
    pub(crate) source: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    /// What `cargo run` starts, if the manifest says.
    default_run: Option<String>,
    targets: Vec<Target>,
    manifest_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
}

impl Package {
    /// Whether `cargo run` knows what to start.
    pub(crate) fn can_run(&self) -> bool {
        let is_program = |target: &&Target| target.kind.iter().any(|kind| kind == "bin");
        self.default_run.is_some() || self.targets.iter().filter(is_program).count() < 2
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` is an ordinary dependency, else "dev" or "build".
    pub(crate) kind: Option<String>,
    pub(crate) path: Option<PathBuf>,
}

impl Metadata {
    pub(crate) fn load(root: &Path) -> Result<Self> {
        Self::of(root, PLATFORM)
    }

    /// The folder that cargo unpacked a crate to, of which only the sources are used.
    pub(crate) fn directory(root: &Path, name: &str) -> Result<PathBuf> {
        let metadata = Self::of(root, NOWHERE)?;
        let package = metadata.packages.into_iter().find(|it| it.name == name);
        let manifest = package.map(|package| package.manifest_path);
        let folder = manifest.as_deref().and_then(Path::parent);
        folder
            .map(Path::to_path_buf)
            .with_context(|| format!("cargo metadata knows no package {name}"))
    }

    fn of(root: &Path, platform: &str) -> Result<Self> {
        let output = crate::cargo()
            .args(["metadata", "--format-version", "1", "--locked"])
            .args(["--filter-platform", platform])
            .current_dir(root)
            .output()
            .context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!(
                "cargo metadata: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        serde_json::from_slice(&output.stdout).context("cannot read the answer of cargo metadata")
    }

    /// The crates of this workspace.
    pub(crate) fn ours(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| package.source.is_none())
    }

    /// The crates of others that the lock file holds.
    pub(crate) fn theirs(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| package.source.is_some())
    }

    /// The folder of a crate, relative to the root of the workspace.
    pub(crate) fn folder<'a>(&self, package: &'a Package) -> &'a Path {
        let folder = package
            .manifest_path
            .parent()
            .unwrap_or(&package.manifest_path);
        folder.strip_prefix(&self.workspace_root).unwrap_or(folder)
    }
}
