//! The single writer of the log. It drains the queue, writes once, syncs once and then answers all
//! callers of the round. Votes, truncations and entries go through the same queue, so their order
//! on disk is the order of Raft's calls.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::mpsc;

use super::LogOwner;
use super::durable::DurableIndex;
use super::found::EntryLocation;
use super::frame::{self, FrameKind};
use super::index::LogIndex;
use super::job::{LogJob, SyncRound, SyncWaiter};
use super::segment::{self, LogSegment, SegmentHead};
use super::syncs::SyncHistogram;
use crate::codec;
use crate::disk::StoreDisk;
use crate::raft_types::{Entry, LogId, Vote};

/// Bytes at which a round stops draining the queue; the other jobs wait for the next round. It
/// bounds the time of one sync, and so the latency of the jobs at the front.
const WRITE_BYTES_MAX: usize = 4 << 20;

/// Writes the segments. It owns the active segment; nothing else writes to the log directory.
pub(crate) struct LogFlusher {
    pub(crate) disk: Arc<dyn StoreDisk>,
    pub(crate) dir: PathBuf,
    pub(crate) owner: LogOwner,
    pub(crate) segment_bytes: usize,
    pub(crate) index: Arc<Mutex<LogIndex>>,
    pub(crate) durable: Arc<DurableIndex>,
    pub(crate) syncs: Arc<SyncHistogram>,
    pub(crate) jobs: mpsc::Receiver<LogJob>,
    /// Closed segments, each with the highest entry index that was ever written to it; `None` if
    /// it has no entries.
    pub(crate) closed: BTreeMap<u64, Option<u64>>,
    pub(crate) active: LogSegment,
    /// Highest entry index that was ever written to the active segment.
    pub(crate) active_highest: Option<u64>,
    /// Offset of the next write in the active segment.
    pub(crate) end: usize,
    /// Offset at which the frames of the running epoch begin: everything before it is synced.
    pub(crate) window: usize,
    /// Number of the running epoch; the next sync completes it.
    pub(crate) epoch: u64,
    /// Vote, commit point and purge point of the last records, for the head of the next segment.
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
    pub(crate) purged: Option<LogId>,
    /// Frames that are not written yet.
    pub(crate) buffer: Vec<u8>,
    /// Locations of the entries in the buffer.
    pub(crate) locations: Vec<(LogId, EntryLocation)>,
}

impl LogFlusher {
    /// Runs until the log is closed and the queue is empty.
    ///
    /// A failed write or sync ends the process: the content of the page cache is unknown after it.
    /// A retry may report success for pages that the kernel has dropped, and an error would let
    /// Raft go on with a log that differs from the disk.
    pub(crate) fn run(mut self) {
        while let Some(first) = self.jobs.blocking_recv() {
            let mut round = SyncRound::default();
            let written = self.write_round(first, &mut round);
            if let Err(error) = written.and_then(|()| self.sync_round(&mut round)) {
                self.report(&error);
                // Not a panic: the runtime would go on without this thread.
                std::process::abort();
            }
        }
    }

    /// As [`run`](Self::run), as a task in virtual time. After a failure no caller is answered, as
    /// by a process that has ended.
    #[cfg(feature = "sim")]
    pub(crate) async fn run_in_virtual_time(mut self, failed: &(dyn Fn(&io::Error) + Sync)) {
        while let Some(first) = self.jobs.recv().await {
            let mut round = SyncRound::default();
            let written = self.write_round(first, &mut round);
            if crate::sim::has(crate::sim::Bug::AckBeforeFsync) {
                self.durable.set(round.next);
                round.waiters.drain(..).for_each(SyncWaiter::answer);
            }
            tokio::time::sleep(self.disk.sync_time()).await;
            if let Err(error) = written.and_then(|()| self.sync_round(&mut round)) {
                self.report(&error);
                failed(&error);
                std::future::pending::<()>().await;
            }
        }
    }

    fn report(&self, error: &io::Error) {
        tracing::error!(
            file = %segment::path(&self.dir, self.active.number).display(),
            error = %error,
            "raft log cannot be written; stopping the process"
        );
    }

    /// Writes the waiting jobs without a sync.
    fn write_round(&mut self, first: LogJob, round: &mut SyncRound) -> io::Result<()> {
        round.next = self.durable.next();
        let mut next = Some(first);
        while let Some(job) = next {
            self.buffer_job(job, round)?;
            next = if self.buffer.len() < WRITE_BYTES_MAX {
                self.jobs.try_recv().ok()
            } else {
                None
            };
        }
        self.write_buffer()
    }

    /// Puts the frames of one job into the buffer.
    ///
    /// The waiter comes first in each arm: if the frame fails, the waiter stays in the round and is
    /// never answered. A dropped waiter would tell its caller that the log is closed.
    fn buffer_job(&mut self, job: LogJob, round: &mut SyncRound) -> io::Result<()> {
        round.sync |= !matches!(job, LogJob::Committed(_));
        match job {
            LogJob::Append(entries, done) => {
                round.waiters.push(SyncWaiter::Append(done));
                for entry in &entries {
                    self.buffer_entry(entry)?;
                    round.next = entry.log_id.index + 1;
                }
            }
            LogJob::Vote(vote, done) => {
                round.waiters.push(SyncWaiter::Other(done));
                self.vote = Some(vote);
                self.buffer_record(FrameKind::Vote, &vote)?;
            }
            LogJob::Truncate(last, done) => {
                round.waiters.push(SyncWaiter::Other(done));
                self.buffer_record(FrameKind::Truncate, &last)?;
                round.next = round.next.min(last.map_or(0, |last| last.index + 1));
                // Before the new entries of the same indexes are buffered: the applier would take
                // them for synced, and the state could get ahead of the log.
                self.durable.set(round.next.min(self.durable.next()));
            }
            LogJob::Purge(upto, done) => {
                round.waiters.push(SyncWaiter::Other(done));
                self.purged = self.purged.max(Some(upto));
                self.buffer_record(FrameKind::Purge, &upto)?;
                // Behind a snapshot from the leader the log has never had these entries.
                round.next = round.next.max(upto.index + 1);
                round.purged = true;
            }
            // Written in `sync_round`, after the sync.
            LogJob::Committed(log_id) => round.committed = Some(log_id),
        }
        Ok(())
    }

    /// Syncs once for all jobs of the round and answers them.
    fn sync_round(&mut self, round: &mut SyncRound) -> io::Result<()> {
        if round.sync {
            self.sync()?;
            self.durable.set(round.next);
        }
        // After the sync of the purge record: it explains the missing segments to recovery.
        if round.purged {
            self.delete_segments()?;
        }
        round.waiters.drain(..).for_each(SyncWaiter::answer);
        // After the sync: this frame carries the new window, and so proves to recovery that the
        // entries before it were durable, even if no other write follows.
        self.buffer_committed(round.committed)?;
        self.write_buffer()
    }

    fn buffer_committed(&mut self, committed: Option<Option<LogId>>) -> io::Result<()> {
        let Some(committed) = committed else {
            return Ok(());
        };
        self.committed = committed;
        self.buffer_record(FrameKind::Committed, &committed)
    }

    fn buffer_entry(&mut self, entry: &Entry) -> io::Result<()> {
        let payload = codec::encode(entry)?;
        let (segment, offset) = self.buffer_frame(FrameKind::Entry, &payload)?;
        let log_id = entry.log_id;
        self.active_highest = self.active_highest.max(Some(log_id.index));
        self.locations.push((
            log_id,
            EntryLocation {
                segment,
                offset,
                bytes: payload.len(),
            },
        ));
        Ok(())
    }

    fn buffer_record<T: Serialize>(&mut self, kind: FrameKind, value: &T) -> io::Result<()> {
        self.buffer_frame(kind, &codec::encode(value)?).map(|_| ())
    }

    /// Appends one frame to the buffer, in a new segment if this one is full. Returns the segment
    /// and the offset of the payload.
    fn buffer_frame(&mut self, kind: FrameKind, payload: &[u8]) -> io::Result<(u64, u64)> {
        if payload.len() > frame::PAYLOAD_BYTES_MAX {
            let message = format!("a record of {} bytes is too large", payload.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        if self.end + self.buffer.len() + frame::frame_bytes(payload.len()) > self.active.capacity {
            // The old segment is synced before the new one exists: recovery takes an unreadable
            // frame in any segment but the last for corruption.
            self.write_buffer()?;
            self.sync()?;
            self.rotate(payload.len())?;
        }
        // It fits into 32 bits: a segment is as large as configured, or as one record.
        let window = u32::try_from(self.window).map_err(io::Error::other)?;
        let (salt, epoch) = (self.active.salt, self.epoch);
        let at = frame::write(&mut self.buffer, salt, kind, epoch, window, payload);
        Ok((self.active.number, (self.end + at) as u64))
    }

    /// Writes the buffer to the active segment.
    fn write_buffer(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.active.file.write_at(&self.buffer, self.end as u64)?;
        self.end += self.buffer.len();
        self.buffer.clear();
        if self.buffer.capacity() > 2 * WRITE_BYTES_MAX {
            // A single large record must not keep its memory for ever.
            self.buffer = Vec::new();
        }
        // After the write: with a location an entry may leave memory, and is read from the file.
        let mut index = self.index.lock();
        for (log_id, location) in self.locations.drain(..) {
            index.set_location(log_id, location);
        }
        Ok(())
    }

    /// Syncs the active segment and begins the next epoch.
    fn sync(&mut self) -> io::Result<()> {
        let began = Instant::now();
        self.active.file.sync()?;
        self.syncs.add(began.elapsed());
        // Only after a successful sync: a frame with this window proves that everything before the
        // window is durable.
        self.epoch += 1;
        self.window = self.end;
        Ok(())
    }

    /// Continues in a new segment with room for `payload` bytes. Everything before must be synced.
    fn rotate(&mut self, payload: usize) -> io::Result<()> {
        let head = SegmentHead {
            cluster: self.owner.cluster,
            node: self.owner.node,
            number: self.active.number + 1,
            vote: self.vote,
            committed: self.committed,
            purged: self.purged,
        };
        let (segment, end) = segment::create(
            &*self.disk,
            &self.dir,
            &head,
            self.epoch,
            payload,
            self.segment_bytes,
        )?;
        let path = segment::path(&self.dir, segment.number);
        self.index.lock().add_file(path, &segment);
        let closed = std::mem::replace(&mut self.active, segment);
        self.closed
            .insert(closed.number, self.active_highest.take());
        (self.end, self.window) = (end, end);
        self.epoch += 1;
        Ok(())
    }

    /// Deletes the oldest segments whose entries are all purged. The purge record must be durable.
    fn delete_segments(&mut self) -> io::Result<()> {
        let Some(purged) = self.purged else {
            return Ok(());
        };
        let mut deleted = false;
        while let Some(oldest) = self.closed.first_entry() {
            // In order and without a gap: recovery refuses a log in which a segment is missing.
            if oldest.get().is_some_and(|highest| highest > purged.index) {
                break;
            }
            let (number, _) = oldest.remove_entry();
            self.index.lock().remove_file(number);
            self.disk.remove_file(&segment::path(&self.dir, number))?;
            deleted = true;
        }
        if deleted {
            self.disk.sync_dir(&self.dir)
        } else {
            Ok(())
        }
    }
}
