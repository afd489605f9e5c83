//! The table of packages: size against its bound, and how exposed the sandboxes of the units are.

use std::path::Path;

use anyhow::Result;

use super::check::security;
use super::deb::{self, Deb};
use super::recipe::{RECIPES, Recipe};

pub(crate) fn print(root: &Path, debs: &[Deb]) -> Result<()> {
    println!(
        "{:<20} {:<6} {:>10} {:>10}  exposure of units (at most {})",
        "package",
        "for",
        "size",
        "at most",
        security::EXPOSURE_MAX
    );
    for deb in debs {
        let recipe = RECIPES.iter().find(|recipe| recipe.name == deb.name);
        let Some(recipe) = recipe else { continue };
        let size = deb::check_size(recipe, deb)?;
        println!(
            "{:<20} {:<6} {:>10} {:>10}  {}",
            recipe.name,
            deb.arch.debian(),
            megabytes(size),
            megabytes(recipe.size_max),
            exposures(root, recipe)?
        );
    }
    Ok(())
}

/// As the bounds are given: 1 MB has 1,000,000 bytes.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

fn exposures(root: &Path, recipe: &Recipe) -> Result<String> {
    let mut shown = Vec::new();
    for unit in security::unit_files(root, recipe) {
        let exposure = security::exposure(&unit)?;
        shown.push(exposure.map_or_else(|| "not measured".to_owned(), |own| format!("{own:.1}")));
    }
    Ok(match shown.is_empty() {
        true => "no unit".to_owned(),
        false => shown.join(", "),
    })
}
