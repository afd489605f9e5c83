//! Programs in Go that others published, built once below the target directory.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

const ORGANISATION: &str = "github.com/metal-stack";
/// Where checkouts of its published tags are, each below the repository's name: for whoever has
/// them and cannot download the modules.
const CHECKOUTS: &str = "METALMESH_PUBLISHED_GO";

/// A program of a published module: the module, its version, the package inside, and what of our
/// own is compiled with the module's libraries instead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) module: &'static str,
    pub(crate) version: &'static str,
    pub(crate) package: &'static str,
    /// Name below `tests/server/go`, without `.go`.
    pub(crate) own: Option<&'static str>,
}

impl Program {
    fn name(&self) -> &'static str {
        let of_package = self.package.rsplit('/').next();
        self.own.or(of_package).unwrap_or(self.module)
    }

    /// Where it is, after it was built; else why it cannot be had.
    pub(crate) fn built(&self) -> Result<PathBuf, String> {
        // Tests that run at the same time want the same one.
        static MAKING: Mutex<()> = Mutex::new(());
        let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let version = match self.is_checked_out() {
            true => "checkout",
            false => self.version,
        };
        let folder = format!("go-{}-{version}", self.name());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        let program = folder.join(self.name());
        let source = self.own.map(source);
        let is_made = program.exists() && source.as_ref().is_none_or(|it| !newer(it, &program));
        if is_made {
            return Ok(program);
        }
        self.prepare(&folder, source.as_deref())
            .map_err(|error| error.to_string())?;
        let package = if source.is_some() { "." } else { self.package };
        go(&folder, &["build", "-mod=mod", "-o", self.name(), package])?;
        Ok(program)
    }

    /// A module that needs the published one, with the sums that it was published with.
    fn prepare(&self, folder: &Path, source: Option<&Path>) -> Result<(), Box<dyn Error>> {
        fs::create_dir_all(folder)?;
        let mut module = format!(
            "module metalmesh.test\n\ngo 1.26\n\nrequire {} {}\n",
            self.module, self.version
        );
        let checkouts = std::env::var(CHECKOUTS).ok();
        let sources = match checkouts.filter(|_| self.is_checked_out()) {
            Some(all) => {
                let all = Path::new(&all);
                for of in fs::read_dir(all)? {
                    let (name, at) = (of?.file_name(), all.display());
                    let name = name.to_string_lossy();
                    module += &format!("replace {ORGANISATION}/{name} => {at}/{name}\n");
                }
                all.join(self.module.rsplit('/').next().unwrap_or_default())
            }
            None => self.downloaded(folder)?,
        };
        fs::write(folder.join("go.mod"), module)?;
        fs::write(folder.join("go.sum"), fs::read(sources.join("go.sum"))?)?;
        if let Some(source) = source {
            fs::copy(source, folder.join("main.go"))?;
        }
        Ok(())
    }

    fn downloaded(&self, folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
        let at = format!("{}@{}", self.module, self.version);
        let told = go(folder, &["mod", "download", "-json", &at])?;
        let told: serde_json::Value = serde_json::from_str(&told)?;
        let sources = told["Dir"].as_str().ok_or("go names no directory")?;
        Ok(sources.into())
    }

    fn is_checked_out(&self) -> bool {
        self.module.starts_with(ORGANISATION) && std::env::var_os(CHECKOUTS).is_some()
    }

    /// The same for a test, which says why it is left out.
    pub(crate) fn or_skipped(&self) -> Option<PathBuf> {
        self.built()
            .inspect_err(|reason| {
                println!("SKIPPED: {} {}: {reason}", self.module, self.version);
            })
            .ok()
    }
}

fn source(name: &str) -> PathBuf {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/go");
    all.join(format!("{name}.go"))
}

fn newer(source: &Path, program: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).ok();
    changed(source) > changed(program)
}

/// Runs go; what it printed, or the last thing that it complained of.
pub(crate) fn go(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("go");
    command
        .args(arguments)
        .current_dir(folder)
        .env("CGO_ENABLED", "0");
    let output = command.output().map_err(|error| format!("go: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    // With -json, the reason is printed and not complained of.
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    if let Some(reason) = printed["Error"].as_str() {
        return Err(reason.replace('\n', " "));
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.trim().lines().last().unwrap_or_default();
    Err(format!("go {}: {last}", arguments.join(" ")))
}
