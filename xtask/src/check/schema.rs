//! The schema as tools of others read it: a real protoc compiles every file, and buf lints the
//! packages that are ours.
//!
//! The build compiles with protox, which resolves the name of an option more leniently: only a
//! compiler that users have tells whether users can compile the schema.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::Findings;
use super::metadata::Metadata;
use crate::debs;

/// The package of PyPI that brings a protoc, with its version.
const PROTOC: &str = "grpcio-tools==1.85.1";
/// The package of npm that brings buf, with its version.
const BUF: &str = "@bufbuild/buf@1.75.0";
/// Carries `buf/validate/validate.proto`, which the schema imports.
const VALIDATE: &str = "prost-protovalidate-types";
/// The exit code by which buf tells findings from failures of its own.
const BUF_FOUND: i32 = 100;

/// The result of one check that needs a tool of others.
pub(crate) enum Outcome {
    Ran(Findings),
    /// The tool cannot be had here, with the reason.
    Skipped(String),
}

/// Compiles the schema with protoc, then lints our packages with buf.
pub(crate) fn check(root: &Path) -> Result<[(&'static str, Outcome); 2]> {
    let schema = root.join("proto/schema");
    let scratch = TempDir::new().context("cannot make a folder for the compiled schema")?;
    let image = scratch.path().join("schema.binpb");
    let compiled = match protoc() {
        Ok(python) => Outcome::Ran(compile(&python, root, &schema, &image)?),
        Err(error) => Outcome::Skipped(format!("{PROTOC}: {error:#}")),
    };
    let linted = match (image.exists(), buf()) {
        (true, Ok(buf)) => Outcome::Ran(lint(&buf, &schema, &image)?),
        (false, _) => Outcome::Skipped("protoc compiled nothing to lint".to_owned()),
        (true, Err(error)) => Outcome::Skipped(format!("{BUF}: {error:#}")),
    };
    Ok([("protoc", compiled), ("buf lint", linted)])
}

/// Compiles every file of the schema into `image`; each line that protoc complains with is a
/// finding.
fn compile(python: &Path, root: &Path, schema: &Path, image: &Path) -> Result<Findings> {
    let rules = Metadata::directory(root, VALIDATE)?.join("proto");
    let output = Command::new(python)
        .args(["-m", "grpc_tools.protoc"])
        .args(["--include_imports", "--include_source_info"])
        .arg("-I.")
        .arg(format!("-I{}", rules.display()))
        .arg(format!("--descriptor_set_out={}", image.display()))
        .args(protos(schema)?)
        .current_dir(schema)
        .output()
        .context("cannot run protoc")?;
    if output.status.success() {
        return Ok(Findings::new());
    }
    Ok(lines("proto/schema/", &output.stderr))
}

/// Lints the compiled schema, so that buf needs no registry for what the schema imports.
fn lint(buf: &Path, schema: &Path, image: &Path) -> Result<Findings> {
    let output = Command::new(buf)
        .arg("lint")
        .arg(format!("{}#format=binpb", image.display()))
        .arg("--config")
        .arg(schema.join("buf.yaml"))
        .args(["--path", "metalmesh"])
        .output()
        .context("cannot run buf")?;
    match output.status.code() {
        Some(0) => Ok(Findings::new()),
        Some(BUF_FOUND) => Ok(lines("proto/schema/", &output.stdout)),
        _ => bail!(
            "buf lint: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ),
    }
}

/// The Python that has the package with protoc, installed once for each version.
fn protoc() -> Result<PathBuf> {
    let venv = once(PROTOC, |folder| {
        debs::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        debs::run(pip.args(["--retries", "1", "--timeout", "15"]).arg(PROTOC))
    })?;
    Ok(venv.join("bin/python"))
}

/// The program buf, installed once for each version.
fn buf() -> Result<PathBuf> {
    let folder = once(BUF, |folder| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund"]);
        npm.args(["--ignore-scripts", "--fetch-retries=0", "--prefix"]);
        debs::run(npm.arg(folder).arg(BUF))
    })?;
    Ok(folder.join("node_modules/.bin/buf"))
}

/// The folder of the cache that `install` fills once for a package.
fn once(package: &str, install: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = package.chars().map(plain).collect();
    let folder = debs::cache_dir()?.join(format!("tool-{}", name.trim_matches('-')));
    let whole = folder.join(".complete");
    if whole.exists() {
        return Ok(folder);
    }
    // An attempt that broke off may have left half of it.
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    install(&folder)?;
    fs::write(whole, "")?;
    Ok(folder)
}

/// Every `.proto` file below a folder, relative to it, in order.
fn protos(schema: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![schema.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "proto") {
                found.push(path.strip_prefix(schema).unwrap_or(&path).to_path_buf());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A finding for each line of a tool's output.
fn lines(folder: &str, output: &[u8]) -> Findings {
    let text = String::from_utf8_lossy(output);
    let found: Findings = text.lines().map(|line| format!("{folder}{line}")).collect();
    if found.is_empty() {
        return vec![format!("{folder}: the tool failed and did not say why")];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_failure_is_never_without_a_finding() {
        let said = lines(
            "proto/schema/",
            b"a.proto:1:2: wrong\nb.proto:3:4: wrong too\n",
        );
        assert_eq!(
            said,
            [
                "proto/schema/a.proto:1:2: wrong",
                "proto/schema/b.proto:3:4: wrong too"
            ]
        );
        assert_eq!(lines("proto/schema/", b"").len(), 1);
    }
}
