//! Version, commit and time of the packages, from git.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::debs::run_text;

/// The commit that packages are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    /// Version of the workspace, such as `0.1.0`.
    pub(crate) version: String,
    /// Version of the packages, such as `0.1.0-1`.
    pub(crate) debian: String,
    pub(crate) commit: String,
    /// Time of the commit, seconds since 1970: the time of every file (`SOURCE_DATE_EPOCH`).
    pub(crate) epoch: u64,
}

#[derive(Debug, Deserialize)]
struct Manifest {
    workspace: toml::Table,
}

impl Release {
    pub(crate) fn of(root: &Path) -> Result<Self> {
        let version = version(root)?;
        let commit = git(root, &["rev-parse", "HEAD"])?;
        let epoch = git(root, &["show", "--no-patch", "--format=%ct", "HEAD"])?;
        let epoch: u64 = epoch.parse().context("git shows no time of the commit")?;
        let tag = format!("v{version}");
        // It fails where the commit has no such tag.
        let exact = git(
            root,
            &["describe", "--tags", "--exact-match", "--match", &tag],
        );
        let changed = git(root, &["status", "--porcelain", "--untracked-files=no"])?;
        let stamp = date(epoch, "%Y%m%d%H%M%S")?;
        let debian = debian_version(
            &version,
            exact.is_ok(),
            &stamp,
            &commit,
            !changed.is_empty(),
        );
        Ok(Self {
            version,
            debian,
            commit,
            epoch,
        })
    }

    /// The time in a format of date(1), in English and UTC.
    pub(crate) fn date(&self, format: &str) -> Result<String> {
        date(self.epoch, format)
    }
}

/// The version of the packages. Commits before the release of a version sort before it (`~`), in the
/// order of their times.
fn debian_version(
    version: &str,
    is_tagged: bool,
    stamp: &str,
    commit: &str,
    is_changed: bool,
) -> String {
    let commit = commit.get(..8).unwrap_or(commit);
    let development = match is_tagged {
        true => String::new(),
        false => format!("~git{stamp}.{commit}"),
    };
    let changed = if is_changed { "+changed" } else { "" };
    format!("{version}{development}{changed}-1")
}

fn version(root: &Path) -> Result<String> {
    let text = std::fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
    let manifest: Manifest = toml::from_str(&text).context("Cargo.toml")?;
    let package = manifest.workspace.get("package");
    let version = package.and_then(|package| package.get("version"));
    let version = version.and_then(toml::Value::as_str);
    let version = version.context("Cargo.toml has no workspace.package.version")?;
    Ok(version.to_owned())
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let text = run_text(Command::new("git").args(arguments).current_dir(root))?;
    Ok(text.trim().to_owned())
}

/// A time, seconds since 1970, in a format of date(1), in English and UTC.
pub(super) fn date(epoch: u64, format: &str) -> Result<String> {
    let mut command = Command::new("date");
    command.env("LC_ALL", "C").args(["--utc", "--date"]);
    let text = run_text(command.arg(format!("@{epoch}")).arg(format!("+{format}")))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_development_sort_before_the_release() {
        let versions = [
            debian_version("0.2.0", false, "20260101000000", "0123456789", false),
            debian_version("0.2.0", false, "20260102000000", "fedcba9876", true),
            debian_version("0.2.0", true, "20260103000000", "fedcba9876", false),
        ];
        assert_eq!(
            versions,
            [
                "0.2.0~git20260101000000.01234567-1",
                "0.2.0~git20260102000000.fedcba98+changed-1",
                "0.2.0-1",
            ]
        );
        for pair in versions.windows(2) {
            let mut dpkg = Command::new("dpkg");
            dpkg.args(["--compare-versions", &pair[0], "lt", &pair[1]]);
            assert!(dpkg.status().unwrap().success(), "{pair:?}");
        }
    }

    #[test]
    fn times_are_utc_and_english() {
        assert_eq!(
            date(0, "%a, %d %b %Y %T +0000").unwrap(),
            "Thu, 01 Jan 1970 00:00:00 +0000"
        );
    }
}
