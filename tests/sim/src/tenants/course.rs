//! The course of a run: the site is set up, tenants come, faults happen, everything is given back, and
//! each host finds a tenant once more.

use std::time::Duration;

use control_state::{Claim, ClaimState, Lease, Machine, PendingReason, Phase, PoolHost, Tables};
use tokio::task::JoinSet;
use turmoil::Sim;

use super::agents::{bmc, leader, leaf, machine};
use super::chassis::Chassis;
use super::ledger::{self, Figures};
use super::people::{administrator, finale, owner, tenant};
use super::set_up;
use super::site::{HOSTS, LEAVES, MACHINES, OWNERS, TENANTS};
use super::work::{CallTally, TenantWork};
use crate::drive::{Drive, agreed, simulate};
use crate::node::{Shared, World};
use crate::plan::Plan;

/// Virtual time by which the site must be set up, milliseconds.
const SET_UP_BY_MS: u64 = 30 * 60_000;
/// Virtual time within which everything must be given back and clean, milliseconds: a silent machine is
/// rebooted after an hour, up to three times.
const GIVEN_BACK_WITHIN_MS: u64 = 6 * 3_600_000;
/// Virtual time between two looks at what is not given back yet, milliseconds.
const LOOK_EVERY_MS: u64 = 1_000;
/// Virtual time within which the last claims must be made, milliseconds.
const FINALE_WITHIN_MS: u64 = 10 * 60_000;

/// The outcome of a run with tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantReport {
    /// The run's number.
    pub seed: u64,
    /// Minutes of faults.
    pub minutes: u64,
    /// A checksum over all that happened.
    pub trace: u64,
    /// The thing that must not happen and did.
    pub failure: Option<String>,
    /// Calls that were carried out.
    pub done: u64,
    /// Calls that the state refused.
    pub refused: u64,
    /// Calls without an answer, or with none that says what became of them.
    pub unanswered: u64,
    /// Numbers of what was proved.
    pub figures: Figures,
    /// Faults.
    pub harms: u64,
    /// Length of the run, virtual milliseconds.
    pub virtual_ms: u64,
}

impl TenantReport {
    /// The command that shows the same run again.
    pub fn replay(&self) -> String {
        let (seed, minutes) = (self.seed, self.minutes);
        format!("./dev sim --tenants --minutes {minutes} --seed {seed}")
    }
}

/// Runs one seed, with so many minutes of faults. With `is_loud` everything that happens is printed to
/// stderr.
pub fn run(seed: u64, minutes: u64, is_loud: bool) -> TenantReport {
    ledger::reset();
    let plan = Plan::of_tenants(seed, minutes * 60_000);
    simulate(plan, None, is_loud, whole, |drive| report(drive, minutes))
}

fn whole(drive: &mut Drive<TenantWork>) -> Result<(), String> {
    drive.form()?;
    start(&mut drive.sim, &drive.world);
    let by = drive.now_ms() + SET_UP_BY_MS;
    drive.step_until(by, "the site is set up", |world| world.work.is_set_up)?;
    drive.suffer()?;
    drain(drive)?;
    drive.world.borrow_mut().work.is_finale = true;
    let by = drive.now_ms() + FINALE_WITHIN_MS;
    drive.step_until(by, "the last claims are made", |world| world.work.is_over)?;
    drive.converge()?;
    let world = drive.world.borrow();
    check_end(&world)
}

/// Faults end, and tenants give everything back.
fn drain(drive: &mut Drive<TenantWork>) -> Result<(), String> {
    drive.nemesis.mend_all(&mut drive.sim);
    {
        let mut world = drive.world.borrow_mut();
        world.log(format_args!("tenants give everything back"));
        world.work.is_draining = true;
        // No clock showed a later time than they do from now on, so that nothing lies in the future.
        let latest_ms = world.plan.clock_step_ms * 100;
        for node in world.nodes.values() {
            node.clock.set_offset_ms(latest_ms);
        }
    }
    let by = drive.now_ms() + GIVEN_BACK_WITHIN_MS;
    let outcome = drive.step_until(by, "everything is given back", |world| {
        let is_time = world.now_ms.is_multiple_of(LOOK_EVERY_MS);
        let view = world.work.view.as_ref().filter(|_| is_time);
        view.is_some_and(|tables| kept(tables).is_none())
    });
    let view = drive.world.borrow().work.view.clone();
    outcome.map_err(|reason| match view.and_then(|tables| kept(&tables)) {
        Some(kept) => format!("{kept}; {reason}"),
        None => reason,
    })
}

/// The first thing that was not given back yet. `None` means that everything was.
fn kept(tables: &Tables) -> Option<String> {
    let mut claims = tables.all::<Claim>();
    let claim = claims.find(|claim| claim.state != ClaimState::Gone);
    let lease = tables.all::<Lease>().next();
    let mut machines = tables.all::<Machine>();
    let machine = machines.find(|machine| machine.phase != Phase::Waiting || machine.dirty);
    let mut hosts = tables.all::<PoolHost>();
    let host = hosts.find(|host| !is_free(host));
    let count = tables.all::<PoolHost>().count();
    let is_short = u64::try_from(count) != Ok(HOSTS);
    claim
        .map(|claim| format!("{claim:?}"))
        .or_else(|| lease.map(|lease| format!("{lease:?}")))
        .or_else(|| machine.map(|machine| format!("{machine:?}")))
        .or_else(|| host.map(|host| format!("{host:?}")))
        .or_else(|| is_short.then(|| format!("{count} hosts are in pools")))
}

fn is_free(host: &PoolHost) -> bool {
    let is_restricted = host.cordon.is_some() || !host.taints.is_empty();
    host.binding.is_none()
        && host.reserved.is_none()
        && host.is_clean()
        && host.seen.is_ready
        && host.holds.is_empty()
        && !is_restricted
}

/// Nobody starved: every host has one of the last claims, and the other claims wait for nothing else.
fn check_end(world: &World<TenantWork>) -> Result<(), String> {
    let member = world.members().first().copied().unwrap_or_default();
    let store = world
        .nodes
        .get(&member)
        .and_then(|node| node.store.as_ref());
    let store = store.ok_or("no node runs at the end")?;
    agreed(world).ok_or("the nodes differ at the end")?;
    let last = store.read_local(|state| {
        let claims = state.0.all::<Claim>();
        let last = claims.filter(|claim| claim.name == finale::LAST);
        last.cloned().collect::<Vec<_>>()
    });
    let last = last.map_err(|error| error.to_string())?;
    let bound = last.iter().filter(|claim| claim.state == ClaimState::Bound);
    let bound = bound.count();
    let others = last.iter().filter(|claim| {
        claim.state == ClaimState::Pending && claim.queue.reason == PendingReason::AllBusy
    });
    let others = others.count();
    let is_whole = u64::try_from(bound) == Ok(HOSTS)
        && u64::try_from(bound + others) == Ok(finale::LAST_CLAIMS);
    match is_whole {
        true => Ok(()),
        false => Err(format!(
            "of {} last claims {bound} have a host and {others} wait: {last:#?}",
            last.len()
        )),
    }
}

/// All who live at the site.
fn start(sim: &mut Sim<'_>, world: &Shared<TenantWork>) {
    let machines = 1..=MACHINES;
    let bodies = machines.map(|number| (number, Chassis::default()));
    world.borrow_mut().work.chassis = bodies.collect();
    let shared = world.clone();
    sim.client("site", async move {
        let mut tasks = JoinSet::new();
        tasks.spawn_local(leader::tick(shared.clone()));
        tasks.spawn_local(leader::watch(shared.clone()));
        tasks.spawn_local(bmc::run(shared.clone()));
        for number in 1..=LEAVES {
            tasks.spawn_local(leaf::run(shared.clone(), number));
        }
        for number in 1..=MACHINES {
            tasks.spawn_local(machine::run(shared.clone(), number));
        }
        for number in 1..=TENANTS {
            tasks.spawn_local(tenant::run(shared.clone(), number));
        }
        for number in 1..=OWNERS {
            tasks.spawn_local(owner::run(shared.clone(), number));
        }
        tasks.spawn_local(administrator::run(shared.clone()));
        tasks.spawn_local(finale::run(shared.clone()));
        tasks.spawn_local(set_up::run(shared));
        while let Some(ended) = tasks.join_next().await {
            ended?;
        }
        Ok(())
    });
}

fn report(drive: &Drive<TenantWork>, minutes: u64) -> TenantReport {
    let world = drive.world.borrow();
    let CallTally {
        done,
        refused,
        unanswered,
    } = world.work.tally;
    TenantReport {
        seed: world.plan.seed,
        minutes,
        trace: world.trace.hash(),
        failure: world.failure.clone(),
        done,
        refused,
        unanswered,
        figures: ledger::figures(),
        harms: drive.nemesis.harms,
        virtual_ms: drive.now_ms(),
    }
}

/// Runs seeds, some at the same time, and tells of each as it ends.
pub fn run_many(seeds: std::ops::Range<u64>, minutes: u64, jobs: usize) -> Vec<TenantReport> {
    crate::cli::at_once(seeds, jobs, |seed| {
        let began = std::time::Instant::now();
        let report = run(seed, minutes, false);
        tell(&report, began.elapsed());
        report
    })
}

fn tell(report: &TenantReport, took: Duration) {
    let TenantReport { seed, failure, .. } = report;
    let seconds = took.as_secs();
    if let Some(failure) = failure {
        eprintln!("seed {seed} FAILED after {seconds} s: {failure}");
        eprintln!("REPLAY: {}", report.replay());
    } else {
        eprintln!("seed {seed} holds, {seconds} s: {report:?}");
    }
}
