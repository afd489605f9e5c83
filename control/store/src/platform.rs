//! The disk and the threads of a node, which a simulation replaces.

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio::runtime::{Handle, Runtime};

use crate::disk::{RealDisk, StoreDisk};

/// Worker threads of Raft's own runtime. It is apart from the callers' runtime, so that a busy API
/// does not delay heartbeats.
const RAFT_THREADS: usize = 2;

/// Disk and threads of a node. The default is the machine's.
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

/// The threads on which the store works.
#[derive(Clone)]
pub(crate) enum StoreThreads {
    /// Raft and the log have threads of their own; blocking disk work goes to a thread pool.
    Own,
    /// Everything is a task of the caller's runtime and uses its virtual time, so that a simulation
    /// decides the order. The function is called with the error that would end the process.
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
    /// Builds Raft's own runtime; `None` if Raft runs on the caller's.
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

    /// Runs `work`, which blocks on the disk, apart from the async tasks.
    ///
    /// # Errors
    /// When `work` panicked, or the runtime shuts down before it begins.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        match self {
            Self::Own => tokio::task::spawn_blocking(work)
                .await
                .map_err(io::Error::other),
            #[cfg(feature = "sim")]
            // In place: on a pool of threads the order of the work would differ from run to run.
            Self::Caller(_) => Ok(work()),
        }
    }
}

/// Returns the handle of the runtime that Raft runs on: `runtime`, or else the caller's.
pub(crate) fn handle(runtime: Option<&Runtime>) -> Handle {
    runtime.map_or_else(Handle::current, |runtime| runtime.handle().clone())
}
