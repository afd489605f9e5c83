//! Debian packages, made by Debian's own `dpkg-deb`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::arch::Arch;
use super::recipe::Recipe;
use super::release::Release;
use super::scripts;
use super::tree::{Tree, TreeEntry};
use crate::debs;
use crate::initramfs::elf;

/// Field `Maintainer` of every package.
pub(crate) const MAINTAINER: &str = "metalmesh contributors <metalmesh@users.noreply.github.com>";

/// Libraries of the programs, with the packages that have them in a sufficient version.
/// Libraries of Debian 12, on which packages are built.
const LIBRARIES: [(&str, &str); 7] = [
    ("ld-linux-x86-64.so.2", "libc6 (>= 2.36)"),
    ("ld-linux-aarch64.so.1", "libc6 (>= 2.36)"),
    ("libc.so.6", "libc6 (>= 2.36)"),
    ("libdl.so.2", "libc6 (>= 2.36)"),
    ("libm.so.6", "libc6 (>= 2.36)"),
    ("libgcc_s.so.1", "libgcc-s1 (>= 12)"),
    ("libstdc++.so.6", "libstdc++6 (>= 12)"),
];

/// A package with what `Packages` of a repository says of it.
#[derive(Debug, Clone)]
pub(crate) struct Deb {
    pub(crate) path: PathBuf,
    pub(crate) arch: Arch,
    /// Text of `DEBIAN/control`.
    pub(crate) control: String,
    pub(crate) name: &'static str,
}

/// Folders that a package is made in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DebFolders<'a> {
    /// For its files, which are removed again.
    pub(crate) scratch: &'a Path,
    /// For the package.
    pub(crate) out: &'a Path,
}

/// Makes a package.
pub(crate) fn build(
    recipe: &Recipe,
    release: &Release,
    arch: Arch,
    tree: &Tree,
    folders: DebFolders<'_>,
) -> Result<Deb> {
    let stage = folders
        .scratch
        .join(format!("{}-{}", recipe.name, arch.debian()));
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    tree.write_to(&stage)?;
    let control = control(recipe, release, arch, tree)?;
    let mut debian = Tree::default();
    debian.file("DEBIAN/control", 0o644, control.as_str());
    debian.file("DEBIAN/md5sums", 0o644, tree.md5sums());
    let conffiles = conffiles(tree);
    if !conffiles.is_empty() {
        debian.file("DEBIAN/conffiles", 0o644, conffiles);
    }
    for (name, text) in scripts::scripts(recipe) {
        debian.file(&format!("DEBIAN/{name}"), 0o755, text);
    }
    debian.write_to(&stage)?;
    let file = format!("{}_{}_{}.deb", recipe.name, release.debian, arch.debian());
    let path = folders.out.join(file);
    debs::run(
        Command::new("dpkg-deb")
            // Of the archive and of files that are newer: all of them.
            .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
            .args(["--root-owner-group", "-Znone", "--build"])
            .args([&stage, &path]),
    )?;
    compress(&path, filters(recipe, arch), folders.scratch)?;
    fs::remove_dir_all(&stage)?;
    Ok(Deb {
        path,
        arch,
        control,
        name: recipe.name,
    })
}

/// How `xz` compresses the files of a package. The filter for machine code and a dictionary of 64 MiB,
/// neither of which `dpkg-deb` offers, make `metalmesh-control` a tenth smaller.
fn filters(recipe: &Recipe, arch: Arch) -> &'static [&'static str] {
    match arch {
        // The initramfs is compressed already: more would cost a minute and save nothing.
        _ if !recipe.is_installed() => &["-0"],
        Arch::Amd64 => &["--x86", "--lzma2=preset=6,dict=64MiB"],
        Arch::Arm64 => &["--arm64", "--lzma2=preset=6,dict=64MiB"],
    }
}

/// Compresses the members of a package that was made without compression (deb(5)).
fn compress(deb: &Path, filters: &[&str], scratch: &Path) -> Result<()> {
    let members = tempfile::tempdir_in(scratch)?;
    let members = members.path();
    debs::run(Command::new("ar").arg("x").arg(deb).current_dir(members))?;
    let mut xz = Command::new("xz");
    // One thread: with several the archive depends on how many there are.
    xz.arg("--threads=1").args(filters);
    debs::run(
        xz.args(["control.tar", "data.tar"])
            .env_remove("XZ_DEFAULTS")
            .env_remove("XZ_OPT")
            .current_dir(members),
    )?;
    fs::remove_file(deb)?;
    let mut ar = Command::new("ar");
    // D: neither the time nor the user of the build; S: no table of symbols.
    ar.arg("qcDS").arg(deb);
    ar.args(["debian-binary", "control.tar.xz", "data.tar.xz"]);
    debs::run(ar.current_dir(members))
}

fn control(recipe: &Recipe, release: &Release, arch: Arch, tree: &Tree) -> Result<String> {
    let mut depends = libraries(tree)?;
    depends.extend(recipe.depends.iter().map(ToString::to_string));
    let mut text = format!(
        "Package: {}\nSource: metalmesh\nVersion: {}\nArchitecture: {}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {}\nSection: admin\nPriority: optional\n\
         Homepage: https://github.com/metalmesh/metalmesh\n",
        recipe.name,
        release.debian,
        arch.debian(),
        tree.kib()
    );
    for (field, packages) in [
        ("Depends", depends.into_iter().collect::<Vec<String>>()),
        (
            "Recommends",
            recipe.recommends.iter().map(ToString::to_string).collect(),
        ),
    ] {
        if !packages.is_empty() {
            text.push_str(&format!("{field}: {}\n", packages.join(", ")));
        }
    }
    text.push_str(&format!("Description: {}\n", recipe.summary));
    for line in recipe.description {
        text.push_str(&format!(" {line}\n"));
    }
    Ok(text)
}

/// Packages of the libraries that the programs in a tree are linked with.
fn libraries(tree: &Tree) -> Result<BTreeSet<String>> {
    let mut packages = BTreeSet::new();
    for (path, entry) in tree.entries() {
        let TreeEntry::File { bytes, .. } = entry else {
            continue;
        };
        if !path.starts_with("usr/bin/") {
            continue;
        }
        for library in elf::needed(bytes)? {
            let known = LIBRARIES.iter().find(|(name, _)| *name == library);
            let (_, package) = known.with_context(|| {
                format!("{path} is linked with {library}, of no package in LIBRARIES")
            })?;
            packages.insert((*package).to_owned());
        }
    }
    Ok(packages)
}

/// Files of configuration: dpkg asks before an upgrade replaces one that was changed.
fn conffiles(tree: &Tree) -> String {
    let paths = tree.entries().map(|(path, _)| path);
    let etc = paths.filter(|path| path.starts_with("etc/"));
    etc.map(|path| format!("/{path}\n")).collect()
}

/// Checks the bound of a package.
pub(crate) fn check_size(recipe: &Recipe, deb: &Deb) -> Result<u64> {
    let have = fs::metadata(&deb.path)?.len();
    ensure!(
        have <= recipe.size_max,
        "{} has {have} bytes, over its bound of {}",
        deb.path.display(),
        recipe.size_max
    );
    Ok(have)
}

#[cfg(test)]
mod tests {
    use super::super::recipe::RECIPES;
    use super::*;

    fn release() -> Release {
        Release {
            version: "0.1.0".to_owned(),
            debian: "0.1.0-1".to_owned(),
            commit: "abc".to_owned(),
            epoch: 1_700_000_000,
        }
    }

    fn recipe(name: &str) -> &'static Recipe {
        let recipes: &'static [Recipe] = &RECIPES;
        recipes.iter().find(|recipe| recipe.name == name).unwrap()
    }

    #[test]
    fn control_names_dependencies_and_conffiles() {
        let mut tree = Tree::default();
        tree.file("usr/bin/metalmesh-core", 0o755, "#!/bin/sh\n");
        tree.file("etc/metalmesh/core.toml", 0o644, "");
        let text = control(recipe("metalmesh-core"), &release(), Arch::Amd64, &tree).unwrap();
        for line in [
            "Package: metalmesh-core\n",
            "Architecture: amd64\n",
            "nftables",
            "Recommends: frr, tpm-udev\n",
            "Description: metalmesh agent of a switch\n metalmesh-core keeps",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert_eq!(conffiles(&tree), "/etc/metalmesh/core.toml\n");
    }

    #[test]
    fn a_package_is_the_same_whenever_it_is_made() {
        let mut tree = Tree::default();
        tree.file("usr/bin/metalmesh", 0o755, "#!/bin/sh\n");
        let made = |_: u8| {
            let scratch = tempfile::tempdir().unwrap();
            let out = tempfile::tempdir().unwrap();
            let folders = DebFolders {
                scratch: scratch.path(),
                out: out.path(),
            };
            let deb = build(
                recipe("metalmesh-cli"),
                &release(),
                Arch::Amd64,
                &tree,
                folders,
            );
            let deb = deb.unwrap();
            assert!(deb.path.ends_with("metalmesh-cli_0.1.0-1_amd64.deb"));
            let mut show = Command::new("dpkg-deb");
            let shown = debs::run_text(show.arg("--contents").arg(&deb.path)).unwrap();
            assert!(shown.contains("-rwxr-xr-x root/root"), "{shown}");
            assert!(shown.contains("2023-11-14"), "{shown}");
            fs::read(&deb.path).unwrap()
        };
        assert_eq!(made(1), made(2));
    }
}
