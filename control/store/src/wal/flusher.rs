//! The one thread that writes the log: takes what waits, writes it once, syncs once, then tells
//! everybody. Votes, truncations and entries go through the same queue, so their order on disk is
//! the order in which Raft asked.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use openraft::storage::IOFlushed;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::durable::Durable;
use super::frame::{self, Kind};
use super::index::{Index, Place};
use super::segment::{self, Head, Segment};
use super::syncs::Syncs;
use crate::codec;
use crate::disk::Disk;
use crate::raft_types::{Entry, LogId, TypeConfig, Vote};

/// Bytes gathered for one write; more waits for the next one.
const WRITE_BYTES_MAX: usize = 4 << 20;

/// What the flusher is asked to do.
pub(crate) enum Job {
    Append(Vec<Entry>, IOFlushed<TypeConfig>),
    Vote(Vote, oneshot::Sender<()>),
    /// Entries after this one are gone.
    Truncate(Option<LogId>, oneshot::Sender<()>),
    /// Entries up to this one are gone.
    Purge(LogId, oneshot::Sender<()>),
    /// Not synced: it speeds up a restart and proves what was acknowledged, no more.
    Committed(Option<LogId>),
}

/// What one sync is for.
#[derive(Default)]
struct Round {
    sync: bool,
    /// After the sync, the entries below it are on disk.
    next: u64,
    waiters: Vec<Waiter>,
    committed: Option<Option<LogId>>,
    purged: bool,
}

/// Who waits for the next sync.
enum Waiter {
    Append(IOFlushed<TypeConfig>),
    Other(oneshot::Sender<()>),
}

pub(crate) struct Flusher {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) cluster: Uuid,
    pub(crate) node: u64,
    pub(crate) segment_bytes: usize,
    pub(crate) index: Arc<Mutex<Index>>,
    pub(crate) durable: Arc<Durable>,
    pub(crate) syncs: Arc<Syncs>,
    pub(crate) jobs: mpsc::Receiver<Job>,
    /// Highest entry index that each closed segment ever held.
    pub(crate) closed: BTreeMap<u64, Option<u64>>,
    pub(crate) active: Segment,
    pub(crate) active_highest: Option<u64>,
    /// Where the next frame goes.
    pub(crate) end: usize,
    /// Where the frames of the running epoch begin.
    pub(crate) window: usize,
    pub(crate) epoch: u64,
    /// As of the last record written, for the head of the next segment.
    pub(crate) vote: Option<Vote>,
    pub(crate) committed: Option<LogId>,
    pub(crate) purged: Option<LogId>,
    // Gathered, not yet written.
    pub(crate) buffer: Vec<u8>,
    pub(crate) places: Vec<(LogId, Place)>,
}

impl Flusher {
    /// Runs until the log is closed, then writes what is left.
    ///
    /// A failed write or sync ends the process: the state of the page cache is unknown after it,
    /// so neither a retry nor an answer can be right.
    pub(crate) fn run(mut self) {
        while let Some(first) = self.jobs.blocking_recv() {
            let mut round = Round::default();
            let gathered = self.gather(first, &mut round);
            if let Err(error) = gathered.and_then(|()| self.finish(&mut round)) {
                self.report(&error);
                std::process::abort();
            }
        }
    }

    /// As [`run`](Self::run), as a task in virtual time. After a failure nobody is ever answered,
    /// as by a process that has ended.
    #[cfg(feature = "sim")]
    pub(crate) async fn run_in_virtual_time(mut self, failed: &(dyn Fn(&io::Error) + Sync)) {
        while let Some(first) = self.jobs.recv().await {
            let mut round = Round::default();
            let gathered = self.gather(first, &mut round);
            if crate::sim::has(crate::sim::Bug::AckBeforeFsync) {
                self.durable.set(round.next);
                round.waiters.drain(..).for_each(Waiter::tell);
            }
            tokio::time::sleep(self.disk.sync_time()).await;
            if let Err(error) = gathered.and_then(|()| self.finish(&mut round)) {
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

    /// Takes what waits and writes it, without a sync.
    fn gather(&mut self, first: Job, round: &mut Round) -> io::Result<()> {
        round.next = self.durable.next();
        let mut next = Some(first);
        while let Some(job) = next {
            self.take(job, round)?;
            next = if self.buffer.len() < WRITE_BYTES_MAX {
                self.jobs.try_recv().ok()
            } else {
                None
            };
        }
        self.write()
    }

    /// Who waits is noted first: after a failure they must not be told anything.
    fn take(&mut self, job: Job, round: &mut Round) -> io::Result<()> {
        round.sync |= !matches!(job, Job::Committed(_));
        match job {
            Job::Append(entries, done) => {
                round.waiters.push(Waiter::Append(done));
                for entry in &entries {
                    self.entry(entry)?;
                    round.next = entry.log_id.index + 1;
                }
            }
            Job::Vote(vote, done) => {
                round.waiters.push(Waiter::Other(done));
                self.vote = Some(vote);
                self.record(Kind::Vote, &vote)?;
            }
            Job::Truncate(last, done) => {
                round.waiters.push(Waiter::Other(done));
                self.record(Kind::Truncate, &last)?;
                round.next = round.next.min(last.map_or(0, |last| last.index + 1));
                // What comes in its place is not on disk.
                self.durable.set(round.next.min(self.durable.next()));
            }
            Job::Purge(upto, done) => {
                round.waiters.push(Waiter::Other(done));
                self.purged = self.purged.max(Some(upto));
                self.record(Kind::Purge, &upto)?;
                round.next = round.next.max(upto.index + 1);
                round.purged = true;
            }
            Job::Committed(log_id) => round.committed = Some(log_id),
        }
        Ok(())
    }

    /// One sync for all who wait.
    fn finish(&mut self, round: &mut Round) -> io::Result<()> {
        if round.sync {
            self.sync()?;
            self.durable.set(round.next);
        }
        if round.purged {
            self.delete_segments()?;
        }
        round.waiters.drain(..).for_each(Waiter::tell);
        self.write_committed(round.committed)?;
        self.write()
    }

    fn write_committed(&mut self, committed: Option<Option<LogId>>) -> io::Result<()> {
        let Some(committed) = committed else {
            return Ok(());
        };
        self.committed = committed;
        self.record(Kind::Committed, &committed)
    }

    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        let payload = codec::encode(entry)?;
        let (segment, offset) = self.frame(Kind::Entry, &payload)?;
        let log_id = entry.log_id;
        self.active_highest = self.active_highest.max(Some(log_id.index));
        self.places.push((
            log_id,
            Place {
                segment,
                offset,
                bytes: payload.len(),
            },
        ));
        Ok(())
    }

    fn record<T: Serialize>(&mut self, kind: Kind, value: &T) -> io::Result<()> {
        self.frame(kind, &codec::encode(value)?).map(|_| ())
    }

    /// Gathers one frame, on a new segment if this one is full. Returns where its payload will be.
    fn frame(&mut self, kind: Kind, payload: &[u8]) -> io::Result<(u64, u64)> {
        if payload.len() > frame::PAYLOAD_BYTES_MAX {
            let message = format!("a record of {} bytes is too large", payload.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        if self.end + self.buffer.len() + frame::frame_bytes(payload.len()) > self.active.capacity {
            self.write()?;
            self.sync()?;
            self.rotate(payload.len())?;
        }
        // A segment's capacity is far below 4 GiB.
        let window = u32::try_from(self.window).map_err(io::Error::other)?;
        let (salt, epoch) = (self.active.salt, self.epoch);
        let at = frame::write(&mut self.buffer, salt, kind, epoch, window, payload);
        Ok((self.active.number, (self.end + at) as u64))
    }

    fn write(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.active.file.write_at(&self.buffer, self.end as u64)?;
        self.end += self.buffer.len();
        self.buffer.clear();
        if self.buffer.capacity() > 2 * WRITE_BYTES_MAX {
            self.buffer = Vec::new();
        }
        let mut index = lock(&self.index);
        for (log_id, place) in self.places.drain(..) {
            index.place(log_id, place);
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let began = Instant::now();
        self.active.file.sync()?;
        self.syncs.add(began.elapsed());
        self.epoch += 1;
        self.window = self.end;
        Ok(())
    }

    /// Goes on in a new segment; everything before is synced.
    fn rotate(&mut self, payload: usize) -> io::Result<()> {
        let head = Head {
            cluster: self.cluster,
            node: self.node,
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
        lock(&self.index).add_file(path, &segment);
        let closed = std::mem::replace(&mut self.active, segment);
        self.closed
            .insert(closed.number, self.active_highest.take());
        (self.end, self.window) = (end, end);
        self.epoch += 1;
        Ok(())
    }

    /// Removes the oldest segments that hold purged entries only. The purge is durable by now.
    fn delete_segments(&mut self) -> io::Result<()> {
        let Some(purged) = self.purged else {
            return Ok(());
        };
        let mut deleted = false;
        while let Some(oldest) = self.closed.first_entry() {
            if oldest.get().is_some_and(|highest| highest > purged.index) {
                break;
            }
            let (number, _) = oldest.remove_entry();
            lock(&self.index).remove_file(number);
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

impl Waiter {
    fn tell(self) {
        match self {
            Self::Append(done) => done.io_completed(Ok(())),
            // Whoever asked may be gone.
            Self::Other(done) => drop(done.send(())),
        }
    }
}

/// No code panics while it holds this lock.
pub(crate) fn lock(index: &Mutex<Index>) -> std::sync::MutexGuard<'_, Index> {
    index
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
