//! A virtual environment with the published package, kept in the target directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A Python that can import the published package.
pub(crate) struct Python {
    program: PathBuf,
    scripts: PathBuf,
    out: PathBuf,
}

impl Python {
    /// Makes the environment, or says why it cannot be made.
    pub(crate) fn with(package: &str) -> Result<Self, String> {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
        let venv = out.join(package);
        let program = venv.join("bin/python");
        let marker = venv.join("ready");
        if !marker.exists() {
            std::fs::create_dir_all(&out).map_err(|e| e.to_string())?;
            run(Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&venv))?;
            let quiet = [
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ];
            run(Command::new(&program)
                .args(quiet)
                .args(["--retries", "1"])
                .arg(package))?;
            std::fs::write(marker, package).map_err(|e| e.to_string())?;
        }
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance");
        Ok(Self {
            program,
            scripts,
            out,
        })
    }

    /// Runs one of our scripts, which writes the file that is returned.
    pub(crate) fn run(&self, script: &str, name: &str) -> Result<PathBuf, String> {
        let file = self.out.join(name);
        let mut command = Command::new(&self.program);
        run(command.arg("-B").arg(self.scripts.join(script)).arg(&file))?;
        Ok(file)
    }
}

fn run(command: &mut Command) -> Result<Output, String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|e| format!("{shown}: {e}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().rev().take(5).collect::<Vec<_>>();
    Err(format!(
        "{shown}: {}",
        last.into_iter().rev().collect::<Vec<_>>().join(" | ")
    ))
}
