//! Seals of the agent's state files: a keyed digest (HMAC-SHA-256) with a key of the agent's own.
//!
//! The agents that follow control keep its signed messages, and check control's signature. Objects
//! of a static file, or of a cluster, are signed by nobody, so that the agent seals what it has
//! admitted itself. A seal shows that a file is what this agent wrote under that name: a file that
//! was damaged, edited, copied from another firewall or renamed is refused. It does not help against
//! someone who can read the key, such as root on the running host, and an older file of the same
//! agent has a valid seal.

use std::path::Path;

use agents_kit::{KitError, StateDir};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

/// File of the key.
const KEY_FILE: &str = "state.key";
/// Length of the key, bytes.
const KEY_LEN: usize = 32;
/// First bytes of a sealed file; the last one is its version.
const MAGIC: &[u8; 8] = b"mmfseal\x01";
/// Length of a digest, bytes.
const TAG_LEN: usize = 32;

/// A reason why a sealed file is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The file has no seal.
    #[error("the file has no seal of this agent; it is replaced when the agent writes it again")]
    Missing,
    /// The seal is not that of the content.
    #[error(
        "the file is not what this agent wrote: it was changed, or the agent's key was; it is \
         replaced when the agent writes it again"
    )]
    Wrong,
}

/// The agent's key.
#[derive(Clone)]
pub struct StateSeal {
    key: hmac::Key,
}

impl std::fmt::Debug for StateSeal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("StateSeal")
    }
}

impl StateSeal {
    /// Reads the key; makes one if there is none. Files that were sealed with another key are refused
    /// from then on.
    ///
    /// # Errors
    /// The key cannot be read or written, or others may have written it.
    pub fn open(dir: &StateDir) -> Result<Self, KitError> {
        let stored = dir.read_own(KEY_FILE)?;
        let bytes = match stored.filter(|bytes| bytes.len() == KEY_LEN) {
            Some(bytes) => bytes,
            None => {
                let bytes = new_key(dir)?;
                dir.write(KEY_FILE, &bytes)?;
                bytes
            }
        };
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &bytes),
        })
    }

    /// `true` if there is no key in a directory: no agent has sealed anything there.
    pub(crate) fn is_missing(path: &Path) -> bool {
        matches!(path.join(KEY_FILE).try_exists(), Ok(false))
    }

    /// The sealed content of a file.
    #[must_use]
    pub fn seal(&self, name: &str, body: &[u8]) -> Vec<u8> {
        let tag = hmac::sign(&self.key, &sealed_bytes(name, body));
        [MAGIC, tag.as_ref(), body].concat()
    }

    /// The content of a sealed file.
    ///
    /// # Errors
    /// The seal is missing or wrong.
    pub fn open_sealed<'a>(&self, name: &str, bytes: &'a [u8]) -> Result<&'a [u8], SealError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(SealError::Missing)?;
        let (tag, body) = rest.split_at_checked(TAG_LEN).ok_or(SealError::Missing)?;
        let checked = hmac::verify(&self.key, &sealed_bytes(name, body), tag);
        checked.map(|()| body).map_err(|_| SealError::Wrong)
    }
}

/// The name is sealed too: one state file must not pass for another.
fn sealed_bytes(name: &str, body: &[u8]) -> Vec<u8> {
    [name.as_bytes(), &[0], body].concat()
}

fn new_key(dir: &StateDir) -> Result<Vec<u8>, KitError> {
    let mut bytes = vec![0; KEY_LEN];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| KitError::File {
            path: dir.path().join(KEY_FILE),
            source: std::io::Error::other("the system gives no random numbers"),
        })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use agents_kit::StateDir;

    use super::{SealError, StateSeal};

    #[test]
    fn only_what_the_agent_wrote_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let dir = StateDir::open(&folder.path().join("a")).unwrap();
        let seal = StateSeal::open(&dir).unwrap();
        let bytes = seal.seal("last-good", b"rules");
        let again = StateSeal::open(&dir).unwrap();
        assert_eq!(again.open_sealed("last-good", &bytes), Ok(&b"rules"[..]));
        assert_eq!(again.open_sealed("names", &bytes), Err(SealError::Wrong));
        assert_eq!(
            again.open_sealed("last-good", b"rules"),
            Err(SealError::Missing)
        );
        for at in 8..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(
                again.open_sealed("last-good", &other),
                Err(SealError::Wrong)
            );
            assert!(again.open_sealed("last-good", &bytes[..at]).is_err());
        }
        let other = StateDir::open(&folder.path().join("b")).unwrap();
        let other = StateSeal::open(&other).unwrap();
        assert_eq!(
            other.open_sealed("last-good", &bytes),
            Err(SealError::Wrong)
        );
    }
}
