//! Finds `buf/validate/validate.proto` in its published package.
//!
//! The file is neither copied into this repository nor typed again: the package
//! `prost-protovalidate-types` carries it, `Cargo.lock` pins version and checksum, and
//! `cargo metadata` says where cargo unpacked it. The dependency is declared for a target
//! that we never build for, so only its sources arrive and nothing of it is compiled.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "prost-protovalidate-types";
const FILE: &str = "buf/validate/validate.proto";
/// Any target with `target_os = "none"`; it need not be installed.
const TARGET: &str = "x86_64-unknown-none";

/// The folder to be searched for `buf/validate/validate.proto`.
pub(crate) fn include_dir(manifest: &Path) -> Result<PathBuf, Box<dyn std::error::Error>> {
    // Without the network first: it is the usual case, and quick.
    let metadata = run(manifest, true).or_else(|_| run(manifest, false))?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata)?;
    let package = metadata["packages"]
        .as_array()
        .and_then(|all| all.iter().find(|p| p["name"] == PACKAGE))
        .and_then(|p| p["manifest_path"].as_str())
        .ok_or_else(|| format!("cargo metadata knows no package {PACKAGE}"))?;
    let dir = Path::new(package)
        .parent()
        .unwrap_or_else(|| Path::new("/"))
        .join("proto");
    if !dir.join(FILE).is_file() {
        return Err(format!("{PACKAGE} has no {FILE} below {}", dir.display()).into());
    }
    Ok(dir)
}

fn run(manifest: &Path, offline: bool) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args([
            "metadata",
            "--format-version",
            "1",
            "--filter-platform",
            TARGET,
        ])
        .arg("--manifest-path")
        .arg(manifest.join("Cargo.toml"))
        // Flags and wrappers of the running build must not affect `cargo metadata`.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .current_dir(manifest);
    if offline {
        command.args(["--offline", "--locked"]);
    }
    let output = command.output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(format!("cargo metadata could not fetch {PACKAGE}: {reason}").into())
}
