//! The last desired state on disk, so that an agent restarts without control.
//!
//! It is kept as it came, with control's signature: a file that was changed, that another agent
//! wrote, or that is older than what was seen here is refused, and control sends the state anew.

use proto_identity::{Credential, SpiffeId};
use proto_mesh::sealed::{self, SealError, Sealed};
use tokio::sync::watch;

use crate::error::KitError;
use crate::state_dir::StateDir;

/// First bytes of a cache file; the last one is its version. Version 1 had no signature.
const MAGIC: &[u8; 8] = b"mmgood\0\x02";

/// Why a cached state is not gone by.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The file cannot be read or written.
    #[error("last-good state")]
    File(#[source] KitError),
    /// Not a file of this version.
    #[error(
        "{file} is not a last-good state of this version; it is made anew when control is back"
    )]
    Version {
        /// Which.
        file: String,
    },
    /// What control did not say, or not to this agent.
    #[error("{file} is refused; it is made anew when control is back")]
    Refused {
        /// Which.
        file: String,
        /// Why.
        #[source]
        reason: SealError,
    },
    /// Control said something newer to this agent since.
    #[error(
        "{file} is refused: it is of term {term} and generation {generation}, older than what \
         control told this agent since; it is made anew when control is back"
    )]
    Older {
        /// Which.
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
    /// The cache called `name` in the state directory of the agent `own`, whose roots are those
    /// of its credential.
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

    /// What was stored last; none before the first.
    ///
    /// # Errors
    /// The file cannot be read, or is not what control told this agent last.
    pub fn load<M: Sealed>(&self) -> Result<Option<M>, CacheError> {
        let file = self.file();
        let Some(bytes) = self.dir.read(&file).map_err(CacheError::File)? else {
            return Ok(None);
        };
        let Some(body) = decode_cache(&bytes) else {
            return Err(CacheError::Version { file });
        };
        let message: M = self.open(body)?;
        let (term, generation) = message.fence();
        if (term, generation) < self.newest()? {
            return Err(CacheError::Older {
                file,
                term,
                generation,
            });
        }
        Ok(Some(message))
    }

    /// Replaces it by a message as it came; on disk before this returns.
    ///
    /// # Errors
    /// Control did not sign it for this agent, or the file cannot be written.
    pub fn store<M: Sealed>(&self, message: &[u8]) -> Result<(), CacheError> {
        let (term, generation) = self.open::<M>(message)?.fence();
        let bytes = [MAGIC, message].concat();
        let write = |file: &str, bytes: &[u8]| self.dir.write(file, bytes);
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
