//! Seals private keys before they go into the replicated state: AES-256-GCM.
//!
//! Two keys, so that no two nodes have the same file: the *data key* seals secrets in the state and
//! is the same on every node; each node keeps it sealed by a *node key* of its own. A node that
//! joins gets the data key wrapped to an X25519 key that it made for that join.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::PkiError;

const KEY_LEN: usize = 32;
/// Name under which the key of a node seals the data key.
const DATA_KEY: &str = "data-key";
const WRAP_CONTEXT: &[u8] = b"metalmesh data key 1";

/// A key that seals: a node's own, or the cluster's data key.
#[derive(Clone)]
pub struct SealingKey {
    key: LessSafeKey,
    bytes: [u8; KEY_LEN],
}

/// The data key on its way to a node that joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedKey {
    /// The X25519 public key that it was wrapped with.
    pub public: Vec<u8>,
    /// The sealed data key.
    pub sealed: Vec<u8>,
}

/// The private half of the key that a data key is wrapped to; made for one join.
pub struct Unwrapper {
    private: EphemeralPrivateKey,
    public: Vec<u8>,
}

impl fmt::Debug for Unwrapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unwrapper(<redacted>)")
    }
}

impl Unwrapper {
    /// A fresh key.
    pub fn generate() -> Result<Self, PkiError> {
        let random = SystemRandom::new();
        let private =
            EphemeralPrivateKey::generate(&X25519, &random).map_err(|_| PkiError::Randomness)?;
        let public = private.compute_public_key();
        let public = public.map_err(|_| PkiError::Randomness)?.as_ref().to_vec();
        Ok(Self { private, public })
    }

    /// The public key for the join request.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// The data key that was wrapped to this key.
    pub fn unwrap(self, wrapped: &WrappedKey) -> Result<SealingKey, PkiError> {
        let key = shared(
            self.private,
            &wrapped.public,
            [&self.public, &wrapped.public],
        )?;
        let bytes = key.open(DATA_KEY, &wrapped.sealed)?;
        SealingKey::from_bytes(&bytes).ok_or(PkiError::WrongSeal)
    }
}

/// The key that both sides of a wrapping derive.
fn shared(
    private: EphemeralPrivateKey,
    other: &[u8],
    publics: [&[u8]; 2],
) -> Result<SealingKey, PkiError> {
    let other = UnparsedPublicKey::new(&X25519, other);
    let derived = agree_ephemeral(private, &other, |secret| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let said = [WRAP_CONTEXT, publics[0], publics[1]].concat();
        SealingKey::from_bytes(hmac::sign(&key, &said).as_ref())
    });
    derived.ok().flatten().ok_or(PkiError::WrongSeal)
}

impl SealingKey {
    /// Reads the file (mode 0600). Without the file, a new key is made and stored if `may_create`.
    ///
    /// # Errors
    /// When the file cannot be read or written, others may read it, it is not a key, or it is missing
    /// and must not be made: what another key sealed cannot be opened with a new one.
    pub fn load(path: &Path, may_create: bool) -> Result<Self, PkiError> {
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
            Err(e) if e.kind() == io::ErrorKind::NotFound && may_create => {
                let mut bytes = [0u8; KEY_LEN];
                random(&mut bytes)?;
                create(path, &bytes).map_err(file)?;
                Self::from_bytes(&bytes).ok_or(PkiError::Randomness)
            }
            Err(e) => Err(file(e)),
        }
    }

    /// The data key as this node keeps it in `path`, sealed by this key. Without the file a new
    /// data key is made if `may_create`.
    ///
    /// # Errors
    /// When the file cannot be read, written or unsealed, and when it is missing and must not be
    /// made: a state whose private keys another data key sealed cannot be opened with a new one.
    pub fn data_key(&self, path: &Path, may_create: bool) -> Result<Self, PkiError> {
        let file = |source| PkiError::SealFile {
            path: path.to_owned(),
            source,
        };
        match fs::read(path) {
            Ok(sealed) => {
                let bytes = self.open(DATA_KEY, &sealed)?;
                Self::from_bytes(&bytes).ok_or(PkiError::WrongSeal)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound && may_create => {
                let mut bytes = self.bytes;
                random(&mut bytes)?;
                let data = Self::from_bytes(&bytes).ok_or(PkiError::Randomness)?;
                self.keep_data_key(path, &data)?;
                Ok(data)
            }
            Err(e) => Err(file(e)),
        }
    }

    /// Writes `data`, sealed by this key, to the new file `path`.
    pub fn keep_data_key(&self, path: &Path, data: &Self) -> Result<(), PkiError> {
        let sealed = self.seal(DATA_KEY, &data.bytes)?;
        create(path, &sealed).map_err(|source| PkiError::SealFile {
            path: path.to_owned(),
            source,
        })
    }

    /// This key, wrapped to the [`Unwrapper`] with this public key.
    pub fn wrap(&self, to: &[u8]) -> Result<WrappedKey, PkiError> {
        let ours = Unwrapper::generate()?;
        let public = ours.public.clone();
        let key = shared(ours.private, to, [to, &public])?;
        let sealed = key.seal(DATA_KEY, &self.bytes)?;
        Ok(WrappedKey { public, sealed })
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let key = UnboundKey::new(&AES_256_GCM, bytes).ok()?;
        Some(Self {
            key: LessSafeKey::new(key),
            bytes: bytes.try_into().ok()?,
        })
    }

    /// The key in a backup; `None` if the bytes are not a key.
    pub fn from_secret(bytes: &[u8]) -> Option<Self> {
        Self::from_bytes(bytes)
    }

    /// The key itself, for a backup that is encrypted, and for nothing else.
    pub fn secret(&self) -> [u8; KEY_LEN] {
        self.bytes
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

/// Fills `bytes` from the random source of the operating system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), PkiError> {
    SystemRandom::new()
        .fill(bytes)
        .map_err(|_| PkiError::Randomness)
}

/// Writes a new file completely or not at all, with mode 0600 from the start. An existing file is
/// never overwritten: it may be the only copy of a key.
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
        let key = SealingKey::load(&dir.path().join("seal.key"), true).unwrap();
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
        let again = SealingKey::load(&dir.path().join("seal.key"), true).unwrap();
        assert_eq!(again.open("root", &sealed).unwrap(), b"secret");
        let other = SealingKey::load(&dir.path().join("other.key"), true).unwrap();
        assert!(other.open("root", &sealed).is_err());
    }

    #[test]
    fn each_node_keeps_the_data_key_under_a_key_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let first = SealingKey::load(&path("first.key"), true).unwrap();
        assert!(first.data_key(&path("first.data"), false).is_err());
        let data = first.data_key(&path("first.data"), true).unwrap();
        assert_ne!(data.bytes, first.bytes);
        let sealed = data.seal("root", b"secret").unwrap();
        let joiner = Unwrapper::generate().unwrap();
        let stranger = Unwrapper::generate().unwrap();
        let wrapped = data.wrap(joiner.public()).unwrap();
        assert!(stranger.unwrap(&wrapped).is_err());
        let got = joiner.unwrap(&wrapped).unwrap();
        let second = SealingKey::load(&path("second.key"), true).unwrap();
        second.keep_data_key(&path("second.data"), &got).unwrap();
        let kept = second.data_key(&path("second.data"), false).unwrap();
        assert_eq!(kept.open("root", &sealed).unwrap(), b"secret");
        assert!(first.data_key(&path("second.data"), false).is_err());
    }

    #[test]
    fn refuses_a_file_that_others_may_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seal.key");
        SealingKey::load(&path, true).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(SealingKey::load(&path, true).is_err());
    }
}
