//! The published Python client drives the scenario and every method: three protocols, two codecs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::daemon::Daemon;

/// The client that the contract was published with.
const PACKAGE: &str = "metal-stack-api==0.8.4";

/// The Python of a virtual environment with a package, made once below the target directory.
pub(crate) fn environment(package: &str) -> Result<PathBuf, String> {
    // Tests that run at the same time want the same one.
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = package.chars().map(plain).collect();
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{name}"));
    let python = venv.join("bin/python");
    if venv.join("ready").exists() {
        return Ok(python);
    }
    let folder = venv
        .to_str()
        .ok_or("the target directory's name is not UTF-8")?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ];
    run(Path::new("python3"), &["-m", "venv", "--clear", folder])?;
    run(&python, &[&pip[..], &[package]].concat())?;
    std::fs::write(venv.join("ready"), "").map_err(|error| error.to_string())?;
    Ok(python)
}

fn run(program: &Path, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_default().to_owned();
    Err(format!("{} {arguments:?}: {last}", program.display()))
}

/// The Python that has the published client, or none and why.
pub(crate) fn client() -> Option<PathBuf> {
    environment(PACKAGE)
        .inspect_err(|reason| println!("SKIPPED: {PACKAGE} cannot be installed: {reason}"))
        .ok()
}

/// Runs a script with the published client against a fresh node; what it prints, or none where the
/// client cannot be had.
fn published(script: &str) -> Option<String> {
    let python = client()?;
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server");
    let output = Command::new(python)
        .arg(scripts.join(script))
        .arg(&daemon.api)
        .env("ADMIN_TOKEN", daemon.admin_token())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{text}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{error}");
    Some(text)
}

#[test]
fn the_published_client_in_all_protocols() {
    published("published_client.py");
}

#[test]
fn the_published_client_is_answered_alike_by_every_method() {
    if let Some(text) = published("every_method.py") {
        assert!(text.contains("152 methods, 6 combinations"), "{text}");
    }
}
