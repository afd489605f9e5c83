//! `./dev package --verify`: one commit, built in two directories, has to give the same files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::PackageArgs;
use super::programs::BuildDirs;
use super::release::Release;
use crate::debs::{self, sha256_hex};

/// Names of different lengths: a path in a file would change its size too.
const NAMES: [&str; 2] = ["one", "another-directory"];

/// Digests of files by their paths.
type Digests = BTreeMap<PathBuf, String>;

pub(crate) fn run(
    root: &Path,
    scratch: &Path,
    release: &Release,
    args: &PackageArgs,
) -> Result<()> {
    if release.debian.contains("+changed") {
        println!("changes that are not committed are left out");
    }
    let mut made = Vec::new();
    for name in NAMES {
        made.push(build(root, &scratch.join(name), release, args)?);
    }
    let [first, second] = made.as_slice() else {
        bail!("there must be two builds");
    };
    let different = differences(first, second);
    for (path, digest) in first {
        let is_same = !different.contains(path);
        let mark = if is_same { "same" } else { "DIFFERENT" };
        println!("{mark:<9} {}  {}", &digest[..16], path.display());
    }
    fs::remove_dir_all(scratch)?;
    if !different.is_empty() {
        bail!(
            "{} of {} files are not reproducible",
            different.len(),
            first.len()
        );
    }
    println!("{} files, each the same twice", first.len());
    Ok(())
}

/// Builds the commit in a directory of its own; returns the digests of what it made.
fn build(root: &Path, folder: &Path, release: &Release, args: &PackageArgs) -> Result<Digests> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let sources = folder.join("sources");
    fs::create_dir_all(&sources)?;
    let archive = folder.join("sources.tar");
    let mut git = Command::new("git");
    git.args(["archive", "--format=tar", "--output"])
        .arg(&archive);
    debs::run(git.arg(&release.commit).current_dir(root))?;
    let mut tar = Command::new("tar");
    debs::run(
        tar.arg("--extract")
            .arg("--file")
            .arg(&archive)
            .arg("--directory")
            .arg(&sources),
    )?;
    let dirs = BuildDirs {
        root: sources,
        target: folder.join("target"),
    };
    let out = folder.join("out");
    super::make(&dirs, release, &out, args)?;
    digests(&out)
}

/// Digests of every file below a folder.
fn digests(folder: &Path) -> Result<Digests> {
    let mut found = Digests::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder)?.to_path_buf();
            found.insert(name, sha256_hex(&fs::read(&path)?));
        }
    }
    Ok(found)
}

/// Paths that differ, or that only one has.
fn differences(first: &Digests, second: &Digests) -> Vec<PathBuf> {
    let all = first
        .keys()
        .chain(second.keys().filter(|path| !first.contains_key(*path)));
    let different = all.filter(|path| first.get(*path) != second.get(*path));
    different.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_or_is_missing_is_named() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [first, second] = folders.each_ref().map(tempfile::TempDir::path);
        for folder in [first, second] {
            fs::create_dir(folder.join("deb")).unwrap();
            fs::write(folder.join("deb/same"), "text").unwrap();
            fs::write(folder.join("changed"), folder.display().to_string()).unwrap();
        }
        fs::write(second.join("deb/more"), "").unwrap();
        let found = differences(&digests(first).unwrap(), &digests(second).unwrap());
        assert_eq!(found, [PathBuf::from("changed"), PathBuf::from("deb/more")]);
        let none = differences(&digests(first).unwrap(), &digests(first).unwrap());
        assert!(none.is_empty());
    }
}
