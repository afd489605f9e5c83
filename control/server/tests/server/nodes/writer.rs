//! A client that writes in the background while a test disturbs the cluster.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use proto_public::api::v2::ProjectServiceCreateRequest;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Cluster, TENANT, eventually};

/// Makes one project after the other, through one node after the other.
pub(crate) struct Writer {
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Writer {
    /// Waits until so many more writes were acknowledged.
    pub(crate) async fn progress(&self, writes: usize) {
        let count = || self.acknowledged.lock().unwrap().len();
        let goal = count() + writes;
        eventually("progress of the writer", || async {
            match count() {
                now if now >= goal => Ok(()),
                now => Err(format!("{now} of {goal} writes were acknowledged")),
            }
        })
        .await;
    }

    /// Names of what was acknowledged.
    pub(crate) async fn finish(mut self) -> BTreeSet<String> {
        self.stop.cancel();
        while let Some(ended) = self.task.join_next().await {
            ended.unwrap();
        }
        let names = self.acknowledged.lock().unwrap();
        names.clone()
    }
}

impl Cluster {
    /// Starts a writer that uses every node of the cluster.
    pub(crate) fn writer(&self) -> Writer {
        let clients: Vec<_> = (0..self.nodes.len()).map(|at| self.client(at)).collect();
        let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
        let stop = CancellationToken::new();
        let (names, stopped) = (acknowledged.clone(), stop.clone());
        let mut task = JoinSet::new();
        task.spawn(async move {
            for number in 0_u64.. {
                if stopped.is_cancelled() {
                    return;
                }
                let at = usize::try_from(number).unwrap() % clients.len();
                let name = format!("written-{number}");
                let request = ProjectServiceCreateRequest {
                    login: TENANT.to_owned(),
                    name: name.clone(),
                    ..Default::default()
                };
                // Of a write that failed nobody knows whether it will be there.
                if clients[at].projects().create(request).await.is_ok() {
                    names.lock().unwrap().insert(name);
                }
            }
        });
        Writer {
            acknowledged,
            stop,
            task,
        }
    }
}
