//! Nothing that exists for tests is in what users run: the simulation's feature, with the bugs
//! that it can put back, and the next feature level are off in every product.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::Findings;

/// What is released.
const PRODUCTS: &[&str] = &[
    "control-server",
    "control-ctl",
    "agents-core",
    "agents-firewall",
    "agents-hammer",
    "bmc-agent",
    "pixie-server",
];
/// A crate and a feature of it that tests alone may ask for.
const TEST_FEATURES: &[(&str, &str)] = &[
    ("control-store", "sim"),
    ("control-state", "next-level"),
    ("control-server", "next-level"),
];

pub(crate) fn check(root: &Path) -> Result<Findings> {
    let mut findings = Findings::new();
    let alone = PRODUCTS.iter().map(|it| (*it, vec!["--package", *it]));
    // Tests run what is built in one go with everything else.
    let together = [("the workspace", vec!["--workspace"])];
    for (what, of) in alone.chain(together) {
        for line in tree(root, &of)?.lines() {
            let asked = TEST_FEATURES
                .iter()
                .filter(|(name, feature)| has(line, name, feature));
            findings.extend(asked.map(|(name, feature)| {
                format!(
                    "{what} is built with the feature `{feature}` of {name}, which is for tests \
                     alone: remove it from the manifest that asks for it"
                )
            }));
        }
    }
    Ok(findings)
}

/// A line for each crate that something is built from, as `name version features`.
fn tree(root: &Path, of: &[&str]) -> Result<String> {
    let output = crate::cargo()
        .args(["tree", "--locked"])
        .args(of)
        .args(["--prefix", "none", "--format", "{p} | {f}"])
        .current_dir(root)
        .output()
        .context("cannot run cargo tree")?;
    if !output.status.success() {
        bail!(
            "cargo tree: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `true` if no product of ours is built with that feature of the crate.
pub(crate) fn is_for_tests(krate: &str, feature: &str) -> bool {
    TEST_FEATURES.contains(&(krate, feature))
}

fn has(line: &str, name: &str, feature: &str) -> bool {
    let Some((package, features)) = line.split_once(" | ") else {
        return false;
    };
    let features = features.trim_end_matches(" (*)");
    package.split(' ').next() == Some(name) && features.split(',').any(|f| f == feature)
}

#[cfg(test)]
mod tests {
    use super::has;

    #[test]
    fn a_feature_is_seen() {
        let line = "control-store v0.1.0 (/somewhere) | default,sim (*)";
        assert!(has(line, "control-store", "sim"));
        assert!(!has(line, "control-store", "default2"));
        assert!(!has(line, "control", "sim"));
        assert!(!has(
            "control-store v0.1.0 (/somewhere) | ",
            "control-store",
            "sim"
        ));
    }
}
