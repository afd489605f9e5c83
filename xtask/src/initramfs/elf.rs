//! Which shared libraries a program needs, and the closure of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use elf::ElfBytes;
use elf::abi::DT_NEEDED;
use elf::endian::LittleEndian;

/// Directories of libraries in a Debian tree.
const LIBRARY_DIRS: [&str; 7] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib/x86_64-linux-gnu/systemd",
    "usr/lib/x86_64-linux-gnu/systemd",
    "usr/lib/x86_64-linux-gnu/frr",
    "lib",
    "usr/lib",
];

/// Names in the NEEDED entries of an ELF file; empty for a static one or a script.
pub(crate) fn needed(bytes: &[u8]) -> Result<Vec<String>> {
    if !bytes.starts_with(b"\x7fELF") {
        return Ok(Vec::new());
    }
    let file = ElfBytes::<LittleEndian>::minimal_parse(bytes)?;
    let Some(dynamic) = file.dynamic()? else {
        return Ok(Vec::new());
    };
    let Some((_, strings)) = file.dynamic_symbol_table()? else {
        return Ok(Vec::new());
    };
    dynamic
        .iter()
        .filter(|d| d.d_tag == DT_NEEDED)
        .map(|d| {
            let at = usize::try_from(d.d_val())?;
            Ok(strings.get(at)?.to_string())
        })
        .collect()
}

/// Every library that `programs` need, by name, found under `root`.
pub(crate) fn closure(root: &Path, programs: &[PathBuf]) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut missing = BTreeSet::new();
    let mut queue = Vec::new();
    for program in programs {
        queue.extend(needed_by(program)?);
    }
    while let Some(name) = queue.pop() {
        if found.contains_key(&name) || missing.contains(&name) {
            continue;
        }
        match find_library(root, &name) {
            Some(path) => {
                queue.extend(needed_by(&path)?);
                found.insert(name, path);
            }
            None => {
                missing.insert(name);
            }
        }
    }
    ensure!(
        missing.is_empty(),
        "libraries that no package has: {missing:?}"
    );
    Ok(found)
}

fn needed_by(path: &Path) -> Result<Vec<String>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    needed(&bytes).with_context(|| path.display().to_string())
}

/// The file of a library.
pub(crate) fn find_library(root: &Path, name: &str) -> Option<PathBuf> {
    LIBRARY_DIRS
        .iter()
        .map(|d| root.join(d).join(name))
        .find_map(|p| p.canonicalize().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_needs_libc() {
        let bytes = std::fs::read("/bin/sh").unwrap();
        assert!(needed(&bytes).unwrap().contains(&"libc.so.6".to_string()));
        assert!(needed(b"#!/bin/sh\n").unwrap().is_empty());
    }
}
