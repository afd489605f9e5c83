//! The agent's files: the last good configuration with the last good objects of its sources, and
//! the lock of the one process that changes rules.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents_kit::KitError;
use agents_update::SealedDir;
use anyhow::{Context as _, Result, bail};
use nix::fcntl::Flock;
use tracing::warn;

use crate::admit::{Admitted, ObjectAdmission};
use crate::config::{Config, SourceName};
use crate::dns::SavedName;
pub use crate::loaded::{Loaded, ObjectsError};
use crate::render::render;
use crate::source::{CollectedObjects, SourceObjects};

/// The last configuration that was applied and confirmed.
const LAST_GOOD: &str = "last-good.yaml";
/// Written by `confirm`, with the id of the trial.
const CONFIRMED: &str = "confirmed";
/// Id of the trial that waits for its confirmation.
const TRIAL: &str = "trial";
/// Begin of the names of copies from before an update, while the new program is on trial.
const BEFORE_UPDATE: &str = "before-update-";
/// Addresses of names, so that they are known after a restart of the host.
const NAMES: &str = "names.json";

/// The agent's directory.
#[derive(Clone, Debug)]
pub struct FirewallState {
    sealed: SealedDir,
}

impl FirewallState {
    /// Opens the directory; creates it if it is missing.
    ///
    /// # Errors
    /// Others may enter it, or it is another user's.
    pub fn open(path: &Path) -> Result<Self, KitError> {
        let sealed = SealedDir::open(path)?;
        Ok(Self { sealed })
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.sealed.path()
    }

    /// The directory, for self-update.
    pub(crate) fn sealed(&self) -> &SealedDir {
        &self.sealed
    }

    /// Takes the lock of the process that changes rules, until the value is dropped.
    ///
    /// # Errors
    /// Another process has it.
    pub fn lock(&self) -> Result<Flock<File>> {
        match self.sealed.lock()? {
            Some(lock) => Ok(lock),
            None => bail!(
                "another metalmesh-firewall changes the rules; if the agent runs, change its \
                 configuration file instead"
            ),
        }
    }

    /// The last good configuration. `None` if there was none. If it cannot be used, that from before
    /// an update, whose program may have written it in its own way.
    ///
    /// # Errors
    /// It is damaged, or others may have written it, or it has no valid seal of this agent.
    pub fn last_good(&self) -> Result<Option<Loaded>> {
        or_before_update(
            self.good_of(LAST_GOOD),
            |name| self.good_of(&name),
            LAST_GOOD,
        )
    }

    fn good_of(&self, name: &str) -> Result<Option<Loaded>> {
        let Some(bytes) = self.read_sealed(name)? else {
            return Ok(None);
        };
        let text = String::from_utf8(bytes).context("the last good configuration is no text")?;
        let loaded = Loaded::parse(text).context("the last good configuration is damaged")?;
        let collected = self.last_objects(&loaded.config);
        let loaded = loaded.with_objects(collected, &mut ObjectAdmission::default());
        Ok(Some(loaded.context("the last good rules are not whole")?))
    }

    /// The last good snapshot of each source of a configuration. One that is missing, or damaged,
    /// counts as a source that has not answered yet.
    #[must_use]
    pub fn last_objects(&self, config: &Config) -> CollectedObjects {
        let mut collected = CollectedObjects::default();
        for source in config.controllers.sources() {
            if source == SourceName::Static || collected.of(source).is_some() {
                continue;
            }
            let file = objects_file(source);
            let found = self.read_objects(&file);
            match or_before_update(found, |name| self.read_objects(&name), &file) {
                Ok(Some(objects)) => {
                    collected.replace(source, Arc::new(objects));
                }
                Ok(None) => {}
                Err(error) => warn!(
                    source = source.name(),
                    error = format!("{error:#}"),
                    "the last good rules of a source cannot be used"
                ),
            }
        }
        collected
    }

    fn read_objects(&self, file: &str) -> Result<Option<SourceObjects>> {
        let Some(bytes) = self.read_sealed(file)? else {
            return Ok(None);
        };
        let mut objects: SourceObjects =
            serde_json::from_slice(&bytes).context("they are damaged")?;
        // An older agent wrote so that there are none.
        let allowed = &mut objects.firewall.allowed_networks;
        *allowed = allowed.take().filter(|allowed| !allowed.is_null());
        Ok(Some(objects))
    }

    /// Keeps a configuration, and the snapshots of its sources, as the last good ones.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn keep(&self, loaded: &Loaded) -> Result<()> {
        // Each file is replaced as a whole, and only if it differs: mostly one source changed. If
        // the agent is killed between two of them, each is still what was good of that source.
        for (source, objects) in loaded.collected.snapshots() {
            let bytes = serde_json::to_vec(&**objects)?;
            self.write_changed(&objects_file(source), &bytes)?;
        }
        self.write_changed(LAST_GOOD, loaded.text.as_bytes())?;
        Ok(())
    }

    /// Copies the last good configuration, and the snapshots of its sources, before another program
    /// writes them.
    ///
    /// # Errors
    /// They cannot be written. One that cannot be read is left out.
    pub(crate) fn keep_before_update(&self, config: &Config) -> Result<(), KitError> {
        for file in good_files(config.controllers.sources()) {
            if let Ok(Some(bytes)) = self.read_sealed(&file) {
                self.write_sealed(&format!("{BEFORE_UPDATE}{file}"), &bytes)?;
            }
        }
        Ok(())
    }

    /// Removes those copies.
    ///
    /// # Errors
    /// They cannot be removed.
    pub(crate) fn drop_before_update(&self) -> Result<(), KitError> {
        good_files(SourceName::ALL.into_iter())
            .try_for_each(|file| self.sealed.remove(&format!("{BEFORE_UPDATE}{file}")))
    }

    fn write_changed(&self, file: &str, bytes: &[u8]) -> Result<(), KitError> {
        // A file that cannot be used is replaced like one that differs.
        if matches!(self.read_sealed(file), Ok(Some(old)) if old == bytes) {
            return Ok(());
        }
        self.write_sealed(file, bytes)
    }

    /// The addresses of names that were kept. Empty if there are none, or the file has no valid seal:
    /// they are learned again.
    #[must_use]
    pub fn names(&self) -> Vec<SavedName> {
        match self.read_sealed(NAMES) {
            Ok(bytes) => bytes.map_or_else(Vec::new, |bytes| SavedName::decode(&bytes)),
            Err(error) => {
                let error = format!("{error:#}");
                warn!(error, "the addresses of names are not read");
                Vec::new()
            }
        }
    }

    /// Keeps the addresses of names.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn keep_names(&self, bytes: &[u8]) -> Result<(), KitError> {
        self.write_sealed(NAMES, bytes)
    }

    /// The content of a sealed file. `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read, or is not what this agent wrote under that name.
    pub(crate) fn read_sealed(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.sealed.read_sealed(name)
    }

    /// Replaces a sealed file atomically. It is on disk when this returns.
    ///
    /// # Errors
    /// It cannot be written; the old one is still there.
    pub(crate) fn write_sealed(&self, name: &str, body: &[u8]) -> Result<(), KitError> {
        self.sealed.write_sealed(name, body)
    }

    /// Begins a trial; returns its id.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin_trial(&self) -> Result<String> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let id = format!("{}-{}", std::process::id(), since.as_nanos());
        self.sealed.remove(CONFIRMED)?;
        self.sealed.dir().write(TRIAL, id.as_bytes())?;
        Ok(id)
    }

    /// `true` if that trial was confirmed.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn is_confirmed(&self, id: &str) -> Result<bool, KitError> {
        let confirmed = self.sealed.dir().read_own(CONFIRMED)?;
        Ok(confirmed.as_deref() == Some(id.as_bytes()))
    }

    /// Ends a trial.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn end_trial(&self) -> Result<(), KitError> {
        self.sealed.remove(TRIAL)?;
        self.sealed.remove(CONFIRMED)
    }

    /// Confirms the trial that waits.
    ///
    /// # Errors
    /// No trial waits.
    pub fn confirm(&self) -> Result<()> {
        let Some(id) = self.sealed.dir().read_own(TRIAL)? else {
            bail!("no trial waits for a confirmation; it may have been rolled back already");
        };
        self.sealed.dir().write(CONFIRMED, &id)?;
        Ok(())
    }
}

/// The content of a file; if it cannot be used, that of its copy from before an update.
fn or_before_update<T>(
    found: Result<Option<T>>,
    read: impl Fn(String) -> Result<Option<T>>,
    name: &str,
) -> Result<Option<T>> {
    found.or_else(|error| match read(format!("{BEFORE_UPDATE}{name}")) {
        Ok(Some(before)) => {
            let error = format!("{error:#}");
            warn!(
                error,
                name, "a file of another version is not used; the one from before the update is"
            );
            Ok(Some(before))
        }
        _ => Err(error),
    })
}

/// Names of the last good configuration and of the snapshots of these sources.
fn good_files(sources: impl Iterator<Item = SourceName>) -> impl Iterator<Item = String> {
    let sources: BTreeSet<SourceName> = sources.collect();
    std::iter::once(LAST_GOOD.to_owned()).chain(sources.into_iter().map(objects_file))
}

/// File of the last good snapshot of a source.
fn objects_file(source: SourceName) -> String {
    format!("last-good-{}.json", source.name())
}

/// Writes the rules as text for others, atomically.
///
/// # Errors
/// The file cannot be written.
pub fn write_rules_file(path: &PathBuf, admitted: &Admitted) -> Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let write = || -> std::io::Result<()> {
        // nftables.service loads every file of the folder but those that begin with a dot.
        let mut file = tempfile::Builder::new()
            .prefix(".firewall-controller.")
            .tempfile_in(folder)?;
        file.write_all(render(&admitted.rules).as_bytes())?;
        file.as_file()
            .set_permissions(std::fs::Permissions::from_mode(0o644))?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
