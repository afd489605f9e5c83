//! A cluster in one process, connected in memory. Any link between two members can be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::task::JoinSet;

use super::{Ledger, config, put};
use crate::{Channel, ClusterMember, Lane, MemberChange, StartMode, Store, StoreConfig, Transport};

/// The members, and the links that are cut.
#[derive(Debug, Default)]
pub(crate) struct Mesh {
    stores: Mutex<BTreeMap<u64, Store<Ledger>>>,
    cut: Mutex<BTreeSet<(u64, u64)>>,
    /// Members whose messages are lost in both directions while their channels stay open.
    silent: Mutex<BTreeSet<u64>>,
    opened: Mutex<BTreeMap<Lane, usize>>,
    tasks: Mutex<JoinSet<()>>,
}

/// Transport of one member.
#[derive(Debug)]
struct Way {
    from: u64,
    mesh: Arc<Mesh>,
}

impl Transport for Way {
    fn open(&self, member: &ClusterMember, lane: Lane) -> BoxFuture<'static, io::Result<Channel>> {
        let (mesh, from, to) = (self.mesh.clone(), self.from, member.node);
        Box::pin(async move {
            let store = mesh.stores.lock().unwrap().get(&to).cloned();
            let is_cut = mesh
                .cut
                .lock()
                .unwrap()
                .contains(&(from.min(to), from.max(to)));
            let Some(store) = store.filter(|_| !is_cut) else {
                return Err(io::Error::other("cut off"));
            };
            *mesh.opened.lock().unwrap().entry(lane).or_default() += 1;
            let (near, far) = Channel::pair(16);
            let served = async move {
                if let Err(error) = store.serve_peer(from, far).await {
                    eprintln!("{from} -> {to} {lane:?}: {error}");
                }
            };
            let mut served = Box::pin(served);
            let silence = mesh.clone();
            let heard = std::future::poll_fn(move |context| {
                let silent = silence.silent.lock().unwrap();
                if silent.contains(&from) || silent.contains(&to) {
                    return std::task::Poll::Pending;
                }
                drop(silent);
                served.as_mut().poll(context)
            });
            mesh.tasks.lock().unwrap().spawn(heard);
            Ok(near)
        })
    }
}

impl Mesh {
    pub(crate) fn config(self: &Arc<Self>, dir: &Path, node: u64, begin: StartMode) -> StoreConfig {
        StoreConfig {
            node_id: node,
            begin,
            peer_address: format!("memory:{node}"),
            transport: Arc::new(Way {
                from: node,
                mesh: self.clone(),
            }),
            ..config(&dir.join(node.to_string()))
        }
    }

    pub(crate) async fn start(self: &Arc<Self>, config: StoreConfig) -> Store<Ledger> {
        let store = Store::open(config).await.unwrap();
        self.stores
            .lock()
            .unwrap()
            .insert(store.node_id(), store.clone());
        store
    }

    /// A cluster with voters 1 to `count`; the first one leads.
    pub(crate) async fn cluster(self: &Arc<Self>, dir: &Path, count: u64) -> Vec<Store<Ledger>> {
        let first = self.start(self.config(dir, 1, StartMode::Form)).await;
        let mut stores = vec![first.clone()];
        for node in 2..=count {
            let begin = StartMode::Join(first.cluster_id());
            let store = self.start(self.config(dir, node, begin)).await;
            self.add(&first, node).await;
            wait_for("the learner to catch up", || {
                let promote = MemberChange::Promote { node };
                let first = first.clone();
                async move { first.change_members_here(&promote).await.is_ok() }
            })
            .await;
            stores.push(store);
        }
        stores
    }

    pub(crate) async fn add(&self, leader: &Store<Ledger>, node: u64) {
        let address = format!("memory:{node}");
        let add = MemberChange::Add { node, address };
        leader.change_members_here(&add).await.unwrap();
    }

    /// Cuts every link of `node`: new channels are refused, open ones end with their tasks.
    pub(crate) fn cut_off(&self, node: u64) {
        let others: Vec<u64> = self.stores.lock().unwrap().keys().copied().collect();
        let ways = others.iter().map(|o| (node.min(*o), node.max(*o)));
        self.cut.lock().unwrap().extend(ways);
        self.tasks.lock().unwrap().abort_all();
    }

    /// Loses all messages from and to `node` from now on; its channels stay open.
    pub(crate) fn silence(&self, node: u64) {
        self.silent.lock().unwrap().insert(node);
    }

    pub(crate) fn heal(&self) {
        self.cut.lock().unwrap().clear();
    }

    pub(crate) async fn stop(&self, node: u64) {
        let store = self.stores.lock().unwrap().remove(&node);
        if let Some(store) = store {
            store.shutdown().await;
        }
    }

    pub(crate) fn opened(&self, lane: Lane) -> usize {
        self.opened.lock().unwrap().get(&lane).copied().unwrap_or(0)
    }
}

pub(crate) async fn fill(store: &Store<Ledger>) {
    for n in 0..8_u64 {
        // Random text does not compress, so the snapshot has many pieces.
        let mut seed = n + 1;
        let value: String = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b' ' + u8::try_from((seed >> 33) % 90).unwrap())
        })
        .take(500_000)
        .collect();
        put(store, &format!("key-{n}"), &value).await;
    }
}

/// Purges the log, so that a member that joins needs the snapshot.
pub(crate) async fn only_snapshot(store: &Store<Ledger>) {
    store.snapshot().await.unwrap();
    wait_for("a purged log", || async {
        store.metrics().purged.is_some()
    })
    .await;
}

/// Waits for a condition, with a deadline.
pub(crate) async fn wait_for<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < Duration::from_secs(30), "no {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
