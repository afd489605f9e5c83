//! The last desired state on disk, so that an agent can restart without control.
//!
//! The file has the message as received, with control's signature. A file that was changed, is for
//! another agent, is older than a state seen before, or that others could have written is refused;
//! control sends the state again.

use proto_identity::{Credential, SpiffeId};
use proto_mesh::sealed::{self, SealError, Sealed};
use tokio::sync::watch;

use crate::error::KitError;
use crate::state_dir::StateDir;

/// First bytes of a cache file; the last one is its version. Version 1 had no signature.
const MAGIC: &[u8; 8] = b"mmgood\0\x02";

/// A reason why a cached state is not used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The file cannot be read or written.
    #[error("last-good state")]
    File(#[source] KitError),
    /// The file has another format version.
    #[error("{file} is not a last-good state of this version; it is replaced when control is back")]
    Version {
        /// Name of the file.
        file: String,
    },
    /// Control did not sign the state, or not for this agent.
    #[error("{file} is refused; it is replaced when control is back")]
    Refused {
        /// Name of the file.
        file: String,
        /// The failed check.
        #[source]
        reason: SealError,
    },
    /// The agent has seen a newer state from control.
    #[error(
        "{file} is refused: it is of term {term} and generation {generation}, older than a state \
         that this agent received since; it is replaced when control is back"
    )]
    Older {
        /// Name of the file.
        file: String,
        /// Raft term of the cached state.
        term: u64,
        /// Its generation.
        generation: u64,
    },
}

/// One cached desired state.
#[derive(Clone, Debug)]
pub struct LastGood {
    dir: StateDir,
    name: String,
    own: SpiffeId,
    credential: watch::Receiver<Credential>,
}

impl LastGood {
    /// The cache `name` in the state directory of the agent `own`. Signatures are checked against
    /// the roots of `credential`.
    pub fn new(
        dir: StateDir,
        name: &str,
        own: SpiffeId,
        credential: watch::Receiver<Credential>,
    ) -> Self {
        Self {
            dir,
            name: name.to_owned(),
            own,
            credential,
        }
    }

    /// Loads the state that was stored last. `None` if none was stored yet.
    ///
    /// # Errors
    /// When the file cannot be read, or fails a check of [`CacheError`].
    pub fn load<M: Sealed>(&self) -> Result<Option<M>, CacheError> {
        let file = self.file();
        let Some(bytes) = self.dir.read_own(&file).map_err(CacheError::File)? else {
            return Ok(None);
        };
        let Some(body) = decode_cache(&bytes) else {
            return Err(CacheError::Version { file });
        };
        let message: M = self.open(body)?;
        let (term, generation) = message.fence();
        // The signature of an old copy is still valid: without this mark a backup of the directory
        // would take the agent back to an old state.
        if (term, generation) < self.newest()? {
            return Err(CacheError::Older {
                file,
                term,
                generation,
            });
        }
        Ok(Some(message))
    }

    /// Replaces the stored state by a message as received. It is on disk when this returns.
    ///
    /// # Errors
    /// When control did not sign it for this agent, or the file cannot be written.
    pub fn store<M: Sealed>(&self, message: &[u8]) -> Result<(), CacheError> {
        let (term, generation) = self.open::<M>(message)?.fence();
        let bytes = [MAGIC, message].concat();
        let write = |file: &str, bytes: &[u8]| self.dir.write(file, bytes);
        // The state before its mark: after a crash in between, the mark is older than the state,
        // which passes. The other order would refuse the only copy.
        write(&self.file(), &bytes)
            .and_then(|()| {
                write(
                    &self.newest_file(),
                    format!("{term} {generation}\n").as_bytes(),
                )
            })
            .map_err(CacheError::File)
    }

    fn open<M: Sealed>(&self, body: &[u8]) -> Result<M, CacheError> {
        // The roots that the agent trusts now: a state signed under a root that was removed since
        // must not be used.
        let roots = self.credential.borrow().roots.clone();
        sealed::open(body, &self.own, &roots).map_err(|reason| CacheError::Refused {
            file: self.file(),
            reason,
        })
    }

    /// Term and generation of the newest state that was stored here.
    fn newest(&self) -> Result<(u64, u64), CacheError> {
        let bytes = self.dir.read(&self.newest_file());
        let bytes = bytes.map_err(CacheError::File)?.unwrap_or_default();
        // A damaged mark refuses nothing: it must not keep an agent down, and the state itself is
        // still signed.
        Ok(decode_newest(&bytes).unwrap_or_default())
    }

    fn file(&self) -> String {
        format!("{}.last-good", self.name)
    }

    fn newest_file(&self) -> String {
        format!("{}.newest", self.name)
    }
}

/// The signed message's bytes in a cache file of this version.
pub fn decode_cache(bytes: &[u8]) -> Option<&[u8]> {
    bytes.strip_prefix(MAGIC)
}

fn decode_newest(bytes: &[u8]) -> Option<(u64, u64)> {
    let text = str::from_utf8(bytes).ok()?;
    let (term, generation) = text.trim_end().split_once(' ')?;
    Some((term.parse().ok()?, generation.parse().ok()?))
}
