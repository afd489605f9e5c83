//! The files of self-update, in the state directory.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use agents_kit::KitError;
use anyhow::bail;
use proto_release::{FileDigest, ReleaseManifest, UnpackError, unpack};
use tempfile::NamedTempFile;
use tracing::warn;

use super::program::StoredProgram;
use super::record::UpdateRecord;
use super::status::UpdateStatus;
use crate::seal::StateSeal;
use crate::sealed_dir::SealedDir;

/// Directory of programs in the state directory.
const PROGRAMS: &str = "programs";
/// The record, sealed.
const RECORD: &str = "update.json";
/// The status, for the command `update status`.
const STATUS: &str = "update-status.json";
/// Written by the command `update retry`.
const RETRY: &str = "update-retry";

/// The files of self-update.
#[derive(Clone, Debug)]
pub struct UpdateFiles {
    state: SealedDir,
    programs: PathBuf,
}

impl UpdateFiles {
    /// Those of a state directory.
    #[must_use]
    pub fn new(state: SealedDir) -> Self {
        let programs = state.path().join(PROGRAMS);
        Self { state, programs }
    }

    /// Those of the state directory of an agent that has run, for a command beside it. Nothing is made.
    ///
    /// # Errors
    /// There is no such directory, no agent has run with it, or it cannot be opened.
    pub fn existing(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let hint = "name the directory that the agent runs with: --state-dir DIR";
        if matches!(path.try_exists(), Ok(false)) {
            bail!("state directory {name}: it does not exist; {hint}");
        }
        if StateSeal::is_missing(path) {
            bail!(
                "state directory {name}: no agent that replaces its program has run there; {hint}"
            );
        }
        Ok(Self::new(SealedDir::open(path)?))
    }

    /// The record. `None` if there is none, or it cannot be used: then the installed program is used.
    pub(crate) fn record(&self) -> Option<UpdateRecord> {
        let found = match self.state.read_sealed(RECORD) {
            Ok(bytes) => bytes.map(|bytes| UpdateRecord::decode(&bytes)),
            Err(error) => {
                let error = format!("{error:#}");
                warn!(
                    error,
                    "the record of updates cannot be read; the installed program is used"
                );
                None
            }
        };
        if found == Some(None) {
            warn!(
                "the record of updates is damaged, or of a later version; the installed program is used"
            );
        }
        found.flatten()
    }

    /// Keeps the record. It is on disk when this returns.
    ///
    /// # Errors
    /// It cannot be written; the old one is still there.
    pub(crate) fn keep(&self, record: &UpdateRecord) -> anyhow::Result<()> {
        let bytes = serde_json::to_vec(record)?;
        self.state.write_sealed(RECORD, &bytes)?;
        Ok(())
    }

    /// Keeps the status, for a command.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn keep_status(&self, status: &UpdateStatus) -> anyhow::Result<()> {
        let bytes = serde_json::to_vec(status)?;
        self.state.write_sealed(STATUS, &bytes)?;
        Ok(())
    }

    /// The status that the agent has kept last. `None` if it never ran.
    ///
    /// # Errors
    /// It cannot be read, or is not what the agent wrote.
    pub fn status(&self) -> anyhow::Result<Option<UpdateStatus>> {
        let bytes = self.state.read_sealed(STATUS)?;
        Ok(bytes
            .map(|bytes| serde_json::from_slice(&bytes))
            .transpose()?)
    }

    /// Asks the agent to forget failed versions.
    ///
    /// # Errors
    /// The request cannot be written.
    pub fn ask_retry(&self) -> Result<(), KitError> {
        self.state.write_sealed(RETRY, b"")
    }

    /// Takes such a request. `true` if there was one.
    pub(crate) fn take_retry(&self) -> bool {
        let is_asked = matches!(self.state.read_sealed(RETRY), Ok(Some(_)));
        is_asked && self.state.remove(RETRY).is_ok()
    }

    /// Path of a program.
    pub(crate) fn path_of(&self, program: &StoredProgram) -> PathBuf {
        self.programs.join(&program.file)
    }

    /// Name of the file in the directory of programs that a path names. `None` if it is elsewhere.
    pub(crate) fn file_of(&self, path: &Path) -> Option<String> {
        // The path of the running program has no links any more.
        let programs = fs::canonicalize(&self.programs).ok()?;
        let name = path.strip_prefix(programs).ok()?.to_str()?;
        // The kernel says so when the file was removed meanwhile.
        Some(name.trim_end_matches(" (deleted)").to_owned())
    }

    /// Files of those programs whose content is that of their manifests.
    pub(crate) fn whole<'a>(
        &self,
        programs: impl Iterator<Item = &'a StoredProgram>,
    ) -> BTreeSet<String> {
        let is_whole = |program: &&StoredProgram| {
            let file = File::open(self.path_of(program));
            let found = file.and_then(|file| FileDigest::of(BufReader::new(file)));
            found.is_ok_and(|found| found == program.program)
        };
        let whole = programs.filter(is_whole);
        whole.map(|program| program.file.clone()).collect()
    }

    /// A new file in the directory of programs, for the payload of a release.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn payload(&self) -> io::Result<NamedTempFile> {
        let mut directory = DirBuilder::new();
        directory
            .recursive(true)
            .mode(0o700)
            .create(&self.programs)?;
        NamedTempFile::new_in(&self.programs)
    }

    /// Unpacks the program of a payload beside the others. Its file has its name once it is whole and
    /// on disk.
    ///
    /// # Errors
    /// The problem and a remedy.
    pub(crate) fn store(
        &self,
        manifest: &ReleaseManifest,
        payload: &NamedTempFile,
    ) -> Result<StoredProgram, String> {
        let program = StoredProgram::new(manifest.version.clone(), manifest.program.clone());
        if !program.is_safe() {
            return Err("version: it cannot be the name of a file; use another one".to_owned());
        }
        let failed = |error: io::Error| {
            let path = self.programs.display();
            format!("disk: cannot write into {path}: {error}; make room, or mount it writable")
        };
        let mut file = NamedTempFile::new_in(&self.programs).map_err(failed)?;
        let packed = payload.reopen().map_err(failed)?;
        unpack(manifest, BufReader::new(packed), &mut file).map_err(|error| match error {
            UnpackError::Write(error) => failed(error),
            error => {
                let chain = base_runtime::Chain(&error).to_string();
                format!("payload: {chain}; publish the release again")
            }
        })?;
        file.flush().map_err(failed)?;
        let inner = file.as_file();
        // Also for the probe, which runs as nobody. The directory is closed to others.
        inner
            .set_permissions(Permissions::from_mode(0o755))
            .and_then(|()| inner.sync_all())
            .map_err(failed)?;
        file.persist(self.path_of(&program))
            .map_err(|error| failed(error.error))?;
        // The record must not outlive a power failure that the file does not.
        let directory = File::open(&self.programs);
        directory
            .and_then(|directory| directory.sync_all())
            .map_err(failed)?;
        Ok(program)
    }

    /// Removes a program that is not used.
    pub(crate) fn discard(&self, program: &StoredProgram) {
        let path = self.path_of(program);
        if let Err(error) = fs::remove_file(&path) {
            warn!(file = %path.display(), %error, "a program that is refused is not removed");
        }
    }

    /// Removes every program that the record does not name, and what was left of fetches.
    pub(crate) fn tidy(&self, record: Option<&UpdateRecord>) {
        let named: BTreeSet<&str> = record
            .into_iter()
            .flat_map(UpdateRecord::programs)
            .map(|program| program.file.as_str())
            .collect();
        let Ok(entries) = fs::read_dir(&self.programs) else {
            // There never was an update.
            return;
        };
        for entry in entries.flatten() {
            let is_named = entry
                .file_name()
                .to_str()
                .is_some_and(|name| named.contains(name));
            if !is_named && let Err(error) = fs::remove_file(entry.path()) {
                warn!(file = %entry.path().display(), %error, "an old program is not removed");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_makes_no_state_directory() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (state, empty, file) = (path("state"), path("empty"), path("file"));
        DirBuilder::new().mode(0o700).create(&empty).unwrap();
        fs::write(&file, "").unwrap();
        drop(SealedDir::open(&state).unwrap());
        for (path, problem) in [
            (path("typo"), Some("it does not exist; name the directory")),
            (empty.clone(), Some("no agent that replaces its program")),
            (file, Some("")),
            (state, None),
        ] {
            let opened = UpdateFiles::existing(&path);
            let found = opened.err().map(|error| format!("{error:#}"));
            let is_expected = match (&found, problem) {
                (Some(found), Some(problem)) => found.contains(problem),
                (found, problem) => found.is_none() && problem.is_none(),
            };
            assert!(is_expected, "{}: {found:?}", path.display());
        }
        assert!(!path("typo").exists(), "it was made");
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "a key was made");
    }
}
