//! One agent of a large switch: a port that moves, all that move at once, and the agent's memory.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use proto_mesh::SwitchReport;
use tokio::time::{sleep, timeout};

use super::Bench;
use super::control::Control;
use super::leaf::{Leaf, LeafPlan};
use super::orders::{Orders, PORTS, STEPS_PER_MOVE};
use crate::sample::Latencies;

/// Time for an order to be applied and reported.
const REPORT_MAX: Duration = Duration::from_secs(60);
/// Time over which the agent without a change is measured: two of its reports, and five passes.
const IDLE: Duration = Duration::from_secs(20);
/// Times that all ports move.
const ROUNDS: u32 = 5;

/// Measures.
pub(super) async fn measure(bench: &mut Bench) -> Result<()> {
    let dir = bench.dir.join("agent");
    std::fs::create_dir(&dir)?;
    let mut orders = Orders::new();
    let control = Control::start(&dir, orders.desired())?;
    let plan = LeafPlan {
        side: 0,
        ports: PORTS,
        control: control.address,
    };
    let mut leaf = Leaf::start(&dir, plan, control.credential.clone()).await?;
    let began = Instant::now();
    let mut case = Case {
        control,
        orders: &mut orders,
    };
    let first = case.settled(began).await;
    leaf.check()?;
    first?;
    let took = began.elapsed().as_secs_f64();
    bench.progress(&format!(
        "{PORTS} ports and all VRFs are made in {took:.1} s"
    ));
    one_port(bench, &mut case, &leaf).await?;
    all_ports(bench, &mut case, &leaf).await?;
    let cpu = leaf.cpu_ms()?;
    sleep(IDLE).await;
    let idle = (leaf.cpu_ms()? - cpu) / IDLE.as_secs_f64() / 10.0;
    bench.report.add("idle_cpu_percent", idle);
    let rss = leaf.rss_mib()?;
    bench.progress(&format!("idle {idle:.1} % of a core, {rss:.1} MiB"));
    bench.report.add("rss_mib", rss);
    Ok(())
}

/// The control and the newest orders.
struct Case<'a> {
    control: Control,
    orders: &'a mut Orders,
}

/// One order, applied and reported.
struct Applied {
    /// From the order's sending until its report was here.
    reported: Duration,
    /// The agent's own figure: from the pass's start until all was verified.
    pass: Duration,
}

impl Case<'_> {
    /// Sends the orders as they are now, and waits for the report that they are applied.
    async fn send(&mut self) -> Result<Applied> {
        let desired = self.orders.desired();
        let began = Instant::now();
        self.control.orders.send_replace(desired);
        self.settled(began).await
    }

    async fn settled(&mut self, began: Instant) -> Result<Applied> {
        let wanted = self.control.orders.borrow().generation;
        let is_applied = |report: &SwitchReport| report.applied_generation == wanted;
        let reports = &mut self.control.reports;
        let applied = reports.wait_for(|report| {
            let report = report.as_ref();
            report.is_some_and(|(report, _)| is_applied(report))
        });
        let found = timeout(REPORT_MAX, applied).await;
        let found = found.context("the agent does not report")??;
        let (report, at) = found.as_ref().context("no report")?;
        ensure!(report.error.is_empty(), "the agent: {}", report.error);
        Ok(Applied {
            reported: at.duration_since(began),
            pass: Duration::from_millis(report.sync_duration_ms),
        })
    }
}

/// Moves one port at a time.
async fn one_port(bench: &mut Bench, case: &mut Case<'_>, leaf: &Leaf) -> Result<()> {
    let moves = bench.args.moves;
    let (mut passes, mut reports) = (Latencies::default(), Latencies::default());
    let steps = leaf.steps().await?;
    let cpu = leaf.cpu_ms()?;
    for number in 0..moves {
        case.orders.move_port((number % PORTS) as usize);
        let applied = case.send().await?;
        passes.add(applied.pass);
        reports.add(applied.reported);
    }
    let cpu = (leaf.cpu_ms()? - cpu) / f64::from(moves);
    let over = over(leaf.steps().await? - steps, moves);
    let (p50, p99) = (
        passes.quantile_us(0.5) / 1e3,
        passes.quantile_us(0.99) / 1e3,
    );
    let reported = reports.quantile_us(0.99) / 1e3;
    bench.progress(&format!(
        "one port: CPU {cpu:.1} ms, pass p50 {p50:.0} ms, p99 {p99:.0} ms; {over} steps too many"
    ));
    bench.report.add("port_cpu_ms", cpu);
    bench.report.add("port_pass_p50_ms", p50);
    bench.report.add("port_pass_p99_ms", p99);
    bench.report.add("port_report_p99_ms", reported);
    bench.report.add("port_steps_over", over);
    Ok(())
}

/// Moves all ports at once; the slowest round counts.
async fn all_ports(bench: &mut Bench, case: &mut Case<'_>, leaf: &Leaf) -> Result<()> {
    let steps = leaf.steps().await?;
    let cpu = leaf.cpu_ms()?;
    let mut slowest = Duration::ZERO;
    for _ in 0..ROUNDS {
        case.orders.move_all();
        slowest = slowest.max(case.send().await?.reported);
    }
    let cpu = (leaf.cpu_ms()? - cpu) / f64::from(ROUNDS);
    let over = over(leaf.steps().await? - steps, ROUNDS * PORTS);
    let slowest = slowest.as_secs_f64();
    bench.progress(&format!("{PORTS} ports: {slowest:.2} s, CPU {cpu:.0} ms"));
    bench.report.add("ports_report_s", slowest);
    bench.report.add("ports_cpu_ms", cpu);
    bench.report.add("ports_steps_over", over);
    Ok(())
}

/// Steps beyond those that so many moves need.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn over(steps: u64, moves: u32) -> f64 {
    steps as f64 - f64::from(moves * STEPS_PER_MOVE)
}
