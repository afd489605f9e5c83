//! Sends a snapshot to a member: the files that it lacks, in pieces, within the rate limit.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::throttle::SendThrottle;
use super::wire::{OfferReply, SnapshotOffer, SnapshotPiece};
use crate::channel::Channel;
use crate::deadline::within;
use crate::disk::{DiskFile, StoreDisk};
use crate::platform::{NodePlatform, StoreThreads};
use crate::raft_types::Vote;
use crate::snapshot::SnapshotDir;
use crate::snapshot::file::{SnapshotFile, measure, with_path};
use crate::transfers::Transfers;
use crate::wire::{self, Installed};

/// Time limit for the answer after the last piece, in time limits of another message: the receiver
/// verifies and installs the snapshot meanwhile. Beyond it the transfer fails.
const INSTALL_PATIENCE: u32 = 10;

/// Sends the snapshots of this node. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotSender {
    /// Disk and threads for reading the files.
    pub(crate) platform: NodePlatform,
    /// Shared by all snapshots that this node sends.
    pub(crate) throttle: SendThrottle,
    /// Size of a piece, bytes.
    pub(crate) piece_bytes: usize,
    /// Counters of the bytes that are sent.
    pub(crate) transfers: Arc<Transfers>,
}

impl SnapshotSender {
    /// Sends the bytes that the receiver lacks, and returns its answer after the installation.
    /// `stall` bounds the wait for each message, not the whole transfer.
    ///
    /// # Errors
    /// When a file cannot be read, the channel breaks, the receiver refuses, or `stall` is
    /// exceeded.
    pub(crate) async fn send(
        &self,
        mut channel: Channel,
        vote: Vote,
        snapshot: &SnapshotDir,
        stall: Duration,
    ) -> io::Result<Installed> {
        let (dir, disk) = (snapshot.0.clone(), self.platform.disk.clone());
        let threads = &self.platform.threads;
        let files = threads.blocking(move || open_files(&*disk, &dir)).await??;
        let name = snapshot.0.file_name().unwrap_or_default();
        let offer = SnapshotOffer {
            vote,
            name: name.to_string_lossy().into_owned(),
            files: files.iter().map(|opened| opened.listed.clone()).collect(),
        };
        within(stall, channel.send(wire::say(&offer)?)).await?;
        let have = match wire::hear(&within(stall, channel.next()).await?)? {
            OfferReply::From(have) => have,
            OfferReply::Nothing(answer) => return Ok(answer),
        };
        let total: u64 = files.iter().map(|opened| opened.listed.bytes).sum();
        let there: u64 = have.iter().sum();
        self.transfers.spared(there);
        tracing::info!(name = %offer.name, bytes = total, there, "sending a snapshot");
        for (number, opened) in files.into_iter().enumerate() {
            // A receiver that names no offset for a file has nothing of it.
            let from = have.get(number).copied().unwrap_or(0);
            let mut pieces = FilePieces {
                file: opened.file,
                number,
                range: from..opened.listed.bytes,
            };
            while let Some((bytes, piece)) = pieces.next(threads, self.piece_bytes).await? {
                // Outside of `stall`: a low rate limit must not look like a dead receiver.
                self.throttle.acquire(bytes).await;
                within(stall, channel.send(wire::say(&piece)?)).await?;
                self.transfers.sent(bytes as u64);
            }
        }
        within(stall, channel.send(wire::say(&SnapshotPiece::End)?)).await?;
        let answer = within(stall * INSTALL_PATIENCE, channel.next()).await?;
        wire::hear(&answer)
    }
}

/// The pieces of a file that are not sent yet.
struct FilePieces {
    file: Arc<dyn DiskFile>,
    /// Position of the file in the offer.
    number: usize,
    /// Bytes that are not sent yet.
    range: Range<u64>,
}

impl FilePieces {
    /// Reads the next piece of at most `most` bytes; returns it with its length.
    async fn next(
        &mut self,
        threads: &StoreThreads,
        most: usize,
    ) -> io::Result<Option<(usize, SnapshotPiece)>> {
        let Range { start, end } = self.range;
        // A receiver that claims more than the file has is sent nothing of it. Its own check of the
        // checksum finds the rest.
        let left = end.saturating_sub(start);
        let bytes = usize::try_from(left).map_or(most, |left| left.min(most));
        if bytes == 0 {
            return Ok(None);
        }
        let file = self.file.clone();
        let read = move || {
            let mut buffer = vec![0; bytes];
            file.read_at(&mut buffer, start).map(|()| buffer)
        };
        let content = threads.blocking(read).await??;
        self.range.start += bytes as u64;
        let piece = SnapshotPiece::Data {
            file: self.number,
            offset: start,
            bytes: content.into(),
        };
        Ok(Some((bytes, piece)))
    }
}

/// A file of the snapshot, open for reading.
struct OpenedFile {
    listed: SnapshotFile,
    file: Arc<dyn DiskFile>,
}

/// Opens and measures all files of the snapshot in `dir`.
fn open_files(disk: &dyn StoreDisk, dir: &Path) -> io::Result<Vec<OpenedFile>> {
    // All at the start: a newer snapshot may remove the directory during the transfer, and open
    // files stay readable.
    let mut paths = vec!["META".to_owned()];
    let state = dir.join("state");
    let names = disk.list(&state).map_err(|e| with_path(&state, e))?;
    paths.extend(names.into_iter().map(|name| format!("state/{name}")));
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let full = dir.join(&path);
        let file = disk.open(&full).map_err(|e| with_path(&full, e))?;
        let (bytes, crc) = measure(&*file).map_err(|e| with_path(&full, e))?;
        let listed = SnapshotFile { path, bytes, crc };
        files.push(OpenedFile { listed, file });
    }
    Ok(files)
}
