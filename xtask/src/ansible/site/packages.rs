//! The packages of the site: their repository, and what the lab itself uses of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tests_lab::netns::Namespace;
use tests_lab::process::{Process, output};
use tests_lab::state::Record;
use tests_lab::topology::ADMIN;
use tests_lab::wait::wait_for;

use crate::debs::{self, run_text};
use crate::package::repository;
use crate::package::signing::{self, Signing};

/// TCP port of the repository.
const PORT: u16 = 8000;
const START: Duration = Duration::from_secs(30);
/// The package whose version is that of all.
const CONTROL: &str = "metalmesh-control";

/// A folder with the packages of one version.
#[derive(Clone, Debug)]
pub(super) struct DebFolder {
    path: PathBuf,
    pub(super) version: String,
}

impl DebFolder {
    /// # Errors
    /// The folder has not one package of each name for this machine's processor.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut folder = Self {
            path: path.to_owned(),
            version: String::new(),
        };
        let deb = folder.deb(CONTROL)?;
        let mut field = Command::new("dpkg-deb");
        let version = run_text(field.arg("--field").arg(deb).arg("Version"))?;
        version.trim().clone_into(&mut folder.version);
        Ok(folder)
    }

    /// The package of that name.
    fn deb(&self, name: &str) -> Result<PathBuf> {
        let found = repository::native(&self.path)?;
        let begin = format!("{name}_");
        let is_it = |path: &&PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            file.starts_with(&begin)
        };
        let mut all = found.iter().filter(is_it);
        let deb = all.next().with_context(|| {
            format!(
                "{} has no {name}: ./dev package makes it",
                self.path.display()
            )
        })?;
        ensure!(
            all.next().is_none(),
            "{} has more than one {name}; name a folder with the packages of one version",
            self.path.display()
        );
        Ok(deb.clone())
    }

    /// Unpacks a package into a folder.
    ///
    /// # Errors
    /// There is none of that name.
    pub(super) fn unpack(&self, name: &str, into: &Path) -> Result<()> {
        let mut unpack = Command::new("dpkg-deb");
        debs::run(unpack.arg("--extract").arg(self.deb(name)?).arg(into))
    }
}

/// A signed apt repository that the hosts reach by HTTP.
#[derive(Debug)]
pub(super) struct Repository {
    root: PathBuf,
    /// Where it is served from.
    folder: PathBuf,
    key: PathBuf,
}

impl Repository {
    /// Makes a key for it, and serves it, with nothing in it yet.
    ///
    /// # Errors
    /// No key can be made, or the server does not come up.
    pub(super) fn serve(
        root: &Path,
        record: &Record,
        admin: &Namespace,
        python: &Path,
    ) -> Result<Self> {
        let key = record.path("site/repository.key")?;
        signing::make_key(&key)?;
        let folder = record.path("site/repository/x")?.with_file_name("");
        let mut command = admin.command(python);
        command
            .args(["-m", "http.server", &PORT.to_string()])
            .args(["--bind", &ADMIN.to_string(), "--directory"])
            .arg(&folder);
        let process = Process::spawn(record, "repository", command)?;
        wait_for("the repository's port", START, || {
            process.check()?;
            let listening = output(admin.command("ss").args(["-Hltn"]))?;
            Ok(listening.contains(&format!(":{PORT} ")).then_some(()))
        })?;
        Ok(Self {
            root: root.to_owned(),
            folder,
            key,
        })
    }

    /// Puts exactly these packages into it.
    ///
    /// # Errors
    /// A package cannot be read.
    pub(super) fn publish(&self, folders: &[&DebFolder]) -> Result<()> {
        let paths: Vec<&Path> = folders.iter().map(|folder| &*folder.path).collect();
        // The server holds its folder by name: what is in it changes at once.
        let stage = self.folder.join("new");
        let signing = Signing::new(&self.key, "now", signing::VALID_DAYS)?;
        repository::publish(&self.root, &stage, &paths, &signing)?;
        let current = self.folder.join("apt");
        if current.exists() {
            fs::remove_dir_all(&current)?;
        }
        fs::rename(&stage, &current)?;
        Ok(())
    }

    pub(super) fn url() -> String {
        format!("http://{ADMIN}:{PORT}/apt")
    }

    /// The public key, as hosts get it.
    pub(super) fn public_key(&self) -> PathBuf {
        self.folder.join("apt").join(signing::KEY_FILE)
    }
}
