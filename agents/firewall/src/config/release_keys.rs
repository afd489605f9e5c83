//! Keys of releases in a file of their own, beside the configuration: whoever builds the system adds
//! them there, where the source of the configuration does not write.

use std::path::{Path, PathBuf};

use agents_update::read_release_keys;
use proto_release::ReleaseKey;
use tracing::error;

use super::Config;

/// Name of the file.
const FILE_NAME: &str = "release-keys";

/// The file with keys that belongs to a configuration.
pub(crate) fn release_keys_file(config: &Path) -> PathBuf {
    config.with_file_name(FILE_NAME)
}

/// Adds the keys of the file beside a configuration to those in the configuration.
pub(crate) fn add_release_keys(config: &mut Config, path: &Path) {
    add_keys_beside(&mut config.controllers.firewall.self_update.keys, path);
}

/// Adds the keys of the file beside a configuration to these. A file that is wrong adds none, and is
/// logged: rules do not wait for it.
pub(crate) fn add_keys_beside(own: &mut Vec<ReleaseKey>, path: &Path) {
    let file = release_keys_file(path);
    let others = own.len();
    match read_release_keys(&file, others) {
        Ok(keys) => {
            for key in keys {
                if !own.contains(&key) {
                    own.push(key);
                }
            }
        }
        Err(problem) => error!(
            file = %file.display(),
            error = problem,
            "the keys of releases there are not used"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use proto_release::ReleaseSigner;

    use super::*;

    const CONFIG: &str = "sources: {metal: {}}\ncontrollers:\n  firewall:\n    source: metal\n    \
                          selfUpdate: {enabled: true}\n";

    /// The keys that a configuration has with a file of this text and mode beside it.
    fn keys(text: &str, mode: u32) -> Vec<ReleaseKey> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        let file = release_keys_file(&path);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let mut config = Config::parse(CONFIG).unwrap();
        add_release_keys(&mut config, &path);
        config.controllers.firewall.self_update.keys
    }

    fn key() -> ReleaseKey {
        ReleaseSigner::generate().unwrap().public()
    }

    #[test]
    fn keys_beside_the_configuration_are_trusted() {
        let (one, other) = (key(), key());
        let text = format!("# of the image\n{one}\n\n  {other}  \n{one}\n");
        assert_eq!(keys(&text, 0o644), [one, other]);
        assert_eq!(keys("", 0o600), []);
    }

    #[test]
    fn a_file_that_is_wrong_adds_no_key() {
        let one = key();
        let many: String = (0..17).map(|_| format!("{one}\n")).collect();
        let long = format!("{one}\n#{}", "x".repeat(64 << 10));
        for (text, mode) in [
            (format!("{one}\nssh-ed25519 AAAA\n"), 0o644),
            (format!("{one}\n"), 0o666),
            (many, 0o644),
            (long, 0o644),
        ] {
            assert_eq!(keys(&text, mode), [], "{text:.40}");
        }
    }

    #[test]
    fn no_file_is_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::parse(CONFIG).unwrap();
        add_release_keys(&mut config, &folder.path().join("config.yaml"));
        assert_eq!(config.controllers.firewall.self_update.keys, []);
    }
}
