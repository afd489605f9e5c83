//! Clients that each have one call on its way at any time.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use rand::Rng;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::cluster::Cluster;
use crate::sample::Latencies;

/// Keys that are written and read.
pub(crate) const KEYS: u32 = 10_000;
/// Bytes of a value.
pub(crate) const VALUE_BYTES: usize = 256;
/// Clients that share a connection.
const CLIENTS_PER_CONNECTION: usize = 8;
/// Load before anything is counted.
const WARM_UP: Duration = Duration::from_millis(500);
/// Calls at the same time while the keys are written for the first time.
const FILLERS: u32 = 100;

/// What the clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Write,
    Read,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) per_s: f64,
    pub(crate) latencies: Latencies,
    /// Of all nodes, per call.
    pub(crate) cpu_us: f64,
}

/// Has `clients` work on the leader for `time`.
pub(crate) async fn run(
    cluster: &mut Cluster,
    work: Work,
    clients: usize,
    time: Duration,
) -> Result<Load> {
    let leader = cluster.leader().await?;
    let mut tasks = JoinSet::new();
    let start = Instant::now() + WARM_UP;
    let span = (start, start + time);
    let mut connection = leader.connect().await?;
    for client in 0..clients {
        if client > 0 && client % CLIENTS_PER_CONNECTION == 0 {
            connection = leader.connect().await?;
        }
        tasks.spawn(one(connection.clone(), work, span));
    }
    tokio::time::sleep_until(start.into()).await;
    let cpu_before = cluster.cpu_us()?;
    tokio::time::sleep_until(span.1.into()).await;
    let cpu = cluster.cpu_us()? - cpu_before;
    let mut latencies = Latencies::default();
    while let Some(done) = tasks.join_next().await {
        latencies.extend(done??);
    }
    if latencies.len() == 0 {
        bail!("{} answered nothing", cluster.system.name());
    }
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let (calls, cpu) = (latencies.len() as f64, cpu as f64);
    Ok(Load {
        per_s: calls / time.as_secs_f64(),
        cpu_us: cpu / calls,
        latencies,
    })
}

/// One client; only calls that begin and end within `span` count.
async fn one(mut client: Client, work: Work, span: (Instant, Instant)) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    let value = random_value();
    loop {
        let key = key(rand::rng().random_range(0..KEYS));
        let began = Instant::now();
        if began >= span.1 {
            return Ok(latencies);
        }
        match work {
            Work::Write => client.put(key, value.clone()).await?,
            Work::Read => drop(client.get(key).await?.context("a key is gone")?),
        }
        let ended = Instant::now();
        if began >= span.0 && ended <= span.1 {
            latencies.add(ended - began);
        }
    }
}

/// Writes every key once.
pub(crate) async fn fill(cluster: &mut Cluster) -> Result<()> {
    let leader = cluster.leader().await?;
    let mut tasks = JoinSet::new();
    let client = leader.connect().await?;
    for filler in 0..FILLERS {
        let mut client = client.clone();
        tasks.spawn(async move {
            let value = random_value();
            for number in (filler..KEYS).step_by(FILLERS as usize) {
                client.put(key(number), value.clone()).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

fn key(number: u32) -> Bytes {
    format!("key-{number:08}").into()
}

/// A value that does not compress.
pub(crate) fn random_value() -> Bytes {
    let mut value = vec![0; VALUE_BYTES];
    rand::rng().fill(&mut value[..]);
    value.into()
}
