//! The Raft log in segment files: one flusher thread, and one sync for all waiting callers (group
//! commit).
//!
//! Invariants:
//! - records become durable in the order of the calls;
//! - a caller is answered after the sync of its record, except for commit points;
//! - recovery never cuts a synced record;
//! - the log is purged only after the state that contains the purged entries is durable. The
//!   caller ensures it, see [`RaftLog`](crate::raft::log::RaftLog).

pub(crate) mod durable;
mod error;
mod flusher;
mod found;
pub(crate) mod frame;
mod index;
mod job;
mod recover;
pub(crate) mod scan;
pub(crate) mod segment;
pub(crate) mod syncs;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use openraft::storage::IOFlushed;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use durable::DurableIndex;
use error::io_error;
use flusher::LogFlusher;
use found::FoundEntry;
use index::LogIndex;
use job::LogJob;
use recover::{RecoveredLog, recover};
use segment::{LogSegment, SegmentHead};
use syncs::{SyncHistogram, SyncTimes};

pub use error::WalError;

use crate::disk::StoreDisk;
use crate::log_store::LogStore;
use crate::platform::{NodePlatform, StoreThreads};
use crate::raft_types::{Entry, LogId, TypeConfig, Vote};

/// Capacity of the flusher's queue, jobs. Raft waits while it is full.
const JOBS_MAX: usize = 1024;

/// The log in segment files. Readers use the index, changes go through the flusher's queue.
#[derive(Debug)]
pub(crate) struct Wal {
    /// Locked for look-ups and updates in memory only, never while the disk is read or written.
    index: Arc<Mutex<LogIndex>>,
    durable: Arc<DurableIndex>,
    syncs: Arc<SyncHistogram>,
    /// Queue of the flusher; `None` after [`close`](Self::close).
    jobs: Mutex<Option<mpsc::Sender<LogJob>>>,
    /// `None` after [`close`](Self::close).
    thread: Mutex<Option<FlusherThread>>,
    threads: StoreThreads,
}

/// The thread or task that the flusher runs on.
#[derive(Debug)]
enum FlusherThread {
    Thread(JoinHandle<()>),
    /// Aborted when the log is dropped, whatever the flusher does at that moment.
    #[cfg(feature = "sim")]
    Task(#[expect(dead_code, reason = "owns the task")] tokio::task::JoinSet<()>),
}

/// The cluster and node that a log belongs to; the log of another owner is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogOwner {
    pub(crate) cluster: Uuid,
    pub(crate) node: u64,
}

impl Wal {
    /// Opens or creates the log in `dir`; an interrupted write at its end is cut.
    ///
    /// # Errors
    /// See [`WalError`].
    pub(crate) fn open(
        platform: &NodePlatform,
        dir: &Path,
        owner: LogOwner,
        segment_bytes: usize,
    ) -> Result<Self, WalError> {
        let disk = &platform.disk;
        disk.create_dir(dir)
            .map_err(|e| io_error("create", dir, e))?;
        let recovered = recover(&**disk, dir, owner)?;
        // Normal after a power failure, but also the only trace of a disk that loses synced writes.
        if recovered.cut_bytes > 0 {
            tracing::warn!(
                dir = %dir.display(),
                bytes = recovered.cut_bytes,
                "cut the end of the raft log: a write was interrupted before it was acknowledged"
            );
        }
        let (tx, rx) = mpsc::channel(JOBS_MAX);
        let (flusher, index) =
            build_flusher(disk.clone(), dir, owner, segment_bytes, recovered, rx)?;
        let durable = flusher.durable.clone();
        let syncs = flusher.syncs.clone();
        let thread = spawn(flusher, &platform.threads)
            .map_err(|e| io_error("start the thread of", dir, e))?;
        Ok(Self {
            index,
            durable,
            syncs,
            jobs: Mutex::new(Some(tx)),
            thread: Mutex::new(Some(thread)),
            threads: platform.threads.clone(),
        })
    }

    /// Writes the waiting jobs and ends the thread. Later calls fail.
    pub(crate) fn close(&self) {
        // Dropped before the join: the flusher ends when its queue is closed and empty.
        drop(self.jobs.lock().take());
        let thread = self.thread.lock().take();
        if let Some(FlusherThread::Thread(thread)) = thread
            && thread.join().is_err()
        {
            tracing::error!("the raft log's thread panicked");
        }
    }

    /// Returns the durable end of the log.
    pub(crate) fn durable(&self) -> Arc<DurableIndex> {
        self.durable.clone()
    }

    /// Returns the durations of the syncs so far.
    pub(crate) fn sync_times(&self) -> SyncTimes {
        self.syncs.times()
    }

    /// Returns the number of segment files.
    pub(crate) fn segments(&self) -> usize {
        self.index.lock().segments()
    }

    /// Returns the entries of `range`; blocks on the disk.
    #[cfg(feature = "sim")]
    pub(crate) fn peek(&self, range: Range<u64>) -> io::Result<Vec<Entry>> {
        let found = self.index.lock().find(range)?;
        found.into_iter().map(FoundEntry::load).collect()
    }

    #[cfg(feature = "sim")]
    pub(crate) fn purged_index(&self) -> Option<u64> {
        self.index.lock().purged.map(|purged| purged.index)
    }

    #[cfg(test)]
    pub(crate) fn limit_cache(&self, bytes: usize) {
        self.index.lock().cache_bytes_max = bytes;
    }

    #[cfg(test)]
    pub(crate) fn cached_bytes(&self) -> usize {
        self.index.lock().cached_bytes()
    }

    /// Queues a job; waits while the queue is full.
    async fn send(&self, job: LogJob) -> io::Result<()> {
        let jobs = self.jobs.lock().clone();
        match jobs {
            Some(jobs) => jobs.send(job).await.map_err(|_| closed()),
            None => Err(closed()),
        }
    }

    /// Queues a job and waits until it is durable.
    async fn send_and_wait(
        &self,
        job: impl FnOnce(oneshot::Sender<()>) -> LogJob,
    ) -> io::Result<()> {
        let (done, wait) = oneshot::channel();
        self.send(job(done)).await?;
        wait.await.map_err(|_| closed())
    }
}

impl Drop for Wal {
    fn drop(&mut self) {
        self.close();
    }
}

impl LogStore for Wal {
    fn purged(&self) -> Option<LogId> {
        self.index.lock().purged
    }

    fn last(&self) -> Option<LogId> {
        self.index.lock().last()
    }

    fn vote(&self) -> Option<Vote> {
        self.index.lock().vote
    }

    fn committed(&self) -> Option<LogId> {
        self.index.lock().committed
    }

    async fn read(&self, range: Range<u64>) -> io::Result<Vec<Entry>> {
        let found = self.index.lock().find(range)?;
        // Replication reads the newest entries all the time: these reads skip the thread pool.
        if found
            .iter()
            .all(|found| matches!(found, FoundEntry::Cached(_)))
        {
            return found.into_iter().map(FoundEntry::load).collect();
        }
        let load = move || found.into_iter().map(FoundEntry::load).collect();
        self.threads.blocking(load).await?
    }

    async fn append(&self, entries: Vec<Entry>, done: IOFlushed<TypeConfig>) -> io::Result<()> {
        // In the index before the queue: Raft may read an entry as soon as this returns, before
        // the flusher has seen it.
        {
            let mut index = self.index.lock();
            for entry in &entries {
                if index.next_index() != entry.log_id.index {
                    let message = format!(
                        "entry {} does not follow entry {:?}",
                        entry.log_id,
                        index.last().map(|last| last.index)
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
                }
                index.insert(entry.clone(), None);
            }
        }
        self.send(LogJob::Append(entries, done)).await
    }

    async fn save_vote(&self, vote: Vote) -> io::Result<()> {
        self.index.lock().vote = Some(vote);
        self.send_and_wait(|done| LogJob::Vote(vote, done)).await
    }

    async fn save_committed(&self, committed: Option<LogId>) -> io::Result<()> {
        self.index.lock().committed = committed;
        self.send(LogJob::Committed(committed)).await
    }

    async fn truncate_after(&self, last: Option<LogId>) -> io::Result<()> {
        // At once: Raft appends the entries of the new leader next, which must follow this end.
        self.index
            .lock()
            .truncate_from(last.map_or(0, |last| last.index + 1));
        self.send_and_wait(|done| LogJob::Truncate(last, done))
            .await
    }

    async fn purge(&self, upto: LogId) -> io::Result<()> {
        // Before the flusher deletes segments: no reader may find an entry whose segment is gone.
        self.index.lock().purge(upto);
        self.send_and_wait(|done| LogJob::Purge(upto, done)).await
    }
}

/// Starts the flusher, on a thread of its own or as a task of a simulation.
fn spawn(flusher: LogFlusher, threads: &StoreThreads) -> io::Result<FlusherThread> {
    match threads {
        StoreThreads::Own => std::thread::Builder::new()
            .name("raft-log".to_owned())
            .spawn(move || flusher.run())
            .map(FlusherThread::Thread),
        #[cfg(feature = "sim")]
        StoreThreads::Caller(failed) => {
            let failed = failed.clone();
            let mut task = tokio::task::JoinSet::new();
            // A task of a set: it is aborted with the log, as a thread ends with a killed process.
            task.spawn(async move { flusher.run_in_virtual_time(&*failed).await });
            Ok(FlusherThread::Task(task))
        }
    }
}

/// Builds the flusher that continues the recovered log. Creates the first segment in an empty
/// directory.
fn build_flusher(
    disk: Arc<dyn StoreDisk>,
    dir: &Path,
    owner: LogOwner,
    segment_bytes: usize,
    recovered: RecoveredLog,
    jobs: mpsc::Receiver<LogJob>,
) -> Result<(LogFlusher, Arc<Mutex<LogIndex>>), WalError> {
    let RecoveredLog {
        mut index,
        segments,
        active,
        epoch,
        ..
    } = recovered;
    let (vote, committed, purged) = (index.vote, index.committed, index.purged);
    let mut closed: std::collections::BTreeMap<_, _> = segments.into_iter().collect();
    let (active, end) = match active {
        Some(active) => active,
        None => {
            let (segment, end) = create_first_segment(&*disk, dir, owner, segment_bytes)
                .map_err(|e| io_error("create a segment in", dir, e))?;
            index.add_file(segment::path(dir, segment.number), &segment);
            (segment, end)
        }
    };
    let durable = Arc::new(DurableIndex::default());
    // Recovery has rewritten and synced the last segment, so all that was read is durable.
    durable.set(index.next_index());
    let active_highest = closed.remove(&active.number).flatten();
    let index = Arc::new(Mutex::new(index));
    let flusher = LogFlusher {
        disk,
        dir: dir.to_owned(),
        owner,
        segment_bytes,
        index: index.clone(),
        durable,
        syncs: Arc::default(),
        jobs,
        closed,
        active,
        active_highest,
        end,
        // Recovery has synced everything before `end`.
        window: end,
        // Above every epoch in the files: recovery has synced once more, and a first segment has
        // taken one epoch.
        epoch: epoch + 2,
        vote,
        committed,
        purged,
        buffer: Vec::new(),
        locations: Vec::new(),
    };
    Ok((flusher, index))
}

/// Creates the first segment of a log, and returns it with the offset behind its head.
fn create_first_segment(
    disk: &dyn StoreDisk,
    dir: &Path,
    owner: LogOwner,
    segment_bytes: usize,
) -> io::Result<(LogSegment, usize)> {
    // Without a segment nothing was recovered: no epoch, vote or commit point came before.
    let head = SegmentHead {
        cluster: owner.cluster,
        node: owner.node,
        number: 1,
        vote: None,
        committed: None,
        purged: None,
    };
    segment::create(disk, dir, &head, 1, 0, segment_bytes)
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the raft log is closed")
}
