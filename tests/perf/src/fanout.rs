//! How long a change takes to a thousand watchers.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::task::JoinSet;
use tonic::Status;

use crate::cluster::Cluster;
use crate::load::random_value;
use crate::sample::Latencies;

/// Watchers in all, each with a stream of its own.
const WATCHERS: usize = 1000;
/// Connections that they share.
const CONNECTIONS: usize = 10;
/// Between two writes.
const INTERVAL: Duration = Duration::from_millis(200);
/// How long the last event may take.
const PATIENCE: Duration = Duration::from_secs(20);
const KEY: &[u8] = b"watched";

/// When each write began.
type Began = Arc<Mutex<Vec<Instant>>>;

/// Writes for `time` and measures, for each watcher, the time from a write's begin to its event.
pub(crate) async fn run(cluster: &mut Cluster, time: Duration) -> Result<Latencies> {
    let leader = cluster.leader().await?;
    let writes = usize::try_from(time.as_millis() / INTERVAL.as_millis())?.max(1);
    let began = Began::default();
    let mut watchers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let mut client = leader.connect().await?;
        for _ in 0..WATCHERS / CONNECTIONS {
            let events = client.watch(Bytes::from_static(KEY)).await?;
            watchers.spawn(watch(events, began.clone(), writes));
        }
    }
    let mut writer = leader.connect().await?;
    let mut ticks = tokio::time::interval(INTERVAL);
    for number in 0..writes {
        ticks.tick().await;
        let mut value = u64::try_from(number)?.to_be_bytes().to_vec();
        value.extend_from_slice(&random_value()[8..]);
        began
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(Instant::now());
        writer.put(Bytes::from_static(KEY), value.into()).await?;
    }
    let mut latencies = Latencies::default();
    let all = async {
        while let Some(done) = watchers.join_next().await {
            latencies.extend(done??);
        }
        anyhow::Ok(())
    };
    let delivered = tokio::time::timeout(PATIENCE, all).await;
    delivered.context("not every watcher got every event")??;
    Ok(latencies)
}

/// Sees every write, in order.
async fn watch(
    mut events: BoxStream<'static, Result<Bytes, Status>>,
    began: Began,
    writes: usize,
) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for number in 0..writes {
        let value = events.next().await.context("a watch ended")??;
        let arrived = Instant::now();
        if value.get(..8) != Some(&u64::try_from(number)?.to_be_bytes()[..]) {
            bail!("a watcher missed event {number}");
        }
        let began = began
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let began = began.get(number).context("an event before its write")?;
        latencies.add(arrived - *began);
    }
    Ok(latencies)
}
