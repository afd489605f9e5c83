//! Makes backups: the state at one moment, with the key that unseals it, into any writer.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use control_store::{StateExport, Store, StoreCodecError, StoreError};
use proto_backup::{BackupError, Encryption, FORMAT, Head, Recipients, Summary, Writer};
use proto_types::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

/// Backups at the same time on one node.
pub const BACKUPS_MAX: usize = 2;
/// Bytes of one piece of a backup on its way.
const PIECE_BYTES: usize = 256 << 10;
/// Pieces that may wait for the receiver.
const PIECES_MAX: usize = 8;
/// How long one piece may wait: who reads no more must not keep a place for ever.
const STALL: Duration = Duration::from_secs(300);

/// A place that scheduled backups go to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupPlace {
    /// For people.
    pub place: String,
    /// The newest that is there; none when there is none, or nobody has looked yet.
    pub newest: Option<Timestamp>,
    /// Why the last one was not made; empty when it was.
    pub error: String,
    /// How often one is made, minutes.
    pub every_minutes: u64,
}

/// A backup could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The store cannot answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An object cannot be encoded.
    #[error(transparent)]
    Object(#[from] StoreCodecError),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] BackupError),
    /// As many are being made as may be.
    #[error("{BACKUPS_MAX} backups are being made already")]
    Busy,
    /// The task that made it ended.
    #[error("making the backup was interrupted")]
    Interrupted,
}

/// Makes backups; cheap to clone.
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

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The state's revision.
    pub revision: u64,
    /// How much there was.
    pub summary: Summary,
}

/// A backup on its way.
#[derive(Debug)]
pub struct Pieces {
    /// Its bytes in order; ends when it is whole or has failed.
    pub bytes: Receiver<Bytes>,
    /// Which of the two, once `bytes` has ended.
    pub outcome: JoinHandle<Result<Made, MakeError>>,
}

impl Backups {
    /// Backups of this store, whose private keys `data_key` unseals.
    pub fn new(store: Store, data_key: [u8; 32]) -> Self {
        Self {
            store,
            data_key,
            room: Arc::new(Semaphore::new(BACKUPS_MAX)),
        }
    }

    /// Begins a backup of everything that was acknowledged before the call: encrypted for
    /// `recipients`, or without any a plain one that lacks the data key.
    ///
    /// # Errors
    /// When the store cannot answer, or enough backups are being made.
    pub async fn begin(&self, recipients: Recipients) -> Result<Pieces, MakeError> {
        let place = Arc::clone(&self.room)
            .try_acquire_owned()
            .map_err(|_| MakeError::Busy)?;
        let export = self.store.export().await?;
        let now_ms = self.store.now().ms();
        let data_key = self.data_key;
        let (send, bytes) = mpsc::channel(PIECES_MAX);
        let out = PieceWriter {
            runtime: Handle::current(),
            send,
            piece: BytesMut::with_capacity(PIECE_BYTES),
        };
        let work = move || make(&export, &data_key, &recipients, now_ms, out, place);
        // Ends when its receiver is dropped: its writer fails then.
        let outcome = tokio::task::spawn_blocking(work);
        Ok(Pieces { bytes, outcome })
    }
}

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

/// Hands bytes over in pieces; waits while the receiver is slow, but not for one that stopped.
struct PieceWriter {
    runtime: Handle,
    send: Sender<Bytes>,
    piece: BytesMut,
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the receiver is gone");
        let sent = self.send.send(self.piece.split().freeze());
        let sent = self.runtime.block_on(tokio::time::timeout(STALL, sent));
        let stalled = |_| {
            let what = format!("the receiver took nothing for {} s", STALL.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, what)
        };
        sent.map_err(stalled)?.map_err(gone)
    }
}
