//! What is asked of both systems, by the same clients.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::http::Client;
use super::{ironic, ours};
use crate::procfs;
use crate::sample::Latencies;

/// Numbers for objects that are made: each is used once.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A system that is asked, and how.
#[derive(Clone, Debug)]
pub(super) enum Asks {
    Ours(ours::Asks),
    Ironic(ironic::Asks),
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// 1,000 machines.
    List,
    /// 1,000 machines with everything; of ours the same.
    ListDetail,
    /// One machine.
    Get,
    /// A machine that was not known.
    Create,
    /// A machine for a project.
    Allocate,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) latencies: Latencies,
    pub(super) per_s: f64,
    /// Of all processes of the system, per call.
    pub(super) cpu_us: f64,
    /// Calls that failed.
    pub(super) failed: usize,
}

impl Asks {
    fn client(&self) -> Client {
        Client::new(match self {
            Self::Ours(ours) => ours.address,
            Self::Ironic(ironic) => ironic.address,
        })
    }

    async fn ask(&self, client: &mut Client, work: Work) -> Result<Duration> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let call = match (self, work) {
            (Self::Ours(it), Work::List | Work::ListDetail) => it.list(),
            (Self::Ours(it), Work::Get) => it.get(number),
            (Self::Ours(it), Work::Create) => it.create(number),
            (Self::Ours(it), Work::Allocate) => it.allocate(number),
            (Self::Ironic(it), Work::List) => it.list(),
            (Self::Ironic(it), Work::ListDetail) => it.list_detail(),
            (Self::Ironic(it), Work::Get) => it.get(number),
            (Self::Ironic(it), Work::Create) => it.create(number),
            (Self::Ironic(it), Work::Allocate) => return it.allocate(client, number).await,
        };
        Ok(client.call(&call).await?.1)
    }

    /// How many machines a list answers.
    pub(super) async fn listed(&self) -> Result<usize> {
        let (list, field) = match self {
            Self::Ours(ours) => (ours.list(), "machines"),
            Self::Ironic(ironic) => (ironic.list(), "nodes"),
        };
        let answer = self.client().json(&list).await?;
        let machines = answer[field].as_array().context("no list was answered")?;
        Ok(machines.len())
    }
}

/// Has `clients` make `calls` calls together. `pids` are the system's processes; their children
/// count as well.
pub(super) async fn run(
    asks: &Asks,
    pids: &[u32],
    work: Work,
    clients: usize,
    calls: usize,
) -> Result<Measured> {
    let left = Arc::new(AtomicU32::new(u32::try_from(calls)?));
    let ready = Arc::new(Barrier::new(clients + 1));
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let (asks, left, ready) = (asks.clone(), Arc::clone(&left), Arc::clone(&ready));
        tasks.spawn(async move {
            let mut client = asks.client();
            // The connection stands, and the way is warm.
            let warm = asks.ask(&mut client, Work::Get).await;
            ready.wait().await;
            warm?;
            one(&asks, &mut client, work, &left).await
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
    anyhow::ensure!(done > 0, "nothing was done");
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
async fn one(
    asks: &Asks,
    client: &mut Client,
    work: Work,
    left: &AtomicU32,
) -> Result<(Latencies, Vec<anyhow::Error>)> {
    let (mut latencies, mut errors) = (Latencies::default(), Vec::new());
    let take = |left: u32| left.checked_sub(1);
    while left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
        .is_ok()
    {
        match asks.ask(client, work).await {
            Ok(took) => latencies.add(took),
            // Under load Ironic may refuse an allocation; that is an outcome, not our end.
            Err(error) if work == Work::Allocate => errors.push(error),
            Err(error) => return Err(error),
        }
    }
    Ok((latencies, errors))
}

fn cpu_us(family: &BTreeSet<u32>) -> Result<u64> {
    family.iter().map(|pid| procfs::cpu_us(*pid)).sum()
}

/// Memory of processes and their children, MiB.
pub(super) fn rss_mib(pids: &[u32]) -> Result<f64> {
    let family = procfs::family(pids)?;
    let kib: Result<u64> = family.iter().map(|pid| procfs::rss_kib(*pid)).sum();
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let kib = kib? as f64;
    Ok(kib / 1024.0)
}
