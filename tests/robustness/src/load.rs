//! Clients and watchers at work on a [`Site`].

use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::site::Site;
use crate::watching::{Told, watch};
use crate::workload::Workload;

/// Clients at work.
#[derive(Debug)]
pub struct Clients {
    runtime: Handle,
    tasks: JoinSet<()>,
}

impl Clients {
    /// Waits until all have ended their last call; see [`Workload::stop`].
    ///
    /// # Errors
    /// One of them panicked.
    pub fn finish(mut self) -> Result<()> {
        self.runtime.block_on(async {
            while let Some(ended) = self.tasks.join_next().await {
                ended.context("a client")?;
            }
            Ok(())
        })
    }
}

/// Watchers at work.
#[derive(Debug)]
pub struct Watchers {
    runtime: Handle,
    tasks: JoinSet<Result<Told>>,
}

impl Watchers {
    /// What they were told up to the workload's end; see [`Site::end`].
    ///
    /// # Errors
    /// One of them was told something that cannot be, or never of the end.
    pub fn finish(mut self) -> Result<Vec<Told>> {
        self.runtime.block_on(async {
            let mut told = Vec::new();
            while let Some(ended) = self.tasks.join_next().await {
                told.push(ended.context("a watcher")??);
            }
            Ok(told)
        })
    }
}

impl Site {
    /// Starts clients.
    pub fn start_clients(&self, workload: &Arc<Workload>, clients: usize) -> Clients {
        let runtime = self.handle();
        let mut tasks = JoinSet::new();
        for number in 0..clients {
            tasks.spawn_on(Arc::clone(workload).client(number), &runtime);
        }
        Clients { runtime, tasks }
    }

    /// Starts watchers, each at another node.
    pub fn start_watchers(&self, workload: &Arc<Workload>, watchers: usize) -> Watchers {
        let runtime = self.handle();
        let mut tasks = JoinSet::new();
        for number in 0..watchers {
            tasks.spawn_on(watch(Arc::clone(workload), number), &runtime);
        }
        Watchers { runtime, tasks }
    }
}
