//! What a node stands on: its disk, its threads, and where its random numbers come from.

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio::runtime::{Handle, Runtime};

use crate::disk::{RealDisk, StoreDisk};

/// Worker threads of the runtime that Raft has for itself.
const RAFT_THREADS: usize = 2;

/// Disk and threads of a node; by default the machine's.
#[derive(Clone, Debug)]
pub struct NodePlatform {
    pub(crate) disk: Arc<dyn StoreDisk>,
    pub(crate) threads: StoreThreads,
}

impl Default for NodePlatform {
    fn default() -> Self {
        Self {
            disk: Arc::new(RealDisk),
            threads: StoreThreads::Own,
        }
    }
}

/// Where the store's work runs.
#[derive(Clone)]
pub(crate) enum StoreThreads {
    /// Raft and the log have threads of their own, long disk work goes to a pool.
    Own,
    /// Everything is a task of the caller's runtime and lives in its time, so that a simulation
    /// decides what happens when. Is told of the error that would end the process.
    #[cfg(feature = "sim")]
    Caller(Arc<dyn Fn(&io::Error) + Send + Sync>),
}

impl fmt::Debug for StoreThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "Own",
            #[cfg(feature = "sim")]
            Self::Caller(_) => "Caller",
        })
    }
}

impl StoreThreads {
    /// Raft's own runtime, if it has one.
    pub(crate) fn runtime(&self) -> io::Result<Option<Runtime>> {
        match self {
            Self::Own => tokio::runtime::Builder::new_multi_thread()
                .worker_threads(RAFT_THREADS)
                .thread_name("raft")
                .enable_all()
                .build()
                .map(Some),
            #[cfg(feature = "sim")]
            Self::Caller(_) => Ok(None),
        }
    }

    /// Does `work`, which blocks on the disk.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        match self {
            Self::Own => tokio::task::spawn_blocking(work)
                .await
                .map_err(io::Error::other),
            #[cfg(feature = "sim")]
            Self::Caller(_) => Ok(work()),
        }
    }
}

/// The handle of the runtime that Raft runs on.
pub(crate) fn handle(runtime: Option<&Runtime>) -> Handle {
    runtime.map_or_else(Handle::current, |runtime| runtime.handle().clone())
}
