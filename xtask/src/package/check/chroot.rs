//! Installation, upgrade, removal and purge of each package in a Debian of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::snapshot::Snapshot;
use super::{CheckedDeb, Outcome};
use crate::debs::{self, cache_dir, run_text, sha256_hex};
use crate::osimage::SUITE;
use crate::package::recipe::{RECIPES, Recipe};

/// Debian packages that ours depend on, and what the units' check needs: dpkg alone installs ours.
const DEPENDENCIES: [&str; 12] = [
    "ca-certificates",
    "dbus",
    "init-system-helpers",
    "iproute2",
    "ipxe",
    "kmod",
    "libgcc-s1",
    "libstdc++6",
    "man-db",
    "nftables",
    "systemd",
    "systemd-sysv",
];
/// Version that sorts before every one of ours.
const OLD_VERSION: &str = "0.0.1-1";
/// Text of the file that stands for the data of a service.
const DATA: &str = "kept";

pub(super) fn check(debs: &[CheckedDeb]) -> Result<Outcome> {
    let Some(root) = unpack()? else {
        return Ok(Outcome::Skipped("a chroot needs root and mmdebstrap".to_owned()));
    };
    for (deb, recipe) in debs.iter().zip(&RECIPES) {
        check_package(root.path(), deb, recipe).with_context(|| deb.name.clone())?;
        println!("  installed, upgraded, purged: {}", deb.name);
    }
    Ok(Outcome::Passed)
}

/// A fresh Debian with what ours depend on. `None` where none can be made.
pub(super) fn unpack() -> Result<Option<TempDir>> {
    let is_possible = tests_lab::is_root()
        && Command::new("mmdebstrap").arg("--version").output().is_ok();
    if !is_possible {
        return Ok(None);
    }
    let archive = archive()?;
    let root = tempfile::Builder::new().prefix("metalmesh-chroot-").tempdir()?;
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--numeric-owner").arg("--file").arg(archive);
    // Devices are of no use to dpkg, and cannot be made everywhere.
    tar.arg("--exclude=./dev/*").arg("--directory").arg(root.path());
    debs::run(&mut tar)?;
    Ok(Some(root))
}

/// The archive of that Debian, out of the cache or made.
fn archive() -> Result<PathBuf> {
    let versions = debs::candidates(&DEPENDENCIES)?;
    let key = sha256_hex(format!("{SUITE} {versions}").as_bytes());
    let cache = cache_dir()?.join("package-check");
    let path = cache.join(format!("debian-{}.tar", &key[..16]));
    if path.exists() {
        return Ok(path);
    }
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    fs::create_dir_all(&cache)?;
    println!("  building Debian 12 for the check (a minute or two)");
    let part = cache.join("part.tar");
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap
        .args(["--quiet", "--variant=minbase", "--mode=root"])
        .arg(format!("--include={}", DEPENDENCIES.join(",")))
        .arg(r#"--aptopt=APT::Install-Recommends "false""#)
        .arg("--dpkgopt=force-unsafe-io")
        .arg(SUITE)
        .arg(&part);
    debs::run(&mut mmdebstrap).context("mmdebstrap could not build Debian")?;
    fs::rename(&part, &path)?;
    Ok(path)
}

fn check_package(root: &Path, deb: &CheckedDeb, recipe: &Recipe) -> Result<()> {
    let before = Snapshot::of(root)?;
    install(root, &old_version(root, deb)?)?;
    install(root, &deb.path)?;
    let version = dpkg(root, &["--status", &deb.name])?;
    ensure!(
        version.contains(&format!("\nVersion: {}\n", deb.version)),
        "the upgrade did not take place: {version}"
    );
    check_installed(root, recipe)?;
    dpkg(root, &["--purge", &deb.name])?;
    let left = Snapshot::of(root)?.since(&before);
    ensure!(left.is_empty(), "a purge leaves: {}", left.join(", "));
    check_data(root, deb, recipe)
}

/// With data a purge leaves them, and nothing else but the user whose they are.
fn check_data(root: &Path, deb: &CheckedDeb, recipe: &Recipe) -> Result<()> {
    let Some(data) = recipe.data else {
        return Ok(());
    };
    install(root, &deb.path)?;
    let folder = root.join(data.trim_start_matches('/'));
    ensure!(folder.is_dir(), "the package makes no {data}");
    let file = folder.join("data");
    fs::write(&file, DATA)?;
    dpkg(root, &["--purge", &deb.name])?;
    ensure!(fs::read_to_string(&file).is_ok_and(|text| text == DATA), "a purge removed data");
    if let Some(user) = recipe.user {
        let known = chroot(root, &["getent", "passwd", user]);
        ensure!(known.is_ok(), "a purge removed the user {user}, whose data are left");
        chroot(root, &["userdel", user])?;
    }
    fs::remove_dir_all(root.join("var/lib/metalmesh"))?;
    Ok(())
}

/// Program, manual page, user and configuration of an installed package.
fn check_installed(root: &Path, recipe: &Recipe) -> Result<()> {
    if recipe.is_installed() {
        let version = chroot(root, &[recipe.program, "--version"])?;
        for line in ["commit: ", "feature level: ", "build: "] {
            ensure!(version.contains(line), "--version lacks {line:?}: {version}");
        }
        let page = chroot(root, &["man", "--where", recipe.program])?;
        ensure!(page.contains(recipe.program), "there is no manual page");
    }
    if let Some(user) = recipe.user {
        chroot(root, &["getent", "passwd", user]).with_context(|| format!("no user {user}"))?;
    }
    for unit in recipe.units {
        let state = chroot(root, &["systemctl", "is-enabled", unit]).unwrap_or_default();
        ensure!(state.trim() != "enabled", "{unit} is enabled by the package");
    }
    Ok(())
}

/// The same package with an old version, to upgrade from.
fn old_version(root: &Path, deb: &CheckedDeb) -> Result<PathBuf> {
    let folder = tempfile::tempdir()?;
    let tree = folder.path().join("tree");
    debs::run(Command::new("dpkg-deb").arg("--raw-extract").arg(&deb.path).arg(&tree))?;
    let control = tree.join("DEBIAN/control");
    let text = fs::read_to_string(&control)?;
    let (now, old) = (format!("Version: {}", deb.version), format!("Version: {OLD_VERSION}"));
    fs::write(&control, text.replace(&now, &old))?;
    let path = root.join("tmp").join(format!("{}_old.deb", deb.name));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Znone", "--build"]);
    debs::run(build.args([&tree, &path]))?;
    Ok(path)
}

/// Installs a package, whose file is removed from the system again.
pub(super) fn install(root: &Path, deb: &Path) -> Result<()> {
    let name = deb.file_name().context("a package has no name")?;
    let inside = root.join("tmp").join(name);
    if inside != deb {
        fs::copy(deb, &inside)?;
    }
    let path = Path::new("/tmp").join(name);
    let installed = dpkg(root, &["--install", &path.display().to_string()]);
    fs::remove_file(&inside)?;
    installed.map(drop)
}

fn dpkg(root: &Path, arguments: &[&str]) -> Result<String> {
    chroot(root, &[&["dpkg"], arguments].concat())
}

fn chroot(root: &Path, command: &[&str]) -> Result<String> {
    let mut chroot = Command::new("chroot");
    chroot
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C")
        .arg(root)
        .args(command);
    run_text(&mut chroot)
}
