//! The raft log in segment files, with one flusher thread and one sync for all that wait.
//!
//! Invariants: records are durable in the order in which they were asked for; a caller is told
//! only after the sync; what was acknowledged is never cut; nothing is purged before the state
//! that contains it is durable (the caller's duty, see [`crate::machine`]).

pub(crate) mod durable;
pub(crate) mod flusher;
pub(crate) mod frame;
pub(crate) mod index;
pub(crate) mod recover;
pub(crate) mod segment;
pub(crate) mod syncs;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use openraft::storage::IOFlushed;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use durable::Durable;
use flusher::{Flusher, Job, lock};
use index::{Found, Index};
pub use recover::WalError;
use recover::{Recovered, io_error, recover};
use segment::Head;
use syncs::{SyncTimes, Syncs};

use crate::disk::Disk;
use crate::log_store::LogStore;
use crate::platform::{Platform, Threads};
use crate::raft_types::{Entry, LogId, TypeConfig, Vote};

/// Jobs that may wait for the flusher; Raft waits when it is full.
const JOBS_MAX: usize = 1024;

/// The log in segment files.
#[derive(Debug)]
pub(crate) struct Wal {
    index: Arc<Mutex<Index>>,
    durable: Arc<Durable>,
    syncs: Arc<Syncs>,
    /// `None` once closed.
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    thread: Mutex<Option<FlusherThread>>,
    threads: Threads,
}

/// What the flusher runs on.
#[derive(Debug)]
enum FlusherThread {
    Thread(JoinHandle<()>),
    /// Ends with the log, wherever it is.
    #[cfg(feature = "sim")]
    Task(#[expect(dead_code, reason = "owns the task")] tokio::task::JoinSet<()>),
}

/// Who owns the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) cluster: Uuid,
    pub(crate) node: u64,
}

impl Wal {
    /// Opens or makes the log in `dir`; an interrupted write at its end is cut.
    pub(crate) fn open(
        platform: &Platform,
        dir: &Path,
        owner: Owner,
        segment_bytes: usize,
    ) -> Result<Self, WalError> {
        let disk = &platform.disk;
        disk.create_dir(dir)
            .map_err(|e| io_error("create", dir, e))?;
        let recovered = recover(&**disk, dir, owner.cluster, owner.node)?;
        if recovered.cut_bytes > 0 {
            tracing::warn!(
                dir = %dir.display(),
                bytes = recovered.cut_bytes,
                "cut the end of the raft log: a write was interrupted before it was acknowledged"
            );
        }
        let (tx, rx) = mpsc::channel(JOBS_MAX);
        let (flusher, index) = start(disk.clone(), dir, owner, segment_bytes, recovered, rx)?;
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

    /// Writes what waits and ends the thread. Later calls fail.
    pub(crate) fn close(&self) {
        let jobs = self
            .jobs
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        drop(jobs);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        if let Some(FlusherThread::Thread(thread)) = thread
            && thread.join().is_err()
        {
            tracing::error!("the raft log's thread panicked");
        }
    }

    /// How far it is on disk.
    pub(crate) fn durable(&self) -> Arc<Durable> {
        self.durable.clone()
    }

    /// How long its syncs took.
    pub(crate) fn sync_times(&self) -> SyncTimes {
        self.syncs.times()
    }

    /// Files of the log.
    pub(crate) fn segments(&self) -> usize {
        lock(&self.index).segments()
    }

    /// The entries of `range`, without waiting.
    #[cfg(feature = "sim")]
    pub(crate) fn peek(&self, range: Range<u64>) -> io::Result<Vec<Entry>> {
        let found = lock(&self.index).find(range)?;
        found.into_iter().map(Found::load).collect()
    }

    #[cfg(feature = "sim")]
    pub(crate) fn purged_index(&self) -> Option<u64> {
        lock(&self.index).purged.map(|purged| purged.index)
    }

    #[cfg(test)]
    pub(crate) fn limit_cache(&self, bytes: usize) {
        lock(&self.index).cache_bytes_max = bytes;
    }

    #[cfg(test)]
    pub(crate) fn cached_bytes(&self) -> usize {
        lock(&self.index).cached_bytes()
    }

    async fn send(&self, job: Job) -> io::Result<()> {
        let jobs = self
            .jobs
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        match jobs {
            Some(jobs) => jobs.send(job).await.map_err(|_| closed()),
            None => Err(closed()),
        }
    }

    async fn ask(&self, job: impl FnOnce(oneshot::Sender<()>) -> Job) -> io::Result<()> {
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
        lock(&self.index).purged
    }

    fn last(&self) -> Option<LogId> {
        lock(&self.index).last()
    }

    fn vote(&self) -> Option<Vote> {
        lock(&self.index).vote
    }

    fn committed(&self) -> Option<LogId> {
        lock(&self.index).committed
    }

    async fn read(&self, range: Range<u64>) -> io::Result<Vec<Entry>> {
        let found = lock(&self.index).find(range)?;
        if found.iter().all(|f| matches!(f, Found::Cached(_))) {
            return found.into_iter().map(Found::load).collect();
        }
        let load = move || found.into_iter().map(Found::load).collect();
        self.threads.blocking(load).await?
    }

    async fn append(&self, entries: Vec<Entry>, done: IOFlushed<TypeConfig>) -> io::Result<()> {
        {
            let mut index = lock(&self.index);
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
        self.send(Job::Append(entries, done)).await
    }

    async fn save_vote(&self, vote: Vote) -> io::Result<()> {
        lock(&self.index).vote = Some(vote);
        self.ask(|done| Job::Vote(vote, done)).await
    }

    async fn save_committed(&self, committed: Option<LogId>) -> io::Result<()> {
        lock(&self.index).committed = committed;
        self.send(Job::Committed(committed)).await
    }

    async fn truncate_after(&self, last: Option<LogId>) -> io::Result<()> {
        lock(&self.index).truncate_from(last.map_or(0, |last| last.index + 1));
        self.ask(|done| Job::Truncate(last, done)).await
    }

    async fn purge(&self, upto: LogId) -> io::Result<()> {
        lock(&self.index).purge(upto);
        self.ask(|done| Job::Purge(upto, done)).await
    }
}

fn spawn(flusher: Flusher, threads: &Threads) -> io::Result<FlusherThread> {
    match threads {
        Threads::Own => std::thread::Builder::new()
            .name("raft-log".to_owned())
            .spawn(move || flusher.run())
            .map(FlusherThread::Thread),
        #[cfg(feature = "sim")]
        Threads::Caller(failed) => {
            let failed = failed.clone();
            let mut task = tokio::task::JoinSet::new();
            task.spawn(async move { flusher.run_in_virtual_time(&*failed).await });
            Ok(FlusherThread::Task(task))
        }
    }
}

fn start(
    disk: Arc<dyn Disk>,
    dir: &Path,
    owner: Owner,
    segment_bytes: usize,
    recovered: Recovered,
    jobs: mpsc::Receiver<Job>,
) -> Result<(Flusher, Arc<Mutex<Index>>), WalError> {
    let Recovered {
        mut index,
        segments,
        active,
        epoch,
        ..
    } = recovered;
    let Owner { cluster, node } = owner;
    let (vote, committed, purged) = (index.vote, index.committed, index.purged);
    let mut closed: std::collections::BTreeMap<_, _> = segments.into_iter().collect();
    let (active, end) = match active {
        Some(active) => active,
        None => {
            let head = Head {
                cluster,
                node,
                number: 1,
                vote,
                committed,
                purged,
            };
            let (segment, end) = segment::create(&*disk, dir, &head, epoch + 1, 0, segment_bytes)
                .map_err(|e| io_error("create a segment in", dir, e))?;
            index.add_file(segment::path(dir, segment.number), &segment);
            (segment, end)
        }
    };
    let durable = Arc::new(Durable::default());
    durable.set(index.next_index());
    let active_highest = closed.remove(&active.number).flatten();
    let index = Arc::new(Mutex::new(index));
    let flusher = Flusher {
        disk,
        dir: dir.to_owned(),
        cluster,
        node,
        segment_bytes,
        index: index.clone(),
        durable,
        syncs: Arc::default(),
        jobs,
        closed,
        active,
        active_highest,
        end,
        window: end,
        epoch: epoch + 2,
        vote,
        committed,
        purged,
        buffer: Vec::new(),
        places: Vec::new(),
    };
    Ok((flusher, index))
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the raft log is closed")
}
