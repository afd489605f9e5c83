//! `./dev package --check`: what can be said of packages without a real host.
//!
//! Each part says why it is skipped where it cannot run.

mod apparmor;
mod chroot;
mod debian;
mod lintian;
mod machine;
pub(crate) mod security;
mod snapshot;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::recipe::RECIPES;
use crate::debs::run_text;

/// A package that is checked.
#[derive(Debug, Clone)]
struct CheckedDeb {
    path: PathBuf,
    name: String,
    version: String,
}

/// Result of a part.
enum Outcome {
    Passed,
    Skipped(String),
}

/// Checks the packages in a folder.
pub(crate) fn run(root: &Path, folder: &Path) -> Result<()> {
    let debs = find(folder)?;
    let mut failed = Vec::new();
    let parts: [(&str, &dyn Fn() -> Result<Outcome>); 6] = [
        ("sizes", &|| sizes(&debs)),
        ("sandboxes", &|| sandboxes(root)),
        ("apparmor", &|| apparmor::check(root)),
        ("lintian", &|| lintian::check(&debs)),
        ("chroot", &|| chroot::check(&debs)),
        ("units", &|| machine::check(&debs)),
    ];
    for (name, part) in parts {
        println!("package check: {name}");
        match part() {
            Ok(Outcome::Passed) => println!("package check: {name} ok"),
            Ok(Outcome::Skipped(reason)) => println!("SKIPPED package check {name}: {reason}"),
            Err(error) => {
                println!("package check: {name} FAILED: {error:#}");
                failed.push(name);
            }
        }
    }
    if !failed.is_empty() {
        bail!("packages failed: {}", failed.join(", "));
    }
    Ok(())
}

/// The packages of this machine's processor, in the order of the table.
fn find(folder: &Path) -> Result<Vec<CheckedDeb>> {
    let native = run_text(std::process::Command::new("dpkg").arg("--print-architecture"))?;
    let suffix = format!("_{}.deb", native.trim());
    let mut found = Vec::new();
    for recipe in &RECIPES {
        let entries = fs::read_dir(folder)
            .with_context(|| format!("{}: run ./dev package first", folder.display()))?;
        let begin = format!("{}_", recipe.name);
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let version = name.strip_prefix(&begin);
            let Some(version) = version.and_then(|rest| rest.strip_suffix(&suffix)) else {
                continue;
            };
            found.push(CheckedDeb {
                path: entry.path(),
                name: recipe.name.to_owned(),
                version: version.to_owned(),
            });
        }
    }
    ensure!(
        found.len() == RECIPES.len(),
        "{} has {} of {} packages for {}: run ./dev package first",
        folder.display(),
        found.len(),
        RECIPES.len(),
        native.trim()
    );
    Ok(found)
}

fn sizes(debs: &[CheckedDeb]) -> Result<Outcome> {
    for (deb, recipe) in debs.iter().zip(&RECIPES) {
        let have = fs::metadata(&deb.path)?.len();
        println!("  {:>10}  {}", super::table::megabytes(have), deb.name);
        ensure!(
            have <= recipe.size_max,
            "{} has {have} bytes, over its bound of {}",
            deb.name,
            recipe.size_max
        );
    }
    Ok(Outcome::Passed)
}

fn sandboxes(root: &Path) -> Result<Outcome> {
    Ok(match security::check(root)? {
        true => Outcome::Passed,
        false => Outcome::Skipped("systemd-analyze (Debian package systemd) is missing".to_owned()),
    })
}
