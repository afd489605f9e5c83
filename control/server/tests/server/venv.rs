//! Programs of others, in Python.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The Python of a virtual environment with a package, made once below the target directory.
pub(crate) fn environment(package: &str) -> Result<PathBuf, String> {
    environment_with(&[&[package]])
}

/// The same with several installations, each with the arguments of `pip install`.
pub(crate) fn environment_with(installations: &[&[&str]]) -> Result<PathBuf, String> {
    // Tests that run at the same time want the same one.
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let all = installations.concat().join(" ");
    let name: String = all.chars().map(plain).collect();
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
    for installation in installations {
        run(&python, &[&pip[..], *installation].concat())?;
    }
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
