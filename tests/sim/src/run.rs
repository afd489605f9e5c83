//! One run, from seed to verdict.

use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::rc::Rc;
use std::sync::Once;

use control_store::sim::{self, Bug};
use turmoil::Sim;

use crate::cluster;
use crate::invariants::Invariants;
use crate::machine;
use crate::nemesis::Nemesis;
use crate::node::{Shared, World};
use crate::plan::Plan;

/// Virtual time by which the cluster must be formed, milliseconds.
const FORMED_BY_MS: u64 = 60_000;
/// Virtual time within which a mended cluster must be one again, milliseconds.
const CONVERGED_WITHIN_MS: u64 = 60_000;
/// Steps between two looks into the logs.
const LOGS_EVERY_STEPS: u64 = 40;

/// What all nodes have done with snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshots {
    /// Bytes that arrived.
    pub received: u64,
    /// Bytes that did not have to be sent again after a channel broke or a node crashed.
    pub kept: u64,
    /// Crashes of nodes that were receiving or installing one.
    pub interrupted: u64,
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its number.
    pub seed: u64,
    /// The bug that was put back.
    pub bug: Option<Bug>,
    /// A checksum over all that happened.
    pub trace: u64,
    /// What must not happen and did.
    pub failure: Option<String>,
    /// Acknowledged writes.
    pub writes: usize,
    /// Answered reads.
    pub reads: u64,
    /// Events that watchers were told.
    pub events: u64,
    /// What nodes did with snapshots.
    pub snapshots: Snapshots,
    /// Faults.
    pub harms: u64,
    /// How long it lasted, virtual milliseconds.
    pub virtual_ms: u64,
}

impl Report {
    /// The command that shows the same run again.
    pub fn replay(&self) -> String {
        let bug = self.bug.map(|bug| format!(" --bug {}", bug.name()));
        format!("./dev sim --seed {}{}", self.seed, bug.unwrap_or_default())
    }
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs one seed. With `is_loud` everything that happens is printed to stderr.
pub fn run(seed: u64, bug: Option<Bug>, is_loud: bool) -> Report {
    notice_panics();
    PANIC.take();
    machine::reset();
    sim::begin(seed, bug);
    let world: Shared = Rc::new(RefCell::new(World::new(Plan::new(seed), is_loud)));
    let mut run = Run::new(world.clone());
    let ended = run.whole();
    if let Err(reason) = ended {
        world.borrow_mut().fail(reason);
    }
    let report = run.report(bug);
    drop(run);
    sim::end();
    report
}

/// A panic in a task would otherwise be no more than a task that ended.
fn notice_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            PANIC.with_borrow_mut(|panic| {
                panic.get_or_insert_with(|| info.to_string());
            });
            before(info);
        }));
    });
}

struct Run {
    world: Shared,
    sim: Sim<'static>,
    nemesis: Nemesis,
    invariants: Invariants,
    steps: u64,
}

impl Run {
    fn new(world: Shared) -> Self {
        Self {
            sim: cluster::build(&world),
            nemesis: Nemesis::new(world.clone()),
            invariants: Invariants::default(),
            steps: 0,
            world,
        }
    }

    fn whole(&mut self) -> Result<(), String> {
        let plan = self.world.borrow().plan.clone();
        self.world.borrow_mut().log(format_args!("{plan:?}"));
        self.step_until(FORMED_BY_MS, "the cluster is formed", |world| {
            world.is_formed
        })?;
        cluster::start_clients(&mut self.sim, &self.world);
        let end = self.now_ms() + plan.chaos_ms;
        while self.now_ms() < end {
            let now_ms = self.now_ms();
            self.nemesis.step(&mut self.sim, now_ms);
            self.step()?;
        }
        self.world.borrow_mut().log(format_args!("calm"));
        self.world.borrow_mut().is_calm = true;
        self.nemesis.mend_all(&mut self.sim);
        let by = self.now_ms() + CONVERGED_WITHIN_MS;
        self.step_until(by, "all members have the same state", |world| {
            agreed(world).is_some()
        })?;
        self.check_end()
    }

    fn check_end(&mut self) -> Result<(), String> {
        let world = self.world.borrow();
        let revision = agreed(&world).unwrap_or_default();
        machine::applied(|applied| world.oracle.check_end(revision, applied))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.sim.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn step_until(
        &mut self,
        by_ms: u64,
        what: &str,
        is_so: impl Fn(&World) -> bool,
    ) -> Result<(), String> {
        loop {
            self.step()?;
            if is_so(&self.world.borrow()) {
                return Ok(());
            }
            if self.now_ms() > by_ms {
                let probes: Vec<String> = self
                    .world
                    .borrow()
                    .probes()
                    .map(|(id, _, probe)| format!("n{id} {probe:?}"))
                    .collect();
                return Err(format!("it never came true that {what}: {probes:#?}"));
            }
        }
    }

    /// A few virtual milliseconds of everybody, then a look at everybody.
    fn step(&mut self) -> Result<(), String> {
        self.sim.step().map_err(|e| format!("a node failed: {e}"))?;
        let now_ms = self.now_ms();
        self.world.borrow_mut().now_ms = now_ms;
        self.nemesis.bury(&mut self.sim, now_ms);
        self.steps += 1;
        if let Some(panic) = PANIC.take() {
            return Err(panic);
        }
        if let Some(failure) = &self.world.borrow().failure {
            return Err(failure.clone());
        }
        let look_into_logs = self.steps.is_multiple_of(LOGS_EVERY_STEPS);
        let world = self.world.borrow();
        for (id, store, probe) in world.probes() {
            self.invariants.look(id, &probe)?;
            if look_into_logs {
                let log = store.logged(0..u64::MAX);
                let log = log.map_err(|e| format!("the log of node {id} is unreadable: {e}"))?;
                self.invariants.look_into(id, &probe, &log)?;
            }
        }
        Ok(())
    }

    fn report(&self, bug: Option<Bug>) -> Report {
        let stores: Vec<_> = {
            let world = self.world.borrow();
            let running = world.nodes.values();
            running.filter_map(|node| node.store.clone()).collect()
        };
        for store in &stores {
            self.world.borrow_mut().tally(store);
        }
        drop(stores);
        let world = self.world.borrow();
        Report {
            seed: world.plan.seed,
            bug,
            trace: world.trace.hash(),
            failure: world.failure.clone(),
            writes: world.oracle.writes(),
            reads: world.oracle.reads,
            events: world.seen.events,
            snapshots: world.snapshots,
            harms: self.nemesis.harms,
            virtual_ms: self.now_ms(),
        }
    }
}

/// The revision of the one state that all members have, if they do.
fn agreed(world: &World) -> Option<u64> {
    let members = world.members();
    let mut states = members.iter().map(|id| {
        let store = world.nodes[id].store.as_ref()?;
        let applied = store.probe().applied;
        let state = store.read_local(|state| state.digest());
        let is_whole = store.metrics().last_log == applied;
        Some((applied, state.ok()?, is_whole))
    });
    let first = states.next()??;
    if !first.2 || !states.all(|state| state == Some(first)) {
        return None;
    }
    let store = world.nodes[members.first()?].store.as_ref()?;
    store.read_local(machine::revision).ok()
}
