//! Python environments with a pinned ansible-core each, made once.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{CoreVersion, name};
use crate::debs;

/// An environment with ansible-core and its tools.
#[derive(Debug)]
pub(super) struct PythonEnvironment {
    folder: PathBuf,
    /// Version of its Python, such as "3.13".
    pub(super) python: String,
    pub(super) core: CoreVersion,
}

impl PythonEnvironment {
    /// The folder of its programs.
    pub(super) fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// A program of the environment, which finds the others there first.
    pub(super) fn program(&self, name: &str) -> Command {
        let programs = self.bin();
        let mut path = OsString::from(&programs);
        if let Some(others) = std::env::var_os("PATH") {
            path.push(":");
            path.push(others);
        }
        let mut command = Command::new(programs.join(name));
        command.env("PATH", path).env("VIRTUAL_ENV", &self.folder);
        command
    }
}

/// Versions of Python that a controller may have, the preferred one first.
fn pythons(core: CoreVersion) -> &'static [&'static str] {
    match core {
        CoreVersion::V19 => &["3.13", "3.12", "3.11"],
        CoreVersion::V21 => &["3.13", "3.12"],
    }
}

/// The reason why there is no environment.
pub(super) fn missing(core: CoreVersion) -> String {
    let wanted = pythons(core).join(", ");
    format!("none of python {wanted} is installed")
}

/// The environment of a version. `None` if no Python for it is installed.
///
/// # Errors
/// Its packages cannot be installed.
pub(super) fn environment(root: &Path, core: CoreVersion) -> Result<Option<PythonEnvironment>> {
    let mut versions = pythons(core).iter();
    let found = versions.find_map(|version| Some((*version, interpreter(version)?)));
    let Some((python, interpreter)) = found else {
        return Ok(None);
    };
    let packages = root.join(format!("xtask/ansible/core-{}.txt", name(&core)));
    let list = fs::read_to_string(&packages).with_context(|| packages.display().to_string())?;
    let key = debs::sha256_hex(format!("{python}\n{list}").as_bytes());
    let folder = debs::cache_dir()?.join(format!("ansible-{}-{}", name(&core), &key[..16]));
    let whole = folder.join(".complete");
    if !whole.exists() {
        install(&folder, &interpreter, &packages)?;
        fs::write(whole, "")?;
    }
    Ok(Some(PythonEnvironment {
        folder,
        python: python.to_owned(),
        core,
    }))
}

fn install(folder: &Path, interpreter: &Path, packages: &Path) -> Result<()> {
    eprintln!("    installing {} from PyPI, once", packages.display());
    // A broken attempt may have left something behind.
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let mut venv = Command::new(interpreter);
    debs::run(venv.args(["-m", "venv"]).arg(folder))?;
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]);
    debs::run(pip.arg("--requirement").arg(packages))
}

/// The interpreter of a version: on the path, or among those of pyenv, whose shims fail for versions
/// that were not chosen.
fn interpreter(version: &str) -> Option<PathBuf> {
    let program = format!("python{version}");
    let mut candidates = vec![PathBuf::from(&program)];
    let pyenv = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv")));
    let installed = pyenv.and_then(|folder| fs::read_dir(folder.join("versions")).ok());
    let begin = format!("{version}.");
    for entry in installed.into_iter().flatten().filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().starts_with(&begin) {
            candidates.push(entry.path().join("bin").join(&program));
        }
    }
    candidates.into_iter().find(|candidate| runs(candidate))
}

fn runs(program: &Path) -> bool {
    let asked = Command::new(program).arg("--version").output();
    asked.is_ok_and(|answer| answer.status.success())
}
