//! The collection in a folder of the shape that Ansible's tools ask for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::debs;

/// Files of the documentation that the collection has a copy of: it is installed without the rest of
/// the project.
const COPIES: [(&str, &str); 2] = [
    (
        "docs/operations/alerts.yml",
        "ansible/roles/monitoring/files/alerts.yml",
    ),
    (
        "docs/reference/grafana.json",
        "ansible/roles/monitoring/files/grafana.json",
    ),
];

/// A copy of the collection below `ansible_collections`.
#[derive(Debug)]
pub(super) struct CollectionTree {
    /// Folder that holds `ansible_collections`.
    pub(super) base: PathBuf,
    /// Folder of the collection.
    pub(super) collection: PathBuf,
}

/// Makes the tree anew.
///
/// # Errors
/// It cannot be written, or a copied file differs from the one that it is a copy of.
pub(super) fn assemble(root: &Path) -> Result<CollectionTree> {
    for (original, copy) in COPIES {
        check_copy(root, original, copy)?;
    }
    let base = debs::cache_dir()?.join("ansible-tree");
    let collection = base.join("ansible_collections/metalmesh/metalmesh");
    if base.exists() {
        fs::remove_dir_all(&base)?;
    }
    fs::create_dir_all(&collection)?;
    let mut copy = Command::new("cp");
    copy.arg("--recursive").arg(root.join("ansible/."));
    debs::run(copy.arg(&collection))?;
    // ansible-test looks at files that git knows, and nothing else.
    for arguments in [&["init", "--quiet"][..], &["add", "--all"]] {
        debs::run(Command::new("git").args(arguments).current_dir(&collection))?;
    }
    Ok(CollectionTree { base, collection })
}

fn check_copy(root: &Path, original: &str, copy: &str) -> Result<()> {
    if !root.join(original).exists() {
        eprintln!("{copy}: not compared, there is no {original}");
        return Ok(());
    }
    let read = |name: &str| fs::read(root.join(name)).with_context(|| name.to_owned());
    ensure!(
        read(original)? == read(copy)?,
        "{copy} is no longer a copy of {original}; copy it again"
    );
    Ok(())
}
