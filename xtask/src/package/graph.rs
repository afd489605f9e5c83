//! The crates that a program is made of, from `cargo metadata` and the lock file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// A crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Krate {
    pub(crate) name: String,
    pub(crate) version: String,
    /// SPDX expression. `None` means that the crate names none.
    pub(crate) license: Option<String>,
    /// `true` for a crate of this repository.
    pub(crate) is_ours: bool,
    /// SHA-256 of its archive, hex. `None` for a crate of this repository.
    pub(crate) checksum: Option<String>,
    pub(crate) folder: PathBuf,
}

/// The crates of the workspace and what they are built from, by cargo's ids.
#[derive(Debug, Default)]
pub(crate) struct CrateGraph {
    crates: BTreeMap<String, Krate>,
    /// Ordinary dependencies: neither those of tests nor those of build scripts.
    below: BTreeMap<String, BTreeSet<String>>,
}

impl CrateGraph {
    pub(crate) fn load(root: &Path, target: &str) -> Result<Self> {
        let output = crate::cargo()
            .args(["metadata", "--format-version", "1", "--locked"])
            .args(["--filter-platform", target])
            .current_dir(root)
            .output()
            .context("cannot run cargo metadata")?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("cargo metadata: {}", errors.trim());
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock")?;
        Self::read(&metadata, &checksums(&lock)?)
    }

    /// Reads the answer of `cargo metadata`. `checksums` has those of the lock file.
    fn read(metadata: &Value, checksums: &Checksums) -> Result<Self> {
        let mut graph = Self::default();
        for package in list(&metadata["packages"]) {
            let (id, krate) = read_crate(package, checksums)?;
            graph.crates.insert(id, krate);
        }
        for node in list(&metadata["resolve"]["nodes"]) {
            let ordinary = list(&node["deps"]).iter().filter(|below| {
                // An ordinary dependency has no kind.
                let mut kinds = list(&below["dep_kinds"]).iter();
                kinds.any(|kind| kind["kind"].is_null())
            });
            let below = ordinary.map(|below| text(&below["pkg"]));
            let below = below.collect::<Result<_>>()?;
            graph.below.insert(text(&node["id"])?, below);
        }
        Ok(graph)
    }

    /// The id of a crate of the workspace.
    pub(crate) fn ours(&self, name: &str) -> Result<&str> {
        let mut crates = self.crates.iter();
        let found = crates.find(|(_, krate)| krate.is_ours && krate.name == name);
        let (id, _) = found.with_context(|| format!("no crate {name} in the workspace"))?;
        Ok(id)
    }

    /// A crate and everything that it is made of, by id.
    pub(crate) fn closure(&self, id: &str) -> BTreeMap<&str, &Krate> {
        let mut found = BTreeMap::new();
        let mut queue = vec![id];
        while let Some(id) = queue.pop() {
            let Some((id, krate)) = self.crates.get_key_value(id) else {
                continue;
            };
            if found.insert(id.as_str(), krate).is_none() {
                queue.extend(self.below(id));
            }
        }
        found
    }

    /// Ids of the direct dependencies of a crate.
    pub(crate) fn below(&self, id: &str) -> impl Iterator<Item = &str> {
        self.below.get(id).into_iter().flatten().map(String::as_str)
    }
}

/// Checksums of archives by name and version.
type Checksums = BTreeMap<(String, String), String>;

fn checksums(lock: &str) -> Result<Checksums> {
    let lock: toml::Table = toml::from_str(lock).context("Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let packages = packages.context("Cargo.lock lists no packages")?;
    let field = |package: &toml::Value, name: &str| {
        let value = package.get(name)?;
        value.as_str().map(ToOwned::to_owned)
    };
    let read = packages.iter().filter_map(|package| {
        let key = (field(package, "name")?, field(package, "version")?);
        Some((key, field(package, "checksum")?))
    });
    Ok(read.collect())
}

fn read_crate(package: &Value, checksums: &Checksums) -> Result<(String, Krate)> {
    let (name, version) = (text(&package["name"])?, text(&package["version"])?);
    let manifest = PathBuf::from(text(&package["manifest_path"])?);
    let folder = manifest.parent().unwrap_or(&manifest).to_path_buf();
    let key = (name, version);
    let checksum = checksums.get(&key).cloned();
    let (name, version) = key;
    let krate = Krate {
        name,
        version,
        license: package["license"].as_str().map(ToOwned::to_owned),
        is_ours: package["source"].is_null(),
        checksum,
        folder,
    };
    Ok((text(&package["id"])?, krate))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> Result<String> {
    let text = value.as_str().context("cargo metadata lacks a text")?;
    Ok(text.to_owned())
}

/// A graph for tests: `ours` depends on `a` and, for tests, on `c`; `a` on `b`.
#[cfg(test)]
pub(crate) fn example() -> CrateGraph {
    with_crates_in(Path::new("/x"))
}

/// The same graph with every crate in one folder.
#[cfg(test)]
pub(crate) fn with_crates_in(folder: &Path) -> CrateGraph {
    let manifest = folder.join("Cargo.toml").display().to_string();
    let package = |name: &str, source: Value| {
        serde_json::json!({
            "id": format!("id-{name}"), "name": name, "version": "1.0.0", "license": "MIT",
            "source": source, "manifest_path": manifest,
        })
    };
    let registry = || Value::String("registry".to_owned());
    let below = |name: &str, kind: Value| serde_json::json!({ "pkg": format!("id-{name}"), "dep_kinds": [{ "kind": kind }] });
    let metadata = serde_json::json!({
        "packages": [
            package("ours", Value::Null), package("a", registry()), package("b", registry()),
            package("c", registry()),
        ],
        "resolve": { "nodes": [
            { "id": "id-ours", "deps": [below("a", Value::Null), below("c", "dev".into())] },
            { "id": "id-a", "deps": [below("b", Value::Null)] },
            { "id": "id-b", "deps": [] },
            { "id": "id-c", "deps": [] },
        ]},
    });
    let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"abcd\"\n";
    let checksums = checksums(lock).expect("a lock file");
    CrateGraph::read(&metadata, &checksums).expect("metadata")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_made_of_ordinary_dependencies_whatever_their_depth() {
        let graph = example();
        let id = graph.ours("ours").unwrap();
        let closure = graph.closure(id);
        let names: Vec<&str> = closure.values().map(|krate| krate.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "ours"]);
        assert_eq!(closure["id-a"].checksum.as_deref(), Some("abcd"));
        assert_eq!(closure["id-b"].checksum, None);
        assert_eq!(closure["id-ours"].folder, Path::new("/x"));
        assert!(graph.ours("a").is_err(), "not of the workspace");
    }
}
