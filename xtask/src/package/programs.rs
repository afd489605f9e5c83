//! Builds the programs, and has them write their manual pages and completions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::arch::Arch;
use super::recipe::{RECIPES, Recipe};
use super::release::Release;
use crate::debs;

/// Hidden command of every program (`base/runtime/src/command_line.rs`).
const DOCUMENTS_COMMAND: &str = "write-documents";
/// Where paths of this machine point to in programs: they would tell the builder's directories, and
/// differ between two builds.
const SOURCES: &str = "/metalmesh";
const CARGO: &str = "/cargo";
const TARGET: &str = "/target";

/// Built programs by name.
pub(crate) type Programs = BTreeMap<&'static str, PathBuf>;

/// Directories that a build reads and writes.
#[derive(Debug, Clone)]
pub(crate) struct BuildDirs {
    /// The sources.
    pub(crate) root: PathBuf,
    /// Cargo's target directory.
    pub(crate) target: PathBuf,
}

/// Builds every program for a processor. Those of `static` packages are linked whole.
pub(crate) fn build(dirs: &BuildDirs, release: &Release, arch: Arch) -> Result<Programs> {
    let mut programs = Programs::new();
    for is_static in [false, true] {
        let chosen: Vec<&Recipe> = RECIPES
            .iter()
            .filter(|recipe| recipe.is_static == is_static)
            .collect();
        let profile = if is_static { "small" } else { "release" };
        let mut cargo = crate::cargo();
        cargo
            .args(["build", "--locked", "--profile", profile])
            .args(["--target", arch.target()])
            .arg("--target-dir")
            .arg(&dirs.target)
            .current_dir(&dirs.root)
            .envs(environment(dirs, release, arch, is_static)?);
        for recipe in &chosen {
            cargo.args(["--package", recipe.package, "--bin", recipe.program]);
        }
        if !arch.is_native() {
            // The built library is for this machine: the crate compiles one for the other.
            cargo
                .env_remove("ROCKSDB_LIB_DIR")
                .env_remove("ROCKSDB_STATIC");
        }
        if !cargo.status().context("cannot run cargo build")?.success() {
            bail!("the programs do not build for {}", arch.target());
        }
        let folder = dirs.target.join(arch.target()).join(profile);
        programs.extend(
            chosen
                .iter()
                .map(|recipe| (recipe.program, folder.join(recipe.program))),
        );
    }
    Ok(programs)
}

/// The environment of cargo: a build tells its commit, and nothing of the machine that it was made on.
fn environment(
    dirs: &BuildDirs,
    release: &Release,
    arch: Arch,
    is_static: bool,
) -> Result<Vec<(String, String)>> {
    let maps = path_maps(dirs);
    let rust = maps
        .iter()
        .map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    let mut rust: Vec<String> = rust.collect();
    if is_static {
        rust.extend(["-C".to_owned(), "target-feature=+crt-static".to_owned()]);
    }
    let c: Vec<String> = maps
        .iter()
        .map(|(from, to)| format!("-ffile-prefix-map={from}={to}"))
        .collect();
    let mut variables = arch.environment();
    let date = release.date("%Y-%m-%dT%H:%M:%SZ")?;
    for (name, value) in [
        // Separated by a byte that no path has: RUSTFLAGS would split at spaces.
        ("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}")),
        ("CFLAGS", c.join(" ")),
        ("CXXFLAGS", c.join(" ")),
        ("SOURCE_DATE_EPOCH", release.epoch.to_string()),
        ("METALMESH_GIT_SHA1", release.commit.clone()),
        ("METALMESH_REVISION", release.debian.clone()),
        ("METALMESH_BUILD_DATE", date),
        ("CARGO_INCREMENTAL", "0".to_owned()),
    ] {
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

/// Directories of this machine with what stands for them, the longest first: the target directory may
/// be in that of the sources.
fn path_maps(dirs: &BuildDirs) -> Vec<(String, &'static str)> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let user = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let mut maps: Vec<(String, &'static str)> = [
        (Some(dirs.root.clone()), SOURCES),
        (Some(dirs.target.clone()), TARGET),
        (home.or_else(user), CARGO),
    ]
    .into_iter()
    .filter_map(|(from, to)| Some((from?.display().to_string(), to)))
    .collect();
    // rustc takes the last that fits.
    maps.sort_by_key(|(from, _)| from.len());
    maps
}

/// Manual pages and completions of the installed programs, each in a folder of its name. They are
/// written by programs of this machine, and are the same for every processor.
pub(crate) fn write_documents(programs: &Programs, out: &Path) -> Result<()> {
    for recipe in RECIPES.iter().filter(|recipe| recipe.is_installed()) {
        let folder = out.join(recipe.program);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let program = programs
            .get(recipe.program)
            .context("a program is missing")?;
        debs::run(
            Command::new(program)
                .arg(DOCUMENTS_COMMAND)
                .args(["--section", &recipe.section.to_string()])
                .arg(&folder),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_tell_the_commit_and_no_directory_of_this_machine() {
        let dirs = BuildDirs {
            root: "/home/a b".into(),
            target: "/home/a b/target".into(),
        };
        let release = Release {
            version: "0.1.0".to_owned(),
            debian: "0.1.0-1".to_owned(),
            commit: "abc".to_owned(),
            epoch: 7,
        };
        let variables = environment(&dirs, &release, Arch::Amd64, true).unwrap();
        let value = |name: &str| {
            let found = variables.iter().find(|(own, _)| own == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let flags = value("CARGO_ENCODED_RUSTFLAGS");
        let flags: Vec<&str> = flags.split('\u{1f}').collect();
        let at = |flag: &str| flags.iter().position(|own| *own == flag);
        let sources = at("--remap-path-prefix=/home/a b=/metalmesh");
        let target = at("--remap-path-prefix=/home/a b/target=/target");
        assert!(sources.is_some() && sources < target, "{flags:?}");
        assert_eq!(flags.last(), Some(&"target-feature=+crt-static"));
        assert_eq!(value("METALMESH_GIT_SHA1"), "abc");
        assert_eq!(value("SOURCE_DATE_EPOCH"), "7");
        let rust = |is_static| environment(&dirs, &release, Arch::Amd64, is_static).unwrap();
        assert!(
            rust(false)
                .iter()
                .all(|(_, value)| !value.contains("crt-static"))
        );
    }
}
