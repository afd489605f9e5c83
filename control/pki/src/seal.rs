//! Seals private keys before they go into the replicated state: AES-256-GCM with a key that
//! only the node's disk has.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use crate::PkiError;

const KEY_LEN: usize = 32;

/// The node's sealing key.
pub struct SealingKey {
    key: LessSafeKey,
}

impl SealingKey {
    /// Reads the file (mode 0600), or makes it with a fresh key.
    pub fn load_or_create(path: &Path) -> Result<Self, PkiError> {
        let file = |source| PkiError::SealFile {
            path: path.to_owned(),
            source,
        };
        match fs::read(path) {
            Ok(bytes) => {
                let mode = fs::metadata(path).map_err(file)?.permissions().mode() & 0o777;
                if mode & 0o077 != 0 {
                    let text = format!("may be read by others (mode {mode:o})");
                    return Err(file(io::Error::other(text)));
                }
                Self::from_bytes(&bytes)
                    .ok_or_else(|| file(io::Error::other("does not hold 32 bytes")))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let mut bytes = [0u8; KEY_LEN];
                random(&mut bytes)?;
                create(path, &bytes).map_err(file)?;
                Self::from_bytes(&bytes).ok_or(PkiError::Randomness)
            }
            Err(e) => Err(file(e)),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let key = UnboundKey::new(&AES_256_GCM, bytes).ok()?;
        Some(Self {
            key: LessSafeKey::new(key),
        })
    }

    /// Seals `secret`; it opens under the same `name` only. Nonce, then ciphertext and tag.
    pub fn seal(&self, name: &str, secret: &[u8]) -> Result<Vec<u8>, PkiError> {
        let mut nonce = [0u8; NONCE_LEN];
        random(&mut nonce)?;
        let mut sealed = secret.to_vec();
        let aad = Aad::from(name.as_bytes());
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .map_err(|_| PkiError::WrongSeal)?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Opens what [`SealingKey::seal`] made under the same name.
    pub fn open(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, PkiError> {
        let (nonce, rest) = sealed
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(PkiError::WrongSeal)?;
        let mut rest = rest.to_vec();
        let aad = Aad::from(name.as_bytes());
        let open = self
            .key
            .open_in_place(Nonce::assume_unique_for_key(*nonce), aad, &mut rest)
            .map_err(|_| PkiError::WrongSeal)?;
        Ok(open.to_vec())
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(<redacted>)")
    }
}

/// Fills with bytes from the system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), PkiError> {
    SystemRandom::new()
        .fill(bytes)
        .map_err(|_| PkiError::Randomness)
}

/// Whole or not at all, mode 0600 from the start, never over an existing file.
fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|e| e.error)?;
    fs::File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seals_for_one_name_and_one_key() {
        let dir = tempfile::tempdir().unwrap();
        let key = SealingKey::load_or_create(&dir.path().join("seal.key")).unwrap();
        let sealed = key.seal("root", b"secret").unwrap();
        assert_eq!(key.open("root", &sealed).unwrap(), b"secret");
        assert_ne!(sealed, key.seal("root", b"secret").unwrap());
        assert!(key.open("agents", &sealed).is_err());
        for i in 0..sealed.len() {
            let mut bad = sealed.clone();
            bad[i] ^= 1;
            assert!(key.open("root", &bad).is_err());
        }
        assert!(key.open("root", &sealed[..5]).is_err());
        let again = SealingKey::load_or_create(&dir.path().join("seal.key")).unwrap();
        assert_eq!(again.open("root", &sealed).unwrap(), b"secret");
        let other = SealingKey::load_or_create(&dir.path().join("other.key")).unwrap();
        assert!(other.open("root", &sealed).is_err());
    }

    #[test]
    fn refuses_a_file_that_others_may_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seal.key");
        SealingKey::load_or_create(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(SealingKey::load_or_create(&path).is_err());
    }
}
