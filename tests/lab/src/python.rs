//! Programs of others that are written in Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process::output;

/// The virtual environment with a package, "NAME==VERSION", made once.
///
/// # Errors
/// It cannot be installed, for example without a package index.
pub(crate) fn environment(cache: &Path, package: &str) -> Result<PathBuf> {
    let environment = cache.join(package.replace("==", "-"));
    // It gets its name when it is complete.
    if environment.exists() {
        return Ok(environment);
    }
    let made = environment.with_extension("new");
    if made.exists() {
        fs::remove_dir_all(&made)?;
    }
    fs::create_dir_all(cache)?;
    output(
        Command::new("/usr/bin/python3")
            .args(["-m", "venv"])
            .arg(&made),
    )?;
    let pip = made.join("bin/pip");
    output(Command::new(pip).args(["install", "--quiet", package]))
        .with_context(|| format!("cannot install {package}"))?;
    fs::rename(&made, &environment)?;
    Ok(environment)
}
