//! Commit, revision and date of the build, which `VersionService` shows.
//!
//! A packager without the repository sets them in the environment. Development builds have no
//! commit: they would be rebuilt after each one.

use std::env;
use std::path::Path;
use std::process::Command;

const DEVELOPMENT: &str = "development build";
const UNKNOWN: &str = "unknown";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let log = said("git", &["rev-parse", "--git-path", "logs/HEAD"]);
    if let Some(log) = log.filter(|log| is_release && Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
    let of_git = |args: &[&str]| match is_release {
        true => said("git", args).unwrap_or_else(|| UNKNOWN.to_owned()),
        false => DEVELOPMENT.to_owned(),
    };
    let date =
        env::var("SOURCE_DATE_EPOCH").map_or_else(|_| "now".to_owned(), |at| format!("@{at}"));
    let date = said("date", &["--utc", "--date", &date, "+%Y-%m-%dT%H:%M:%SZ"]);
    for (name, found) in [
        ("METALMESH_GIT_SHA1", of_git(&["rev-parse", "HEAD"])),
        (
            "METALMESH_REVISION",
            of_git(&["describe", "--tags", "--always", "--dirty"]),
        ),
        (
            "METALMESH_BUILD_DATE",
            date.unwrap_or_else(|| UNKNOWN.to_owned()),
        ),
    ] {
        println!("cargo::rerun-if-env-changed={name}");
        let value = env::var(name).ok().filter(|value| !value.is_empty());
        println!("cargo::rustc-env={name}={}", value.unwrap_or(found));
    }
}

/// The first line of a program's output. `None` means that it failed or printed nothing.
fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}
