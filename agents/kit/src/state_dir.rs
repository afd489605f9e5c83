//! The directory with the agent's key, certificate and last-good state.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proto_identity::{CertificateDer, Credential, Key};
use serde::{Deserialize, Serialize};

use crate::error::KitError;

/// The agent's private key.
const KEY_FILE: &str = "key.pem";
/// The key that will replace the agent's. It is written before control sees its public half.
const NEXT_KEY_FILE: &str = "next-key.pem";
/// Certificate chain, roots, addresses of control and ticket.
const SESSION_FILE: &str = "session.json";
/// Largest file that is read, bytes. A larger one counts as damaged.
const FILE_LEN_MAX: u64 = 32 * 1024 * 1024;

/// A directory of mode 0700 whose files have mode 0600 and are replaced atomically.
#[derive(Clone, Debug)]
pub struct StateDir {
    path: PathBuf,
}

/// The result of joining, in one file so that it changes atomically.
#[derive(Serialize, Deserialize)]
struct SessionFile {
    chain: Vec<String>,
    roots: Vec<String>,
    control: Vec<String>,
    #[serde(default)]
    ticket_id: String,
}

/// The stored result of joining.
#[derive(Clone, Debug)]
pub struct StoredSession {
    /// Key, certificate, roots.
    pub credential: Credential,
    /// Addresses of control at the time.
    pub control: Vec<String>,
    /// Id of the redeemed ticket. Empty if there was none.
    pub ticket_id: String,
}

impl StateDir {
    /// Opens the directory and creates it if it is missing. Refuses one that others may enter, or
    /// that is another user's.
    pub fn open(path: &Path) -> Result<Self, KitError> {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        made.map_err(|source| file_error(path, source))?;
        // The mode above applies to new directories only; an existing one keeps its own.
        refuse_exposed(path)?;
        // Its owner could replace the roots that the agent checks control's signatures with.
        refuse_foreign(path, &fs::metadata(path).map_err(|e| file_error(path, e))?)?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The agent's key, generated at the first call.
    pub fn key(&self) -> Result<Key, KitError> {
        self.key_in(KEY_FILE)
    }

    /// The key that will replace the agent's, generated at the first call.
    pub fn next_key(&self) -> Result<Key, KitError> {
        self.key_in(NEXT_KEY_FILE)
    }

    /// The next key of an unfinished key change. `None` if there is none.
    pub fn pending_key(&self) -> Result<Option<Key>, KitError> {
        self.read_key(NEXT_KEY_FILE)
    }

    /// Removes the next key.
    pub fn drop_next_key(&self) -> Result<(), KitError> {
        self.remove(NEXT_KEY_FILE)
    }

    fn key_in(&self, file: &str) -> Result<Key, KitError> {
        if let Some(key) = self.read_key(file)? {
            return Ok(key);
        }
        let key = Key::generate()?;
        self.write(file, key.to_pem().as_bytes())?;
        Ok(key)
    }

    fn read_key(&self, file: &str) -> Result<Option<Key>, KitError> {
        let path = self.path.join(file);
        let Some(pem) = self.read(file)? else {
            return Ok(None);
        };
        refuse_exposed(&path)?;
        let pem = String::from_utf8(pem).map_err(|_| damaged(&path, "not text"))?;
        let key = Key::from_pem(&pem).map_err(|_| damaged(&path, "not a private key"))?;
        Ok(Some(key))
    }

    /// The stored session. `None` before the first join. Finishes a key change in whose middle the
    /// agent stopped.
    pub fn session(&self) -> Result<Option<StoredSession>, KitError> {
        let Some(session) = self.read_session()? else {
            return Ok(None);
        };
        let pem = session.credential.key.to_pem();
        let next = self.pending_key()?;
        if next.is_some_and(|next| next.to_pem() == pem) {
            self.write(KEY_FILE, pem.as_bytes())?;
            self.drop_next_key()?;
        }
        Ok(Some(session))
    }

    /// The stored session, read without a write: for a process that shares the directory with the
    /// agent that renews the certificate. `None` before the first join.
    ///
    /// # Errors
    /// Also between two writes of that agent. The next read succeeds then.
    pub fn read_session(&self) -> Result<Option<StoredSession>, KitError> {
        let path = self.path.join(SESSION_FILE);
        let Some(bytes) = self.read(SESSION_FILE)? else {
            return Ok(None);
        };
        let file: SessionFile =
            serde_json::from_slice(&bytes).map_err(|e| damaged(&path, &e.to_string()))?;
        let chain = decode(&file.chain).ok_or_else(|| damaged(&path, "chain"))?;
        let roots = decode(&file.roots).ok_or_else(|| damaged(&path, "roots"))?;
        Ok(Some(StoredSession {
            credential: self.credential_of(chain, roots)?,
            control: file.control,
            ticket_id: file.ticket_id,
        }))
    }

    /// The credential of a chain: with the agent's key, or with the next one if the certificate is
    /// for that. Then the agent stopped in the middle of a key change.
    fn credential_of(
        &self,
        chain: Vec<CertificateDer<'static>>,
        roots: Vec<CertificateDer<'static>>,
    ) -> Result<Credential, KitError> {
        let credential = |key| Credential {
            key,
            chain: chain.clone(),
            roots: roots.clone(),
        };
        let missing = || damaged(&self.path.join(KEY_FILE), "missing");
        let own = self.read_key(KEY_FILE)?.ok_or_else(missing)?;
        let own = credential(own);
        // A certificate of another key is refused here, with a reason. In a handshake it would look
        // like a refusal by control.
        let Err(error) = own.identity() else {
            return Ok(own);
        };
        let next = self.pending_key()?.map(credential);
        next.filter(|next| next.identity().is_ok())
            .ok_or(KitError::Identity(error))
    }

    /// Stores key and certificate, for an agent or for the system that hammer installs.
    pub fn store(&self, session: &StoredSession) -> Result<(), KitError> {
        let credential = &session.credential;
        let file = SessionFile {
            chain: encode(&credential.chain),
            roots: encode(&credential.roots),
            control: session.control.clone(),
            ticket_id: session.ticket_id.clone(),
        };
        let json = serde_json::to_vec_pretty(&file)
            .map_err(|e| damaged(&self.path.join(SESSION_FILE), &e.to_string()))?;
        let pem = credential.key.to_pem();
        if self.read(NEXT_KEY_FILE)?.as_deref() == Some(pem.as_bytes()) {
            // In this order: after a crash between any two of these writes one of the two key files
            // fits the certificate in the session file, and `key_of` finds it.
            self.write(SESSION_FILE, &json)?;
            self.write(KEY_FILE, pem.as_bytes())?;
            return self.drop_next_key();
        }
        // The key before the session: a crash in between leaves a directory that has not joined,
        // while a session without its key could not be opened any more.
        if self.read(KEY_FILE)?.as_deref() != Some(pem.as_bytes()) {
            self.write(KEY_FILE, pem.as_bytes())?;
        }
        self.write(SESSION_FILE, &json)
    }

    /// A file's bytes. `None` if it does not exist.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, KitError> {
        let path = self.path.join(name);
        match fs::metadata(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(file_error(&path, e)),
            Ok(meta) if meta.len() > FILE_LEN_MAX => return Err(damaged(&path, "too long")),
            Ok(_) => {}
        }
        fs::read(&path).map(Some).map_err(|e| file_error(&path, e))
    }

    /// The bytes of a file that only the agent's user, or root, can have written. `None` if it does
    /// not exist.
    ///
    /// # Errors
    /// Also when it is not a regular file, is another user's, or may be written by others.
    pub fn read_own(&self, name: &str) -> Result<Option<Vec<u8>>, KitError> {
        let path = self.path.join(name);
        let meta = match fs::symlink_metadata(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            meta => meta.map_err(|e| file_error(&path, e))?,
        };
        if !meta.is_file() {
            return Err(damaged(&path, "not a regular file"));
        }
        refuse_foreign(&path, &meta)?;
        if meta.permissions().mode() & 0o022 != 0 {
            return Err(damaged(&path, "others may write it; run chmod go-w on it"));
        }
        self.read(name)
    }

    /// Replaces a file atomically. It is on disk when this returns.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), KitError> {
        let path = self.path.join(name);
        let work = || -> io::Result<()> {
            // It has mode 0600 from the start, so that nobody else can read a key that is being
            // written.
            let mut file = tempfile::NamedTempFile::new_in(&self.path)?;
            file.write_all(bytes)?;
            file.as_file()
                .set_permissions(Permissions::from_mode(0o600))?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|e| e.error)?;
            // Without a sync of the directory a power failure may undo the rename after the caller
            // relied on it: control may have certified a key that is lost then.
            File::open(&self.path)?.sync_all()
        };
        work().map_err(|e| file_error(&path, e))
    }

    /// Removes a file. No error if it does not exist.
    pub fn remove(&self, name: &str) -> Result<(), KitError> {
        let path = self.path.join(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(file_error(&path, e)),
            _ => Ok(()),
        }
    }
}

/// SHA-256 of the agent's public key, hex, as `<agent> key` prints it. Generates a missing key.
pub fn key_fingerprint(state_dir: &Path) -> Result<String, KitError> {
    Ok(StateDir::open(state_dir)?.key()?.fingerprint())
}

/// Refuses a file or directory that group or others may read.
pub(crate) fn refuse_exposed(path: &Path) -> Result<(), KitError> {
    let meta = fs::metadata(path).map_err(|e| file_error(path, e))?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(KitError::Exposed {
        path: path.to_owned(),
        mode,
    })
}

/// Refuses a file or directory of another user than the agent's or root.
fn refuse_foreign(path: &Path, meta: &fs::Metadata) -> Result<(), KitError> {
    let (owner, own) = (meta.uid(), nix::unistd::geteuid().as_raw());
    if owner == own || owner == 0 {
        return Ok(());
    }
    Err(KitError::ForeignOwner {
        path: path.to_owned(),
        owner,
        own,
    })
}

pub(crate) fn file_error(path: &Path, source: io::Error) -> KitError {
    KitError::File {
        path: path.to_owned(),
        source,
    }
}

fn damaged(path: &Path, reason: &str) -> KitError {
    KitError::Damaged {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn encode(list: &[CertificateDer<'static>]) -> Vec<String> {
    list.iter().map(|der| STANDARD.encode(der)).collect()
}

fn decode(list: &[String]) -> Option<Vec<CertificateDer<'static>>> {
    list.iter()
        .map(|text| STANDARD.decode(text).ok().map(CertificateDer::from))
        .collect()
}
