//! Keys of releases in a file of their own, beside the configuration: whoever builds the system adds
//! them there, where the source of the configuration does not write.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use proto_release::ReleaseKey;
use tracing::error;

use super::Config;
use super::self_update::RELEASE_KEYS_MAX;

/// Name of the file.
const FILE_NAME: &str = "release-keys";
/// Longest file, bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Begin of a comment.
const COMMENT: char = '#';
/// Bits of a mode by which others may write.
const OTHERS_WRITE: u32 = 0o022;

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
    match read(&file).and_then(|text| parse(&text, others)) {
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

/// The text of the file. Empty if there is none.
fn read(path: &Path) -> Result<String, String> {
    // To open a pipe would wait for its writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path);
    let file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let meta = file.metadata();
    let meta = meta.map_err(|error| format!("it cannot be read: {error}"))?;
    if !meta.is_file() {
        return Err("it is no regular file; write one".to_owned());
    }
    if meta.permissions().mode() & OTHERS_WRITE != 0 {
        return Err("others than its owner may write it; use chmod 0644".to_owned());
    }
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    Ok(text)
}

/// The keys of a text, one a line. `others` is the number of keys in the configuration.
fn parse(text: &str, others: usize) -> Result<Vec<ReleaseKey>, String> {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(index, line)| (index + 1, line.trim()));
    let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(COMMENT));
    let keys: Result<Vec<ReleaseKey>, String> = keys
        .map(|(number, line)| {
            let key = line.parse::<ReleaseKey>();
            key.map_err(|error| format!("line {number}: {error}"))
        })
        .collect();
    let keys = keys?;
    if keys.len() + others > RELEASE_KEYS_MAX {
        return Err(format!(
            "there are more than {RELEASE_KEYS_MAX} keys with those of selfUpdate.keys; remove \
             those that sign no more"
        ));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

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
