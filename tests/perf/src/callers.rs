//! Clients that call a system at the same time, and what their calls cost it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::api::http::Client;
use crate::procfs;
use crate::sample::Latencies;

/// A system that is called, and how. Cheap to clone: each client has its own.
pub(crate) trait CalledSystem: Clone + Send + Sync + 'static {
    /// The kinds of calls.
    type Work: Copy + Send + Sync + 'static;

    /// The address that the clients connect to.
    fn address(&self) -> SocketAddr;

    /// Makes one call; the time that it took.
    fn call(
        &self,
        client: &mut Client,
        work: Self::Work,
    ) -> impl Future<Output = Result<Duration>> + Send;

    /// Makes a call that costs little, so that the connection stands and the way is warm.
    fn warm(&self, client: &mut Client) -> impl Future<Output = Result<Duration>> + Send;

    /// `true` if a call that fails is an outcome, and not the end of the bench.
    fn may_fail(work: Self::Work) -> bool;
}

/// The calls of all clients of one run.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) latencies: Latencies,
    pub(crate) per_s: f64,
    /// Of all processes of the system, per call.
    pub(crate) cpu_us: f64,
    /// Calls that failed.
    pub(crate) failed: usize,
}

/// Has `clients` make `calls` calls together. `pids` are the system's processes; their children
/// count as well.
pub(crate) async fn run<S: CalledSystem>(
    system: &S,
    pids: &[u32],
    work: S::Work,
    clients: usize,
    calls: usize,
) -> Result<Measured> {
    let left = Arc::new(AtomicU32::new(u32::try_from(calls)?));
    let ready = Arc::new(Barrier::new(clients + 1));
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let (system, left, ready) = (system.clone(), Arc::clone(&left), Arc::clone(&ready));
        tasks.spawn(async move {
            let mut client = Client::new(system.address());
            let warm = system.warm(&mut client).await;
            ready.wait().await;
            warm?;
            one(&system, &mut client, work, &left).await
        });
    }
    let family = procfs::family(pids)?;
    ready.wait().await;
    let (began, cpu_before) = (Instant::now(), cpu_us(&family)?);
    let (mut latencies, mut errors) = (Latencies::default(), Vec::new());
    while let Some(done) = tasks.join_next().await {
        let (its, failures) = done??;
        latencies.extend(its);
        errors.extend(failures);
    }
    let (time, cpu) = (began.elapsed(), cpu_us(&family)? - cpu_before);
    let done = latencies.len();
    if let Some(error) = errors.first() {
        eprintln!("        {} of {calls} failed, e.g. {error:#}", errors.len());
    }
    ensure!(done > 0, "nothing was done");
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let (done, cpu) = (done as f64, cpu as f64);
    Ok(Measured {
        latencies,
        per_s: done / time.as_secs_f64(),
        cpu_us: cpu / done,
        failed: errors.len(),
    })
}

/// One client: takes calls until none is left.
async fn one<S: CalledSystem>(
    system: &S,
    client: &mut Client,
    work: S::Work,
    left: &AtomicU32,
) -> Result<(Latencies, Vec<anyhow::Error>)> {
    let (mut latencies, mut errors) = (Latencies::default(), Vec::new());
    let take = |left: u32| left.checked_sub(1);
    while left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
        .is_ok()
    {
        match system.call(client, work).await {
            Ok(took) => latencies.add(took),
            Err(error) if S::may_fail(work) => errors.push(error),
            Err(error) => return Err(error),
        }
    }
    Ok((latencies, errors))
}

fn cpu_us(family: &BTreeSet<u32>) -> Result<u64> {
    family.iter().map(|pid| procfs::cpu_us(*pid)).sum()
}

/// Memory of processes and their children, MiB.
pub(crate) fn rss_mib(pids: &[u32]) -> Result<f64> {
    let family = procfs::family(pids)?;
    let kib: Result<u64> = family.iter().map(|pid| procfs::rss_kib(*pid)).sum();
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let kib = kib? as f64;
    Ok(kib / 1024.0)
}
