//! The checks themselves: which program runs where, with what.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::python::PythonEnvironment;
use super::server::DevServer;
use super::tree::CollectionTree;
use super::{AnsibleCheck, CoreVersion};
use crate::lab;

/// How a check ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CheckOutcome {
    Passed,
    Failed,
    /// Why it did not run.
    Skipped(String),
}

impl fmt::Display for CheckOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed => f.write_str("FAILED"),
            Self::Skipped(reason) => write!(f, "skipped: {reason}"),
        }
    }
}

/// What checks run with.
#[derive(Debug)]
pub(super) struct CheckJob<'a> {
    pub(super) root: &'a Path,
    pub(super) tree: &'a CollectionTree,
    pub(super) environment: &'a PythonEnvironment,
    pub(super) targets: &'a [String],
    pub(super) metalmeshd: Option<&'a Path>,
}

impl CheckJob<'_> {
    /// Runs a check.
    ///
    /// # Errors
    /// A program cannot be run.
    pub(super) fn run(&self, check: AnsibleCheck) -> Result<CheckOutcome> {
        match check {
            AnsibleCheck::Units => self.units(),
            AnsibleCheck::Lint => self.one(
                "ansible-lint",
                &["--offline", "--strict", "--profile", "production"],
            ),
            AnsibleCheck::Docs => self.docs(),
            AnsibleCheck::Build => self.build(),
            AnsibleCheck::Sanity => self.sanity(),
            AnsibleCheck::Integration => self.integration(),
        }
    }

    /// A program of the environment, in the folder of the collection.
    fn program(&self, name: &str) -> Command {
        let mut program = self.environment.program(name);
        program
            .current_dir(&self.tree.collection)
            .env("PYTHONPATH", &self.tree.base)
            .env("ANSIBLE_COLLECTIONS_PATH", &self.tree.base);
        program
    }

    fn one(&self, name: &str, arguments: &[&str]) -> Result<CheckOutcome> {
        outcome(self.program(name).args(arguments))
    }

    fn units(&self) -> Result<CheckOutcome> {
        let mut pytest = self.program("python");
        pytest
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit"])
            .env("METALMESH_SCHEMA", self.root.join("proto/schema"));
        outcome(&mut pytest)
    }

    fn docs(&self) -> Result<CheckOutcome> {
        let docs = self.one(
            "antsibull-docs",
            &["lint-collection-docs", "--plugin-docs", "."],
        )?;
        let changelog = self.one("antsibull-changelog", &["lint"])?;
        Ok(if docs == CheckOutcome::Passed {
            changelog
        } else {
            docs
        })
    }

    /// The archive as users get it, installed by a tool that may fetch nothing.
    fn build(&self) -> Result<CheckOutcome> {
        let folder = TempDir::new()?;
        let mut build = self.program("ansible-galaxy");
        build.args(["collection", "build", "--output-path"]);
        if outcome(build.arg(folder.path()))? != CheckOutcome::Passed {
            return Ok(CheckOutcome::Failed);
        }
        let archive = archive(folder.path())?;
        let mut install = self.program("ansible-galaxy");
        // The tree is the same collection: with it on the path nothing would be installed.
        install.env_remove("ANSIBLE_COLLECTIONS_PATH");
        install.args(["collection", "install", "--offline", "--force", "-p"]);
        outcome(install.arg(folder.path().join("installed")).arg(archive))
    }

    fn sanity(&self) -> Result<CheckOutcome> {
        bootstrap(self.environment.core)?;
        let python = &self.environment.python;
        self.one("ansible-test", &["sanity", "--venv", "--python", python])
    }

    fn integration(&self) -> Result<CheckOutcome> {
        let built = lab::target_dir(self.root).join("debug/metalmeshd");
        let program = self.metalmeshd.unwrap_or(&built);
        let server = DevServer::start(program)?;
        // ansible-test hands nothing of the environment on but this file.
        let settings = self
            .tree
            .collection
            .join("tests/integration/integration_config.yml");
        let text = format!(
            "---\nmetalmesh_url: {}\nmetalmesh_token: {}\nmetalmesh_program: {}\n",
            server.url,
            server.token()?,
            program.display()
        );
        fs::write(settings, text)?;
        bootstrap(self.environment.core)?;
        let mut test = self.program("ansible-test");
        test.args(["integration", "--venv", "--python"])
            .arg(&self.environment.python)
            .args(self.targets);
        outcome(&mut test)
    }
}

fn outcome(command: &mut Command) -> Result<CheckOutcome> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    Ok(if status.success() {
        CheckOutcome::Passed
    } else {
        CheckOutcome::Failed
    })
}

/// The only archive in a folder.
fn archive(folder: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(folder)?.filter_map(Result::ok);
    let found = entries.find(|entry| entry.path().extension().is_some_and(|end| end == "gz"));
    found
        .map(|entry| entry.path())
        .context("ansible-galaxy built no archive")
}

/// Puts pip's bootstrap script where ansible-test looks for it: otherwise it downloads the script from a
/// server of its own, also on hosts that reach PyPI alone. Python has what the script is for.
fn bootstrap(core: CoreVersion) -> Result<()> {
    let version = match core {
        CoreVersion::V19 => "24_2",
        CoreVersion::V21 => "25_2",
    };
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    let cache = PathBuf::from(home).join(".ansible/test/cache");
    let script = cache.join(format!("get_pip_{version}.py"));
    if script.exists() {
        return Ok(());
    }
    fs::create_dir_all(&cache)?;
    fs::write(
        script,
        "import ensurepip\nensurepip.bootstrap(upgrade=True)\n",
    )?;
    Ok(())
}
