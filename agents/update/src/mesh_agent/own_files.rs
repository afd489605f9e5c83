//! The agent's own files that decide about its program: its configuration, and the keys of releases.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::OFlag;
use proto_release::{ReleaseKey, SignedHead};
use serde::Deserialize;
use tracing::{error, warn};

use super::program::MeshProgram;
use super::section::SelfUpdateSection;
use super::stamp::FileStamp;
use crate::MESH_LEVEL;
use crate::key_file::read_release_keys;
use crate::program::TrialProgram;
use crate::settings::UpdateSettings;
use crate::start_trust::StartTrust;

/// Largest configuration file, bytes. A larger one is not read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The part of a configuration file that counts here.
#[derive(Deserialize)]
struct ConfigRoot {
    #[serde(default)]
    self_update: Option<SelfUpdateSection>,
}

/// The agent's configuration and the keys that it names, read again when they change.
#[derive(Debug)]
pub(super) struct OwnFiles {
    program: &'static MeshProgram,
    config: PathBuf,
    /// The file with keys. `None` if the configuration names none.
    keys: Option<PathBuf>,
    /// Both files as they were before they were read last: what changes during the reading is read again.
    /// `None` before the first time.
    seen: Option<[FileStamp; 2]>,
    /// Text of the configuration. `None` if it is not valid.
    text: Option<Arc<str>>,
    /// The settings. `None` if the configuration is not valid.
    settings: Option<UpdateSettings>,
}

impl OwnFiles {
    /// The files of a program. Nothing is read yet.
    pub(super) fn new(program: &'static MeshProgram, config: &Path) -> Self {
        Self {
            program,
            config: config.to_owned(),
            keys: None,
            seen: None,
            text: None,
            settings: None,
        }
    }

    /// Text of the configuration. `None` if it is not valid.
    pub(super) fn text(&self) -> Option<&Arc<str>> {
        self.text.as_ref()
    }

    /// The settings. `None` if the configuration is not valid.
    pub(super) fn settings(&self) -> Option<&UpdateSettings> {
        self.settings.as_ref()
    }

    /// Reads the files if one of them changed.
    pub(super) fn refresh(&mut self) {
        if self.seen == Some(self.stamps()) {
            return;
        }
        let config = FileStamp::of(&self.config);
        let mut keys = FileStamp::default();
        match self.read(&mut keys) {
            Ok((text, settings)) => {
                self.text = Some(text);
                self.settings = Some(settings);
            }
            Err(problem) => {
                let file = self.config.display();
                warn!(%file, problem, "the configuration decides about no program");
                self.text = None;
                self.settings = None;
            }
        }
        self.seen = Some([config, keys]);
    }

    fn stamps(&self) -> [FileStamp; 2] {
        let keys = self.keys.as_deref().map(FileStamp::of);
        [FileStamp::of(&self.config), keys.unwrap_or_default()]
    }

    /// Reads both files. `stamp` gets that of the file with keys from before it is read: only the
    /// configuration says which one that is.
    fn read(&mut self, stamp: &mut FileStamp) -> Result<(Arc<str>, UpdateSettings), String> {
        self.keys = None;
        let text = read_text(&self.config).map_err(|error| format!("cannot read it: {error}"))?;
        (self.program.check)(&text)?;
        let root: ConfigRoot = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
        let settings = match root.self_update {
            None => UpdateSettings::default(),
            Some(section) => {
                let file = beside(&self.config, &section.keys);
                *stamp = FileStamp::of(&file);
                let keys = read_release_keys(&file, 0).unwrap_or_else(|problem| {
                    let file = file.display();
                    error!(%file, problem, "the keys of releases there are not used");
                    Vec::new()
                });
                self.keys = Some(file);
                let authorities = section.ca_certificate;
                UpdateSettings {
                    is_enabled: true,
                    keys,
                    ca_certificate: authorities.map(|path| beside(&self.config, &path)),
                    local_prefixes: section.local_prefixes,
                    spread_seconds: section.spread_seconds,
                    may_be_file: false,
                    mesh_level: Some(MESH_LEVEL),
                }
            }
        };
        Ok((text.into(), settings))
    }
}

/// The configuration of an agent, and the keys that it names, as they are at its start.
pub(super) struct FileTrust<'a>(pub(super) &'a Path);

impl StartTrust for FileTrust<'_> {
    fn trial_problem(&self, trial: &TrialProgram) -> Option<String> {
        let keys = match trusted_keys_file(self.0) {
            Ok(Some(keys)) => keys,
            Ok(None) => {
                return Some(
                    "self_update: the configuration has no such section any more".to_owned(),
                );
            }
            Err(problem) => return Some(format!("configuration: {problem}")),
        };
        let keys = match read_release_keys(&keys, 0) {
            Ok(keys) => keys,
            Err(problem) => return Some(format!("keys: {}: {problem}", keys.display())),
        };
        let Some(head) = trial.signed_head() else {
            return Some("format: the record has no signed head of the release".to_owned());
        };
        key_problem(&head, &keys)
    }

    fn confirmed_problem(&self, head: &[u8]) -> Option<String> {
        let file = trusted_keys_file(self.0).ok()??;
        let keys = read_release_keys(&file, 0).ok()?;
        key_problem(head, &keys)
    }
}

/// The reason why none of the keys stands for a signed head. `None` if one does.
fn key_problem(head: &[u8], keys: &[ReleaseKey]) -> Option<String> {
    let verified = SignedHead::decode(head).and_then(|head| head.verify(keys));
    verified.err().map(|problem| problem.to_string())
}

/// The file with keys that a configuration names. `None` if it names none.
fn trusted_keys_file(config: &Path) -> Result<Option<PathBuf>, String> {
    let text = read_text(config).map_err(|error| format!("it cannot be read: {error}"))?;
    // Without the parser's excerpt, which may repeat a password.
    let root: toml::Table =
        toml::from_str(&text).map_err(|error| format!("it is no TOML: {}", error.message()))?;
    let section = root.get("self_update").and_then(|value| value.as_table());
    let keys = section.and_then(|section| section.get("keys")?.as_str());
    Ok(keys.map(|keys| beside(config, Path::new(keys))))
}

/// A path, relative to the directory of the configuration.
fn beside(config: &Path, path: &Path) -> PathBuf {
    let folder = config.parent().unwrap_or_else(|| Path::new("."));
    folder.join(path)
}

/// Text of a file that is not larger than it may be.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    // To open a pipe would wait for its writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if u64::try_from(text.len()).is_ok_and(|len| len > FILE_BYTES_MAX) {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {FILE_BYTES_MAX} bytes"),
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proto_release::{FileDigest, PayloadEncoding, ReleaseManifest, ReleaseSigner};

    use super::*;
    use crate::program::StoredProgram;

    const PROGRAM: MeshProgram = MeshProgram {
        name: "metalmesh-test",
        argument: c"metalmesh-test",
        unhealthy: "it did not work",
        check: |text| match text.contains("wrong") {
            true => Err("a word is wrong".to_owned()),
            false => Ok(()),
        },
    };
    const SECTION: &str = "interval_s = 5\n[self_update]\nkeys = \"release-keys\"\n";

    fn trial(signer: &ReleaseSigner) -> TrialProgram {
        let program = FileDigest::of(&b"program"[..]).unwrap();
        let manifest = ReleaseManifest {
            name: "metalmesh-test".to_owned(),
            version: "1.1.0".parse().unwrap(),
            architecture: "x86_64".to_owned(),
            mesh_level: 1,
            not_before_s: 1,
            // It was valid when it was installed.
            expires_s: 2,
            allow_downgrade_from: Vec::new(),
            encoding: PayloadEncoding::Plain,
            payload: program.clone(),
            program: program.clone(),
        };
        let head = signer.sign(&manifest).unwrap().encode();
        TrialProgram::new(StoredProgram::new(manifest.version, program), &head)
    }

    #[test]
    fn a_release_starts_while_its_key_is_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (signer, other) = (
            ReleaseSigner::generate().unwrap(),
            ReleaseSigner::generate().unwrap(),
        );
        let (own, foreign) = (signer.public().to_string(), other.public().to_string());
        let trial = trial(&signer);
        let head = trial.signed_head().unwrap();
        // Of a release on trial, and of one that has confirmed itself.
        for (config, keys, of_trial, of_confirmed) in [
            (SECTION, own.as_str(), "", ""),
            (SECTION, foreign.as_str(), "key: ", "key: "),
            (SECTION, "", "key: ", "key: "),
            // Nothing says that the key was taken back.
            (SECTION, "no key", "keys: ", ""),
            ("interval_s = 5\n", own.as_str(), "self_update: ", ""),
            ("interval_s =", own.as_str(), "configuration: ", ""),
        ] {
            fs::write(path("agent.toml"), config).unwrap();
            fs::write(path("release-keys"), keys).unwrap();
            let file = path("agent.toml");
            let trust = FileTrust(&file);
            for (found, expected) in [
                (trust.trial_problem(&trial), of_trial),
                (trust.confirmed_problem(&head), of_confirmed),
            ] {
                let problem = found.unwrap_or_default();
                let is_expected =
                    problem.starts_with(expected) && problem.is_empty() == expected.is_empty();
                assert!(is_expected, "{config:?} {keys}: {problem}");
            }
        }
    }

    #[test]
    fn settings_follow_both_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let key = ReleaseSigner::generate().unwrap().public();
        let mut files = OwnFiles::new(&PROGRAM, &path("agent.toml"));
        let mut possible = |config: &str, keys: &str| {
            fs::write(path("agent.toml"), config).unwrap();
            fs::write(path("release-keys"), keys).unwrap();
            files.refresh();
            files.settings().map(UpdateSettings::is_possible)
        };
        assert_eq!(possible("interval_s = 5\n", ""), Some(false));
        assert_eq!(possible(SECTION, ""), Some(false), "without a key");
        assert_eq!(possible(SECTION, &key.to_string()), Some(true));
        assert_eq!(possible(SECTION, "# removed\n"), Some(false));
        assert_eq!(possible("# wrong\n", &key.to_string()), None);
    }
}
