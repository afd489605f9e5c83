//! The course of a run, whatever its clients do: steps, faults, and looks at everybody.

use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::rc::Rc;
use std::sync::Once;

use control_store::sim::{self, Bug};
use control_store::{StateMachine, Store};
use turmoil::Sim;

use crate::invariants::Invariants;
use crate::nemesis::Nemesis;
use crate::node::{Shared, World};
use crate::plan::Plan;
use crate::workload::Workload;
use crate::{cluster, machine};

/// Virtual time by which the cluster must be formed, milliseconds.
const FORMED_BY_MS: u64 = 60_000;
/// Virtual time within which a mended cluster must be one again, milliseconds.
const CONVERGED_WITHIN_MS: u64 = 60_000;

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A run that is under way.
pub(crate) struct Drive<W: Workload> {
    pub(crate) world: Shared<W>,
    pub(crate) sim: Sim<'static>,
    pub(crate) nemesis: Nemesis<W>,
    invariants: Invariants,
    steps: u64,
}

/// Runs `plan` as `course` says, and has `report` tell what became of it.
pub(crate) fn simulate<W: Workload, R>(
    plan: Plan,
    bug: Option<Bug>,
    is_loud: bool,
    course: impl FnOnce(&mut Drive<W>) -> Result<(), String>,
    report: impl FnOnce(&Drive<W>) -> R,
) -> R {
    notice_panics();
    PANIC.take();
    machine::reset();
    sim::begin(plan.seed, bug);
    let world: Shared<W> = Rc::new(RefCell::new(World::new(plan, is_loud)));
    let mut drive = Drive::new(world.clone());
    if let Err(reason) = course(&mut drive) {
        world.borrow_mut().fail(reason);
    }
    drive.tally();
    let report = report(&drive);
    drop(drive);
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

impl<W: Workload> Drive<W> {
    fn new(world: Shared<W>) -> Self {
        Self {
            sim: cluster::build(&world),
            nemesis: Nemesis::new(world.clone()),
            invariants: Invariants::default(),
            steps: 0,
            world,
        }
    }

    /// The cluster becomes what the plan wants.
    pub(crate) fn form(&mut self) -> Result<(), String> {
        let plan = self.world.borrow().plan.clone();
        self.world.borrow_mut().log(format_args!("{plan:?}"));
        self.step_until(FORMED_BY_MS, "the cluster is formed", |world| {
            world.is_formed
        })
    }

    /// Faults happen for as long as the plan says.
    pub(crate) fn suffer(&mut self) -> Result<(), String> {
        let end = self.now_ms() + self.world.borrow().plan.chaos_ms;
        while self.now_ms() < end {
            let now_ms = self.now_ms();
            self.nemesis.step(&mut self.sim, now_ms);
            self.step()?;
        }
        Ok(())
    }

    /// Clients stop, everything is mended, and the cluster becomes one again.
    pub(crate) fn converge(&mut self) -> Result<(), String> {
        self.world.borrow_mut().log(format_args!("calm"));
        self.world.borrow_mut().is_calm = true;
        self.nemesis.mend_all(&mut self.sim);
        let by = self.now_ms() + CONVERGED_WITHIN_MS;
        self.step_until(by, "all members have the same state", |world| {
            agreed(world).is_some()
        })
    }

    /// Virtual time, milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.sim.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Goes on until something is so, at most until `by_ms`.
    pub(crate) fn step_until(
        &mut self,
        by_ms: u64,
        what: &str,
        is_so: impl Fn(&World<W>) -> bool,
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
        let world = self.world.borrow();
        let look_into_logs = self.steps.is_multiple_of(world.plan.logs_every_steps);
        for (id, store, probe) in world.probes() {
            self.invariants.look(id, &probe)?;
            if look_into_logs {
                let log = store.logged(0..u64::MAX);
                let log = log.map_err(|e| format!("the log of node {id} is unreadable: {e}"))?;
                self.invariants.look_into(id, &probe, &log)?;
            }
        }
        W::inspect(&world)
    }

    /// Adds up what the stores that still run have done.
    fn tally(&self) {
        let stores: Vec<_> = {
            let world = self.world.borrow();
            let running = world.nodes.values();
            running.filter_map(|node| node.store.clone()).collect()
        };
        for store in &stores {
            self.world.borrow_mut().tally(store);
        }
    }
}

/// The revision of the one state that all members have, if they do.
pub(crate) fn agreed<W: Workload>(world: &World<W>) -> Option<u64> {
    let members = world.members();
    let stores = members.iter().map(|id| world.nodes[id].store.as_ref());
    let stores: Vec<&Store<W::Machine>> = stores.collect::<Option<_>>()?;
    let first = stores.first()?;
    let applied = first.probe().applied;
    let is_there = |store: &&Store<W::Machine>| {
        store.probe().applied == applied && store.metrics().last_log == applied
    };
    // The states themselves last: their checksums take a while.
    if !stores.iter().all(is_there) {
        return None;
    }
    let mut states = stores.iter().map(|store| store.read_local(W::digest).ok());
    let state = states.next()??;
    if !states.all(|other| other.as_ref() == Some(&state)) {
        return None;
    }
    first.read_local(|state| state.revision()).ok()
}
