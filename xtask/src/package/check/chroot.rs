//! Installation, upgrade, removal and purge of each package in a Debian of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::debian::Debian;
use super::snapshot::Snapshot;
use super::{CheckedDeb, Outcome};
use crate::debs;
use crate::package::recipe::{RECIPES, Recipe};

/// Version that sorts before every one of ours.
const OLD_VERSION: &str = "0.0.1-1";
/// Text of the file that stands for the data of a service.
const DATA: &str = "kept";

pub(super) fn check(debs: &[CheckedDeb]) -> Result<Outcome> {
    let Some(debian) = Debian::unpack()? else {
        return Ok(Outcome::Skipped(
            "a chroot needs root and mmdebstrap".to_owned(),
        ));
    };
    for (deb, recipe) in debs.iter().zip(&RECIPES) {
        check_package(&debian, deb, recipe).with_context(|| deb.name.clone())?;
        println!("  installed, upgraded, purged: {}", deb.name);
    }
    Ok(Outcome::Passed)
}

fn check_package(debian: &Debian, deb: &CheckedDeb, recipe: &Recipe) -> Result<()> {
    let before = Snapshot::of(debian.path())?;
    debian.install(&old_version(debian, deb)?)?;
    debian.install(&deb.path)?;
    let status = debian.run(&["dpkg", "--status", &deb.name])?;
    ensure!(
        status.contains(&format!("\nVersion: {}\n", deb.version)),
        "the upgrade did not take place: {status}"
    );
    check_installed(debian, recipe)?;
    debian.run(&["dpkg", "--purge", &deb.name])?;
    let left = Snapshot::of(debian.path())?.since(&before);
    ensure!(left.is_empty(), "a purge leaves: {}", left.join(", "));
    check_data(debian, deb, recipe)
}

/// With data a purge leaves them, and nothing else but the user whose they are.
fn check_data(debian: &Debian, deb: &CheckedDeb, recipe: &Recipe) -> Result<()> {
    let Some(data) = recipe.data else {
        return Ok(());
    };
    debian.install(&deb.path)?;
    let folder = debian.path().join(data.trim_start_matches('/'));
    ensure!(folder.is_dir(), "the package makes no {data}");
    let file = folder.join("data");
    fs::write(&file, DATA)?;
    debian.run(&["dpkg", "--purge", &deb.name])?;
    ensure!(
        fs::read_to_string(&file).is_ok_and(|text| text == DATA),
        "a purge removed data"
    );
    if let Some(user) = recipe.user {
        let known = debian.run(&["getent", "passwd", user]);
        ensure!(
            known.is_ok(),
            "a purge removed the user {user}, whose data are left"
        );
        debian.run(&["userdel", user])?;
    }
    fs::remove_dir_all(debian.path().join("var/lib/metalmesh"))?;
    Ok(())
}

/// Program, manual page, user and configuration of an installed package.
fn check_installed(debian: &Debian, recipe: &Recipe) -> Result<()> {
    if recipe.is_installed() {
        let version = debian.run(&[recipe.program, "--version"])?;
        for line in ["commit: ", "feature level: ", "build: "] {
            ensure!(
                version.contains(line),
                "--version lacks {line:?}: {version}"
            );
        }
        let page = debian.run(&["man", "--where", recipe.program])?;
        ensure!(page.contains(recipe.program), "there is no manual page");
    }
    if let Some(user) = recipe.user {
        let known = debian.run(&["getent", "passwd", user]);
        known.with_context(|| format!("no user {user}"))?;
    }
    for unit in recipe.units {
        // It fails for a unit that is not enabled.
        let state = debian
            .run(&["systemctl", "is-enabled", unit])
            .unwrap_or_default();
        ensure!(
            state.trim() != "enabled",
            "{unit} is enabled by the package"
        );
    }
    Ok(())
}

/// The same package with an old version, to upgrade from.
fn old_version(debian: &Debian, deb: &CheckedDeb) -> Result<PathBuf> {
    let folder = tempfile::tempdir()?;
    let tree = folder.path().join("tree");
    debs::run(
        Command::new("dpkg-deb")
            .arg("--raw-extract")
            .arg(&deb.path)
            .arg(&tree),
    )?;
    let control = tree.join("DEBIAN/control");
    let text = fs::read_to_string(&control)?;
    let (now, old) = (
        format!("Version: {}", deb.version),
        format!("Version: {OLD_VERSION}"),
    );
    fs::write(&control, text.replace(&now, &old))?;
    let path = debian
        .path()
        .join("tmp")
        .join(format!("{}_old.deb", deb.name));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Znone", "--build"]);
    debs::run(build.args([&tree, &path]))?;
    Ok(path)
}
