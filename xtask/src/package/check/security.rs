//! How exposed the units are, by `systemd-analyze security`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::package::recipe::{RECIPES, Recipe};

/// Highest exposure of a unit: 0 is closed, 10 is open.
pub(crate) const EXPOSURE_MAX: f32 = 2.5;
/// The same for `--threshold`, which counts in tenths.
const THRESHOLD: &str = "--threshold=25";
/// Begin of the line with the result.
const RESULT: &str = "Overall exposure level for ";

/// Checks every unit. `false` without systemd.
pub(crate) fn check(root: &Path) -> Result<bool> {
    for recipe in &RECIPES {
        for unit in unit_files(root, recipe) {
            let Some(exposure) = exposure(&unit)? else {
                return Ok(false);
            };
            println!("  {exposure:.1}  {}", name_of(&unit));
        }
    }
    Ok(true)
}

/// Files of the units of a package, in the repository.
pub(crate) fn unit_files(root: &Path, recipe: &Recipe) -> Vec<PathBuf> {
    let assets = recipe.assets.iter();
    let units = assets.filter(|asset| asset.to.starts_with("lib/systemd/system/"));
    units.map(|asset| root.join(asset.from)).collect()
}

/// The exposure of a unit. `None` without systemd.
///
/// # Errors
/// It is over its bound, or the file is no unit.
pub(crate) fn exposure(unit: &Path) -> Result<Option<f32>> {
    let mut analyze = Command::new("systemd-analyze");
    analyze
        .env("SYSTEMD_COLORS", "0")
        .args(["security", "--offline=yes", "--no-pager", THRESHOLD])
        .arg(unit);
    let output = match analyze.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        output => output.context("cannot run systemd-analyze")?,
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let name = name_of(unit);
    let exposure = parse(&text).with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("systemd-analyze does not judge {name}: {}", errors.trim())
    })?;
    ensure!(
        output.status.success(),
        "{name}: exposure {exposure:.1} is over {EXPOSURE_MAX}; `systemd-analyze security \
         --offline=yes {}` shows why",
        unit.display()
    );
    Ok(Some(exposure))
}

fn name_of(unit: &Path) -> String {
    let name = unit.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The number in `→ Overall exposure level for a.service: 1.5 OK`.
fn parse(text: &str) -> Option<f32> {
    let (_, result) = text.split_once(RESULT)?;
    let (_, result) = result.split_once(": ")?;
    result.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stay_under_their_bound() {
        if !check(&crate::root()).unwrap() {
            println!("SKIPPED: systemd-analyze (Debian package systemd) is missing");
        }
    }

    #[test]
    fn an_open_unit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let unit = folder.path().join("open.service");
        std::fs::write(&unit, "[Service]\nExecStart=/bin/true\n").unwrap();
        match exposure(&unit) {
            Ok(None) => println!("SKIPPED: systemd-analyze (Debian package systemd) is missing"),
            other => {
                let error = other.unwrap_err().to_string();
                assert!(error.contains("open.service: exposure 9"), "{error}");
            }
        }
    }

    #[test]
    fn the_result_is_read() {
        let text = "  NAME\n\n→ Overall exposure level for a.service: 1.5 OK 🙂\n";
        assert_eq!(parse(text), Some(1.5));
        assert_eq!(parse("none"), None);
    }
}
