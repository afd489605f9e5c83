//! AppArmor profiles are of its language. Nothing is loaded: this machine may have none in its kernel.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::Outcome;
use crate::package::recipe::RECIPES;

const PROGRAM: &str = "apparmor_parser";

pub(super) fn check(root: &Path) -> Result<Outcome> {
    let assets = RECIPES.iter().flat_map(|recipe| recipe.assets);
    let profiles = assets.filter(|asset| asset.to.starts_with("etc/apparmor.d/"));
    for profile in profiles {
        let mut parser = Command::new(PROGRAM);
        parser.args(["--skip-kernel-load", "--skip-read-cache", "--skip-cache"]);
        let output = match parser.arg(root.join(profile.from)).output() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let reason = format!("{PROGRAM} (Debian package apparmor) is missing");
                return Ok(Outcome::Skipped(reason));
            }
            output => output.with_context(|| format!("cannot run {PROGRAM}"))?,
        };
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("{}: {}", profile.from, errors.trim());
        }
        println!("  {}", profile.to);
    }
    Ok(Outcome::Passed)
}
