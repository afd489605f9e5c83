//! Splits a backup into pieces.

use std::io::{self, Write};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;

/// Size of one piece, bytes.
const PIECE_BYTES: usize = 256 << 10;
/// Time limit for one piece to be accepted. A receiver that stopped reading would otherwise hold one
/// of the `BACKUPS_MAX` places for ever.
const STALL: Duration = Duration::from_secs(300);

/// Sends the bytes in pieces. It waits for a slow receiver, but fails after `STALL` without progress.
pub(crate) struct PieceWriter {
    runtime: Handle,
    send: Sender<Bytes>,
    piece: BytesMut,
}

impl PieceWriter {
    /// A writer for a blocking task, called inside the runtime that reads the pieces.
    pub(crate) fn new(send: Sender<Bytes>) -> Self {
        Self {
            runtime: Handle::current(),
            send,
            piece: BytesMut::with_capacity(PIECE_BYTES),
        }
    }
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
