//! Makes backups: the state at one moment, with the key that unseals it, written in pieces.
//!
//! Invariants:
//! - a backup contains every write that was acknowledged before [`Backups::begin`] was called;
//! - the data key is in a backup only if the backup is encrypted;
//! - at most [`BACKUPS_MAX`] backups are in progress on a node, and a receiver that stops reading ends
//!   its backup.

mod error;
mod piece_writer;
mod pieces;
mod place;

use std::sync::Arc;

use control_store::{StateExport, Store};
use proto_backup::{Encryption, FORMAT, Head, Recipients, Writer};
use tokio::sync::mpsc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use piece_writer::PieceWriter;

pub use error::{BACKUPS_MAX, MakeError};
pub use pieces::{BackupPieces, Made};
pub use place::BackupPlace;

/// Maximum pieces that wait for the receiver. The writer blocks beyond it.
const PIECES_MAX: usize = 8;
/// Makes backups of a store. Cheap to clone (`Arc`).
#[derive(Clone)]
pub struct Backups {
    store: Store,
    data_key: [u8; 32],
    room: Arc<Semaphore>,
}

impl std::fmt::Debug for Backups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Backups(<redacted>)")
    }
}

impl Backups {
    /// Makes backups of this store. `data_key` unseals the private keys in it.
    pub fn new(store: Store, data_key: [u8; 32]) -> Self {
        Self {
            store,
            data_key,
            room: Arc::new(Semaphore::new(BACKUPS_MAX)),
        }
    }

    /// Begins a backup of everything that was acknowledged before the call. It is encrypted for
    /// `recipients`. Empty recipients mean a plain backup without the data key.
    ///
    /// # Errors
    /// The store cannot answer, or too many backups are in progress.
    pub async fn begin(&self, recipients: Recipients) -> Result<BackupPieces, MakeError> {
        let place = Arc::clone(&self.room)
            .try_acquire_owned()
            .map_err(|_| MakeError::Busy)?;
        let export = self.store.export().await?;
        let now_ms = self.store.now().ms();
        let data_key = self.data_key;
        let (send, bytes) = mpsc::channel(PIECES_MAX);
        let out = PieceWriter::new(send);
        let work = move || make(&export, &data_key, &recipients, now_ms, out, place);
        // The task is not aborted when the caller goes away, but its writer fails as soon as the
        // receiver is dropped, so it ends by itself.
        let outcome = tokio::task::spawn_blocking(work);
        Ok(BackupPieces { bytes, outcome })
    }
}

/// Writes one backup. The permit is held until the end, which limits the backups in progress.
fn make(
    export: &StateExport,
    data_key: &[u8],
    recipients: &Recipients,
    now_ms: u64,
    out: PieceWriter,
    _place: OwnedSemaphorePermit,
) -> Result<Made, MakeError> {
    let head = Head {
        format: FORMAT,
        made_by: env!("CARGO_PKG_VERSION").to_owned(),
        made_at_ms: now_ms,
        cluster: export.cluster.clone(),
        cluster_id: export.cluster_id.to_string(),
        node: export.node,
        term: export.term,
        revision: export.revision,
        feature_level: export.feature_level,
        encryption: Encryption::None,
    };
    let mut writer = Writer::new(out, head, recipients)?;
    if !recipients.is_empty() {
        writer.data_key(data_key)?;
    }
    for row in export.rows() {
        let (key, value) = row?;
        writer.row(&key, &value)?;
    }
    let (_, summary) = writer.finish()?;
    Ok(Made {
        revision: export.revision,
        summary,
    })
}
