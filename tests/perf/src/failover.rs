//! The leader is killed: how long until the next write is acknowledged, and is anything lost?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout, timeout_at};

use crate::client::{Address, Client};
use crate::cluster::Cluster;
use crate::load::random_value;

/// Clients that write all the time.
const WRITERS: usize = 4;
/// How long a client waits for an answer before it asks another node: what is measured is no finer.
const CALL_TIMEOUT: Duration = Duration::from_millis(250);
/// Pause before a client asks the next node.
const PAUSE: Duration = Duration::from_millis(5);
/// Writes before the leader is killed and after another one has taken over.
const STEADY: Duration = Duration::from_millis(300);
/// How long no write may be acknowledged.
const OUTAGE_MAX: Duration = Duration::from_secs(60);
/// Acknowledgements that wait to be looked at.
const ACKS_MAX: usize = 1 << 16;

/// An acknowledged write.
struct Ack {
    key: Bytes,
    value: Bytes,
    began: Instant,
    ended: Instant,
}

/// What one kill showed.
#[derive(Debug)]
pub(crate) struct Outage {
    pub(crate) time: Duration,
    pub(crate) acknowledged: usize,
    pub(crate) lost: usize,
}

/// Kills the leader under writes, waits for the next acknowledgement, looks whether everything
/// that was ever acknowledged is there, and brings the killed node back.
pub(crate) async fn run(cluster: &mut Cluster, number: usize) -> Result<Outage> {
    let leader = cluster.settle().await?;
    let stop = Arc::new(AtomicBool::new(false));
    let (acks, mut acked) = mpsc::channel(ACKS_MAX);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let writer = Writer {
            clients: clients(&cluster.addresses())?,
            at: leader,
            prefix: format!("kill-{number}-{writer}"),
            acks: acks.clone(),
            stop: stop.clone(),
        };
        writers.spawn(writer.run());
    }
    drop(acks);
    sleep(STEADY).await;
    let killed = Instant::now();
    cluster.kill(leader).await?;
    let mut all = Vec::new();
    let outage = loop {
        match timeout_at((killed + OUTAGE_MAX).into(), acked.recv()).await {
            Ok(Some(ack)) => {
                let (began, ended) = (ack.began, ack.ended);
                all.push(ack);
                // What began before the kill may have been acknowledged by the old leader.
                if began > killed {
                    break ended - killed;
                }
            }
            _ => bail!("no write was acknowledged within {OUTAGE_MAX:?} of the kill"),
        }
    };
    sleep(STEADY).await;
    stop.store(true, Ordering::Relaxed);
    while let Some(ack) = acked.recv().await {
        all.push(ack);
    }
    while let Some(done) = writers.join_next().await {
        done?;
    }
    let lost = missing(&cluster.addresses(), leader, &all).await?;
    cluster.restart(leader)?;
    cluster.settle().await?;
    Ok(Outage {
        time: outage,
        acknowledged: all.len(),
        lost,
    })
}

fn clients(addresses: &[Address]) -> Result<Vec<Client>> {
    addresses.iter().map(Address::connect_lazy).collect()
}

struct Writer {
    clients: Vec<Client>,
    at: usize,
    prefix: String,
    acks: mpsc::Sender<Ack>,
    stop: Arc<AtomicBool>,
}

impl Writer {
    /// Writes new keys, each again and again until it is acknowledged.
    async fn run(mut self) {
        for number in 0.. {
            let key = Bytes::from(format!("{}-{number}", self.prefix));
            let value = random_value();
            loop {
                if self.stop.load(Ordering::Relaxed) {
                    return;
                }
                let began = Instant::now();
                let put = self.clients[self.at].put(key.clone(), value.clone());
                if matches!(timeout(CALL_TIMEOUT, put).await, Ok(Ok(()))) {
                    let ended = Instant::now();
                    let ack = Ack {
                        key,
                        value,
                        began,
                        ended,
                    };
                    if self.acks.send(ack).await.is_err() {
                        return;
                    }
                    break;
                }
                self.at = (self.at + 1) % self.clients.len();
                sleep(PAUSE).await;
            }
        }
    }
}

/// Counts acknowledged writes that a linearizable read does not find.
async fn missing(addresses: &[Address], dead: usize, acks: &[Ack]) -> Result<usize> {
    let mut tasks = JoinSet::new();
    let chunk = acks.len().div_ceil(16).max(1);
    for acks in acks.chunks(chunk) {
        let mut clients = clients(addresses)?;
        clients.remove(dead);
        let wanted: Vec<_> = acks
            .iter()
            .map(|a| (a.key.clone(), a.value.clone()))
            .collect();
        tasks.spawn(async move {
            let mut lost = 0;
            for (key, value) in wanted {
                if read(&mut clients, key).await? != Some(value) {
                    lost += 1;
                }
            }
            anyhow::Ok(lost)
        });
    }
    let mut lost = 0;
    while let Some(done) = tasks.join_next().await {
        lost += done??;
    }
    Ok(lost)
}

async fn read(clients: &mut [Client], key: Bytes) -> Result<Option<Bytes>> {
    let until = Instant::now() + OUTAGE_MAX;
    loop {
        for client in &mut *clients {
            if let Ok(Ok(value)) = timeout(CALL_TIMEOUT, client.get(key.clone())).await {
                return Ok(value);
            }
        }
        if Instant::now() > until {
            bail!("nobody answers a read");
        }
        sleep(PAUSE).await;
    }
}
