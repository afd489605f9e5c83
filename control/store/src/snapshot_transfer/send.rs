//! Sends a snapshot to a member: its files in pieces, no faster than allowed.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::wire::{OfferReply, SnapshotOffer, SnapshotPiece};
use crate::channel::Channel;
use crate::deadline::within;
use crate::disk::{DiskFile, StoreDisk};
use crate::platform::{NodePlatform, StoreThreads};
use crate::raft_types::Vote;
use crate::snapshot::SnapshotDir;
use crate::snapshot::file::{SnapshotFile, at, measure};
use crate::transfers::Transfers;
use crate::wire::{self, Installed};

/// Installing takes longer than the pause between two pieces may be.
const INSTALL_PATIENCE: u32 = 10;

/// Bytes per second of all snapshots that this node sends, together.
#[derive(Clone, Debug)]
pub(crate) struct SendThrottle(Option<Arc<RateBucket>>);

#[derive(Debug)]
struct RateBucket {
    bytes_per_second: u64,
    /// When the next piece may go.
    next: Mutex<Instant>,
}

impl SendThrottle {
    /// `None` and zero do not limit.
    pub(crate) fn new(bytes_per_second: Option<u64>) -> Self {
        let limit = bytes_per_second.filter(|limit| *limit > 0);
        Self(limit.map(|bytes_per_second| {
            let next = Mutex::new(Instant::now());
            Arc::new(RateBucket {
                bytes_per_second,
                next,
            })
        }))
    }

    /// Waits until `bytes` more may go.
    async fn take(&self, bytes: usize) {
        let Some(bucket) = &self.0 else { return };
        let cost = Duration::from_secs_f64(bytes as f64 / bucket.bytes_per_second as f64);
        let turn = {
            let mut next = bucket
                .next
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let turn = (*next).max(Instant::now());
            *next = turn + cost;
            turn
        };
        sleep_until(turn).await;
    }
}

/// How this node sends snapshots.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotSender {
    /// Where they are read.
    pub(crate) platform: NodePlatform,
    pub(crate) throttle: SendThrottle,
    pub(crate) piece_bytes: usize,
    pub(crate) transfers: Arc<Transfers>,
}

impl SnapshotSender {
    /// Sends what the receiver does not have yet. `stall` bounds each wait, not the whole.
    pub(crate) async fn send(
        &self,
        mut channel: Channel,
        vote: Vote,
        snapshot: &SnapshotDir,
        stall: Duration,
    ) -> io::Result<Installed> {
        let (dir, disk) = (snapshot.0.clone(), self.platform.disk.clone());
        let threads = &self.platform.threads;
        let files = threads.blocking(move || list(&*disk, &dir)).await??;
        let name = snapshot.0.file_name().unwrap_or_default();
        let offer = SnapshotOffer {
            vote,
            name: name.to_string_lossy().into_owned(),
            files: files.iter().map(|(listed, _)| listed.clone()).collect(),
        };
        within(stall, channel.send(wire::say(&offer)?)).await?;
        let have = match wire::hear(&within(stall, channel.next()).await?)? {
            OfferReply::From(have) => have,
            OfferReply::Nothing(answer) => return Ok(answer),
        };
        let total: u64 = files.iter().map(|(listed, _)| listed.bytes).sum();
        let there: u64 = have.iter().sum();
        self.transfers.spared(there);
        tracing::info!(name = %offer.name, bytes = total, there, "sending a snapshot");
        for (number, (listed, file)) in files.into_iter().enumerate() {
            let from = have.get(number).copied().unwrap_or(0);
            let mut pieces = FilePieces {
                file,
                number,
                range: from..listed.bytes,
            };
            while let Some((bytes, piece)) = pieces.next(threads, self.piece_bytes).await? {
                self.throttle.take(bytes).await;
                within(stall, channel.send(wire::say(&piece)?)).await?;
                self.transfers.sent(bytes as u64);
            }
        }
        within(stall, channel.send(wire::say(&SnapshotPiece::End)?)).await?;
        let answer = within(stall * INSTALL_PATIENCE, channel.next()).await?;
        wire::hear(&answer)
    }
}

/// What is still to be sent of a file.
struct FilePieces {
    file: Arc<dyn DiskFile>,
    number: usize,
    range: Range<u64>,
}

impl FilePieces {
    /// The next piece, and how many bytes of the file it holds.
    async fn next(
        &mut self,
        threads: &StoreThreads,
        most: usize,
    ) -> io::Result<Option<(usize, SnapshotPiece)>> {
        let Range { start, end } = self.range;
        let left = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        let bytes = left.min(most);
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

/// All files, opened: a newer snapshot may remove the directory while this one is on its way.
fn list(disk: &dyn StoreDisk, dir: &Path) -> io::Result<Vec<(SnapshotFile, Arc<dyn DiskFile>)>> {
    let mut paths = vec!["META".to_owned()];
    let state = dir.join("state");
    let names = disk.list(&state).map_err(|e| at(&state, e))?;
    paths.extend(names.into_iter().map(|name| format!("state/{name}")));
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let full = dir.join(&path);
        let file = disk.open(&full).map_err(|e| at(&full, e))?;
        let (bytes, crc) = measure(&*file).map_err(|e| at(&full, e))?;
        files.push((SnapshotFile { path, bytes, crc }, file));
    }
    Ok(files)
}
