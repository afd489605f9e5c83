//! The last desired state on disk, so that an agent restarts without control.

use prost::Message;
use proto_identity::sha256;
use tracing::warn;

use crate::error::KitError;
use crate::state_dir::StateDir;

/// First bytes of a cache file; the last one is its version.
const MAGIC: &[u8; 8] = b"mmgood\0\x01";

/// One cached message: magic, SHA-256 of the rest, message.
#[derive(Clone, Debug)]
pub struct LastGood {
    dir: StateDir,
    file: String,
}

impl LastGood {
    /// The cache called `name` in a state directory.
    pub fn new(dir: StateDir, name: &str) -> Self {
        Self {
            dir,
            file: format!("{name}.last-good"),
        }
    }

    /// What was stored last. A damaged file counts as none: control sends the state again.
    pub fn load<M: Message + Default>(&self) -> Option<M> {
        let bytes = match self.dir.read(&self.file) {
            Ok(bytes) => bytes?,
            Err(e) => {
                warn!(file = %self.file, error = %e, "last-good state is not readable");
                return None;
            }
        };
        let message = decode_cache(&bytes).and_then(|m| M::decode(m).ok());
        if message.is_none() {
            warn!(file = %self.file, "last-good state is damaged");
        }
        message
    }

    /// Replaces it; on disk before this returns.
    pub fn store<M: Message>(&self, message: &M) -> Result<(), KitError> {
        let body = message.encode_to_vec();
        let mut bytes = Vec::with_capacity(MAGIC.len() + 32 + body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&sha256(&body));
        bytes.extend_from_slice(&body);
        self.dir.write(&self.file, &bytes)
    }
}

/// The message's bytes in a cache file, when its checksum holds.
pub fn decode_cache(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (sum, body) = rest.split_at_checked(32)?;
    (sha256(body) == sum).then_some(body)
}
