//! Both links, measured in turn.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use proto_identity::Credential;
use tokio::task::JoinSet;

use super::ask::{Dial, Session, Sockets};
use super::ca::{Ca, TRUST_DOMAIN};
use super::datagram;
use super::serve::Link;
use super::{Bench, Part};
use crate::certs::Certs;
use crate::cluster::{POLL, free_ports};
use crate::process::Process;
use crate::procfs;
use crate::sample::Latencies;

/// Handshakes at the same time.
const DIALLERS: usize = 32;
/// Sessions that call at the same time.
const SESSIONS: usize = 1000;
/// Calls at the same time on one session: as many as the product permits.
const CALLS: usize = 64;
/// Slices of a row of a round, on each link.
const SLICES: u32 = 4;
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long memory is given to settle.
const SETTLE: Duration = Duration::from_secs(2);

/// A server of one link, and how it is dialled.
struct Side {
    link: Link,
    process: Process,
    dial: Dial,
}

impl Side {
    async fn start(bench: &Bench, link: Link, name: &str) -> Result<Self> {
        let dir = bench.dir.join(name);
        std::fs::create_dir(&dir)?;
        let port = free_ports(1)?;
        let port = port.first().context("no port")?;
        let address = SocketAddr::from(([127, 0, 0, 1], *port));
        let dial = match link {
            Link::Ours => Dial::Ours {
                address,
                sockets: Sockets::bind()?,
                credentials: agents(&dir, SESSIONS.max(bench.args.sessions as usize))?,
            },
            Link::Tonic => {
                let certs = Certs::make(&dir)?;
                Dial::Tonic {
                    address,
                    certificate: std::fs::read(&certs.certificate)?.into(),
                    key: std::fs::read(&certs.key)?.into(),
                    ca: certs.ca,
                }
            }
        };
        let name = match link {
            Link::Ours => "ours",
            Link::Tonic => "tonic",
        };
        let arguments = [
            std::env::current_exe()?.display().to_string(),
            "link-server".into(),
            format!("--link={name}"),
            format!("--dir={}", dir.display()),
            format!("--listen={address}"),
        ];
        let process = Process::start(&arguments, &dir.join("log"))?;
        let mut side = Self {
            link,
            process,
            dial,
        };
        side.wait().await?;
        Ok(side)
    }

    async fn wait(&mut self) -> Result<()> {
        let until = Instant::now() + START_TIMEOUT;
        loop {
            match self.dial.open(0).await {
                Ok(session) => {
                    session.close().await;
                    return Ok(());
                }
                Err(error) => {
                    self.process.check()?;
                    ensure!(
                        Instant::now() < until,
                        "the server does not serve: {error:#}"
                    );
                    tokio::time::sleep(POLL).await;
                }
            }
        }
    }

    fn cpu_ns(&self) -> Result<u64> {
        procfs::run_ns(self.process.pid())
    }

    fn rss_kib(&self) -> Result<u64> {
        procfs::rss_kib(self.process.pid())
    }
}

fn agents(dir: &Path, count: usize) -> Result<Arc<[Credential]>> {
    let ca = Ca::make(dir)?;
    let id = |agent| format!("spiffe://{TRUST_DOMAIN}/partition/hall/core/leaf-{agent}");
    (0..count).map(|agent| ca.issue(&id(agent))).collect()
}

/// Handshakes and calls.
pub(super) async fn rounds(bench: &mut Bench) -> Result<()> {
    let mut sides = [
        Side::start(bench, Link::Ours, "ours").await?,
        Side::start(bench, Link::Tonic, "tonic").await?,
    ];
    for round in 0..bench.args.rounds {
        bench.progress(&format!("round {} of {}", round + 1, bench.args.rounds));
        // Whoever is first in one round is last in the next.
        sides.rotate_left(1);
        if bench.wants(Part::Handshakes) {
            for side in &sides {
                handshakes(bench, side).await?;
            }
        }
        if bench.wants(Part::Calls) {
            datagram::measure(bench).await?;
            for (name, sessions, calls) in [
                ("calls_1", 1, 1),
                ("calls_64", 1, CALLS),
                ("calls_1000", SESSIONS, 1),
            ] {
                self::calls(bench, &sides, name, sessions, calls).await?;
            }
        }
    }
    Ok(())
}

/// Sessions that are opened, used once and closed.
async fn handshakes(bench: &mut Bench, side: &Side) -> Result<()> {
    let over = Arc::new(AtomicBool::new(false));
    let mut diallers = JoinSet::new();
    let (began, cpu) = (Instant::now(), side.cpu_ns()?);
    for agent in 0..DIALLERS {
        let (dial, over) = (side.dial.clone(), Arc::clone(&over));
        diallers.spawn(async move {
            let mut took = Latencies::default();
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                let session = dial.open(agent).await?;
                took.add(began.elapsed());
                session.close().await;
            }
            anyhow::Ok(took)
        });
    }
    tokio::time::sleep(Duration::from_secs(bench.args.seconds)).await;
    over.store(true, Ordering::Relaxed);
    let took = all(diallers).await?;
    tell(bench, side, "handshakes", took, began.elapsed(), cpu)
}

/// Calls on sessions that stay: a slice of time on one link, then one on the other, and again. What
/// else the machine does lasts longer than a slice, and is felt by both.
async fn calls(
    bench: &mut Bench,
    sides: &[Side],
    name: &'static str,
    sessions: usize,
    each: usize,
) -> Result<()> {
    let mut opened = Vec::new();
    for side in sides {
        opened.push((side, open(&side.dial, sessions).await?));
    }
    for _ in 0..SLICES {
        for (side, sessions) in &opened {
            slice(bench, side, name, sessions, each).await?;
        }
        opened.rotate_left(1);
    }
    for (_, sessions) in opened {
        for session in sessions {
            session.close().await;
        }
    }
    Ok(())
}

async fn slice(
    bench: &mut Bench,
    side: &Side,
    name: &'static str,
    sessions: &[Session],
    each: usize,
) -> Result<()> {
    let over = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    let (began, cpu) = (Instant::now(), side.cpu_ns()?);
    for session in sessions {
        for _ in 0..each {
            let (mut session, over) = (session.clone(), Arc::clone(&over));
            callers.spawn(async move {
                let mut took = Latencies::default();
                while !over.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    session.report().await?;
                    took.add(began.elapsed());
                }
                anyhow::Ok(took)
            });
        }
    }
    tokio::time::sleep(Duration::from_secs(bench.args.seconds) / SLICES).await;
    over.store(true, Ordering::Relaxed);
    let took = all(callers).await?;
    tell(bench, side, name, took, began.elapsed(), cpu)
}

async fn open(dial: &Dial, sessions: usize) -> Result<Vec<Session>> {
    let opened = futures::stream::iter(0..sessions).map(|agent| dial.open(agent));
    opened.buffer_unordered(DIALLERS).try_collect().await
}

async fn all(mut tasks: JoinSet<Result<Latencies>>) -> Result<Latencies> {
    let mut all = Latencies::default();
    while let Some(took) = tasks.join_next().await {
        all.extend(took??);
    }
    Ok(all)
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn tell(
    bench: &mut Bench,
    side: &Side,
    name: &str,
    mut took: Latencies,
    time: Duration,
    cpu_before: u64,
) -> Result<()> {
    let count = took.len().max(1) as f64;
    let per_s = took.len() as f64 / time.as_secs_f64();
    let cpu_us = (side.cpu_ns()? - cpu_before) as f64 / 1e3 / count;
    let (p50, p99) = (took.quantile_us(0.5) / 1e3, took.quantile_us(0.99) / 1e3);
    bench.progress(&format!(
        "{:<6} {name:<11} {per_s:>9.0}/s  p50 {p50:.3} ms  p99 {p99:.3} ms  server CPU {cpu_us:.1} us",
        format!("{:?}", side.link)
    ));
    for (what, number) in [("per_s", per_s), ("p99_ms", p99), ("cpu_us", cpu_us)] {
        bench
            .report
            .add(side.link, &format!("{name}_{what}"), number);
    }
    Ok(())
}

/// What an idle session costs a server, each with one open stream as agents have it.
#[expect(clippy::cast_precision_loss, reason = "for people to read")]
pub(super) async fn memory(bench: &mut Bench) -> Result<()> {
    for link in [Link::Ours, Link::Tonic] {
        let side = Side::start(bench, link, &format!("memory-{link:?}")).await?;
        let before = side.rss_kib()?;
        let began = Instant::now();
        let sessions = open(&side.dial, bench.args.sessions as usize).await?;
        let opened = began.elapsed().as_secs_f64();
        let watches = futures::stream::iter(sessions.iter().cloned());
        let watches = watches.map(|mut session| async move { session.watch().await });
        let watches = watches.buffer_unordered(DIALLERS);
        let mut streams: Vec<_> = watches.try_collect().await?;
        tokio::time::sleep(SETTLE).await;
        let each = (side.rss_kib()?.saturating_sub(before)) as f64 / sessions.len() as f64;
        let mut open = 0_usize;
        for stream in &mut streams {
            open += usize::from(stream.is_open().await);
        }
        ensure!(
            open == sessions.len(),
            "{open} of {} sessions are left",
            sessions.len()
        );
        bench.progress(&format!(
            "{link:?}: {} sessions in {opened:.1} s, {each:.1} KiB each",
            sessions.len()
        ));
        bench.report.add(link, "session_kib", each);
        // Closing them one by one says nothing more; the server goes with them.
    }
    Ok(())
}
