//! The crates of others: allowed licences, banned crates, and one line of reason each.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Findings;
use super::metadata::{Metadata, Package};

/// The parts of deny.toml that need no network to enforce.
#[derive(Debug, Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    /// `name` or `name@<version`.
    #[serde(rename = "crate")]
    krate: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    workspace: Workspace,
}

#[derive(Debug, Deserialize)]
struct Workspace {
    dependencies: toml::Table,
}

pub(crate) fn check(root: &Path, metadata: &Metadata) -> Result<Findings> {
    let deny: Deny = toml::from_str(&read(root, "deny.toml")?).context("deny.toml")?;
    let manifest: Manifest = toml::from_str(&read(root, "Cargo.toml")?).context("Cargo.toml")?;
    let reasons = read(root, "docs/dependencies.md")?;

    let mut findings = Findings::new();
    for package in metadata.theirs() {
        findings.extend(check_licence(package, &deny.licenses.allow));
        findings.extend(
            deny.bans
                .deny
                .iter()
                .filter_map(|ban| check_ban(package, ban)),
        );
    }
    for (name, value) in &manifest.workspace.dependencies {
        let ours = value.get("path").is_some();
        if !ours && !reasons.contains(&format!("| {name} |")) {
            findings.push(format!("docs/dependencies.md gives no reason for {name}"));
        }
    }
    Ok(findings)
}

fn read(root: &Path, file: &str) -> Result<String> {
    fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))
}

/// A licence expression passes when one of its alternatives is made of allowed licences alone.
fn check_licence(package: &Package, allow: &BTreeSet<String>) -> Option<String> {
    let expression = package.license.as_deref().unwrap_or("none");
    // The old form "MIT/Apache-2.0" means OR; parentheses do not change our verdict.
    let plain = expression.replace('/', " OR ").replace(['(', ')'], "");
    let passes = plain.split(" OR ").any(|choice| {
        choice
            .split(" AND ")
            .all(|licence| allow.contains(licence.trim()))
    });
    (!passes).then(|| {
        format!(
            "{} {}: licence {expression} is not in deny.toml",
            package.name, package.version
        )
    })
}

fn check_ban(package: &Package, ban: &Ban) -> Option<String> {
    let (name, below) = match ban.krate.split_once("@<") {
        Some((name, version)) => (name, Some(version)),
        None => (ban.krate.as_str(), None),
    };
    let hit = package.name == name
        && below.is_none_or(|below| version(&package.version) < version(below));
    hit.then(|| {
        format!(
            "{} {} is banned: {}",
            package.name, package.version, ban.reason
        )
    })
}

fn version(text: &str) -> Vec<u64> {
    text.split(['.', '-', '+'])
        .map_while(|part| part.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_compare_by_number() {
        assert!(version("0.11.9") < version("0.11.15"));
        assert!(version("0.11.15") >= version("0.11.15"));
        assert!(version("0.12.0-rc.1") > version("0.11.15"));
    }
}
