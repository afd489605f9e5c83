//! Decides whether a release may be started. Its key, or self-update as a whole, may have been taken back
//! since it was installed.

use std::path::Path;

use agents_update::{RELEASE_KEYS_MAX, StartTrust, TrialProgram, WantedRelease};
use base_runtime::Chain;
use proto_release::{ReleaseKey, SignedHead};
use serde_norway::Value;

use super::RELEASE_FIELDS;
use crate::config::{Config, ConfigError, SourceName, add_keys_beside};

/// The part of a configuration file by which a release on trial is started. The installed program reads
/// it, which may be much older than the file: fields and keys that it does not know do not count.
#[derive(Debug)]
struct TrialTrust {
    is_enabled: bool,
    keys: Vec<ReleaseKey>,
    /// `true` if the file itself names the release.
    is_static: bool,
    /// The release that the file names.
    named: Option<WantedRelease>,
}

/// The configuration file, as it is at the start of the agent.
pub(super) struct FileTrust<'a>(pub(super) &'a Path);

impl StartTrust for FileTrust<'_> {
    fn trial_problem(&self, trial: &TrialProgram) -> Option<String> {
        match TrialTrust::read(self.0) {
            Ok(trust) => trust.problem(trial),
            Err(error) => {
                let error = Chain(&error);
                Some(format!(
                    "configuration: the keys of releases there cannot be read: {error}"
                ))
            }
        }
    }

    fn confirmed_problem(&self, head: &[u8]) -> Option<String> {
        let trust = TrialTrust::read(self.0).ok()?;
        trust.key_problem(head).filter(|_| trust.is_enabled)
    }
}

impl TrialTrust {
    fn read(config: &Path) -> Result<Self, ConfigError> {
        let mut trust = Self::parse(&Config::read(config)?)?;
        add_keys_beside(&mut trust.keys, config);
        Ok(trust)
    }

    fn parse(text: &str) -> Result<Self, ConfigError> {
        let root = Config::decode_any(text)?;
        let controller = ["controllers", "firewall"];
        let part = |field: &str| at(&root, &controller)?.get(field);
        let settings = part("selfUpdate");
        let source = part("source").and_then(Value::as_str);
        let enabled = settings.and_then(|settings| settings.get("enabled"));
        let keys = settings.and_then(|settings| settings.get("keys"));
        let keys = keys.and_then(Value::as_sequence);
        let keys = keys.into_iter().flatten().take(RELEASE_KEYS_MAX);
        let keys = keys.filter_map(|key| key.as_str()?.parse::<ReleaseKey>().ok());
        Ok(Self {
            is_enabled: enabled.and_then(Value::as_bool) == Some(true),
            keys: keys.collect(),
            is_static: source == Some(SourceName::Static.name()),
            named: named(&root),
        })
    }

    fn problem(&self, trial: &TrialProgram) -> Option<String> {
        if !self.is_enabled {
            return Some("selfUpdate: it is not enabled any more; enable it".to_owned());
        }
        // The record of an earlier program has no head.
        let head = trial.signed_head();
        if let Some(problem) = head.and_then(|head| self.key_problem(&head)) {
            return Some(problem);
        }
        let release = trial.release();
        let is_named = |wanted: &WantedRelease| wanted.release().may_be(&release);
        if self.is_static && !self.named.as_ref().is_some_and(is_named) {
            return Some(
                "controllerVersion: the configuration does not name this release any more"
                    .to_owned(),
            );
        }
        None
    }

    /// The reason why none of the keys stands for a signed head. `None` if one does.
    fn key_problem(&self, head: &[u8]) -> Option<String> {
        let verified = SignedHead::decode(head).and_then(|head| head.verify(&self.keys));
        verified.err().map(|problem| problem.to_string())
    }
}

fn at<'a>(root: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let mut path = path.iter();
    path.try_fold(root, |value, field| value.get(field))
}

/// The release that a file names. `None` if it names none, or a field is wrong.
fn named(root: &Value) -> Option<WantedRelease> {
    let spec = at(root, &["sources", "static", "firewall"])?;
    let text = |field: &str| spec.get(field).and_then(Value::as_str);
    let wanted = WantedRelease::parse(
        &RELEASE_FIELDS,
        text("controllerVersion"),
        text("controllerURL"),
        text("controllerDigest"),
    );
    wanted.ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use agents_update::{InstalledProgram, StoredProgram, UpdateRecord};
    use proto_release::{FileDigest, PayloadEncoding, ReleaseManifest, ReleaseSigner};

    use super::*;

    const TEXT: &str = "sources:
  static:
    firewall:
      controllerVersion: 1.1.0
      controllerURL: /release
      fieldOfANewerProgram: [1]
controllers:
  firewall:
    source: static
    selfUpdate:
      enabled: true
      fieldOfANewerProgram: 1
      keys: ['KEY', 'mldsa:AAAA']
";

    /// 1.1.0 on trial.
    fn trial(signer: &ReleaseSigner) -> TrialProgram {
        let program = FileDigest::of(&b"program"[..]).unwrap();
        let manifest = ReleaseManifest {
            name: "metalmesh-firewall".to_owned(),
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
        let mut record = UpdateRecord::new(InstalledProgram {
            version: "1.0.0".parse().unwrap(),
            bytes: 7,
            modified_s: 0,
        });
        record.begin_trial(StoredProgram::new(manifest.version, program), &head);
        record.trial.unwrap()
    }

    #[test]
    fn a_release_on_trial_starts_while_the_configuration_trusts_and_names_it() {
        let signer = ReleaseSigner::generate().unwrap();
        let trial = trial(&signer);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        let missing = FileTrust(&path).trial_problem(&trial).unwrap();
        assert!(missing.starts_with("configuration: "), "{missing}");
        let text = TEXT.replace("KEY", &signer.public().to_string());
        let key = signer.public().to_string();
        let other = format!("1.1.0\n      controllerDigest: sha256:{}", "ab".repeat(32));
        let unnamed = "      controllerVersion: 1.1.0\n";
        for (from, to, expected) in [
            ("", "", None),
            (key.as_str(), "ed25519:AAAA", Some("key: ")),
            ("'mldsa:AAAA']", "'mldsa:AAAA'", Some("configuration: ")),
            ("enabled: true", "enabled: false", Some("selfUpdate: ")),
            ("enabled: true", "enabled: ture", Some("selfUpdate: ")),
            ("selfUpdate:", "selfupdate:", Some("selfUpdate: ")),
            (unnamed, "", Some("controllerVersion: ")),
            ("1.1.0", "1.2.0", Some("controllerVersion: ")),
            ("1.1.0", other.as_str(), Some("controllerVersion: ")),
            // Another source may name it.
            ("source: static", "source: metal", None),
        ] {
            let changed = text.replacen(from, to, 1);
            fs::write(&path, &changed).unwrap();
            let problem = FileTrust(&path).trial_problem(&trial);
            let begin = problem.as_deref().map(|problem| {
                let (rule, _) = problem.split_once(": ").unwrap();
                format!("{rule}: ")
            });
            assert_eq!(begin.as_deref(), expected, "{from} {to}: {problem:?}");
        }
    }

    #[test]
    fn a_release_that_has_confirmed_itself_starts_until_its_key_is_removed() {
        let signer = ReleaseSigner::generate().unwrap();
        let head = trial(&signer).signed_head().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        assert_eq!(FileTrust(&path).confirmed_problem(&head), None, "no file");
        let key = signer.public().to_string();
        let text = TEXT.replace("KEY", &key);
        for (from, to, is_trusted) in [
            ("", "", true),
            (key.as_str(), "ed25519:AAAA", false),
            // Nothing says that the key was taken back.
            ("'mldsa:AAAA']", "'mldsa:AAAA'", true),
            ("enabled: true", "enabled: false", true),
            ("      controllerVersion: 1.1.0\n", "", true),
        ] {
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let problem = FileTrust(&path).confirmed_problem(&head);
            assert_eq!(problem.is_none(), is_trusted, "{from} {to}: {problem:?}");
        }
    }

    #[test]
    fn the_record_of_an_earlier_program_has_no_head() {
        let signer = ReleaseSigner::generate().unwrap();
        let mut trial = trial(&signer);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        fs::write(&path, TEXT).unwrap();
        assert!(FileTrust(&path).trial_problem(&trial).is_some());
        trial.head.clear();
        assert_eq!(FileTrust(&path).trial_problem(&trial), None);
    }
}
