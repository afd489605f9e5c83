//! Does harm: cuts links, crashes nodes, spoils disks and clocks; and mends it all again.

use std::sync::atomic::Ordering;

use turmoil::Sim;

use crate::net::host;
use crate::node::Shared;
use crate::plan::{NODES_MAX, Plan};
use crate::random::Random;
use crate::workload::Workload;

/// The chance that a message breaks its link, in a lossy time, and that the next one mends it.
const LOSS: f64 = 0.02;
pub(crate) const MEND: f64 = 0.1;
/// The chance that a snapshot on its way is harmed, at each step.
const TRANSFER_HARM_PERCENT: u64 = 3;

/// Harm that is done until it is mended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Harm {
    /// Nothing passes between these pairs.
    Cut(Vec<(u64, u64)>),
    /// Nothing passes from the first to the second.
    CutOneWay(u64, u64),
    /// What is sent between them waits.
    Hold(u64, u64),
    Loss,
    Down(u64),
    Slow(u64),
    Full(u64),
}

/// What is broken now, and until when.
#[derive(Debug)]
pub(crate) struct Nemesis<W: Workload> {
    plan: Plan,
    random: Random,
    world: Shared<W>,
    active: Vec<(u64, Harm)>,
    next_at_ms: u64,
    /// When a snapshot on its way may be harmed next.
    next_transfer_at_ms: u64,
    /// When the power of all goes next.
    dark_at_ms: Option<u64>,
    pub(crate) harms: u64,
}

impl<W: Workload> Nemesis<W> {
    pub(crate) fn new(world: Shared<W>) -> Self {
        let plan = world.borrow().plan.clone();
        Self {
            random: Random::new(plan.seed, "nemesis"),
            plan,
            world,
            active: Vec::new(),
            next_at_ms: 0,
            next_transfer_at_ms: 0,
            dark_at_ms: None,
            harms: 0,
        }
    }

    /// Restarts what died by itself; called at every step, also when the nemesis rests.
    pub(crate) fn bury(&mut self, sim: &mut Sim<'_>, now_ms: u64) {
        for id in 1..=NODES_MAX {
            let died = {
                let node = &self.world.borrow().nodes[&id];
                node.died.load(Ordering::Relaxed) || node.disk.is_dark()
            };
            if died && !self.is_down(id) {
                let until = now_ms + self.random.within(50..2000);
                self.begin(sim, until, Harm::Down(id));
            }
        }
        self.mend(sim, |until, harm| {
            matches!(harm, Harm::Down(_)) && until <= now_ms
        });
    }

    /// Begins and ends what is due.
    pub(crate) fn step(&mut self, sim: &mut Sim<'_>, now_ms: u64) {
        self.mend(sim, |until, _| until <= now_ms);
        if self.dark_at_ms.take_if(|at| *at <= now_ms).is_some() {
            self.black_out(sim, now_ms);
        }
        if self.plan.faults.transfers && now_ms >= self.next_transfer_at_ms {
            self.harm_transfer(sim, now_ms);
        }
        if now_ms < self.next_at_ms {
            return;
        }
        self.next_at_ms = now_ms + self.random.within(50..self.plan.fault_every_ms_max);
        let until = now_ms + self.random.within(100..8000);
        if self.plan.faults.crashes && self.random.chance(10) {
            self.harms += 1;
            self.overload_disks(sim, now_ms);
            return;
        }
        if let Some(harm) = self.choose() {
            self.harms += 1;
            self.begin(sim, until, harm);
        }
    }

    /// Harms who receives a snapshot, or who sends it, at one moment of it.
    fn harm_transfer(&mut self, sim: &mut Sim<'_>, now_ms: u64) {
        let (receivers, leader) = {
            let world = self.world.borrow();
            let receiving = world.probes().filter(|(_, _, probe)| probe.is_receiving);
            let receivers: Vec<u64> = receiving.map(|(id, _, _)| id).collect();
            (receivers, world.leader())
        };
        let Some(receiver) = self.random.pick(&receivers).copied() else {
            return;
        };
        if !self.random.chance(TRANSFER_HARM_PERCENT) {
            return;
        }
        self.harms += 1;
        self.next_transfer_at_ms = now_ms + self.random.within(300..3000);
        let until = now_ms + self.random.within(100..4000);
        let operations = self.random.within(0..60);
        let victim = match leader {
            Some(leader) if self.random.chance(15) => leader,
            _ => receiver,
        };
        match self.random.within(0..8) {
            0..4 => {
                self.log(format_args!(
                    "n{victim} loses power in {operations} operations"
                ));
                let world = self.world.borrow();
                world.nodes[&victim].disk.lose_power_after(operations);
            }
            4 | 5 => self.begin(sim, until, Harm::Down(victim)),
            6 => {
                self.log(format_args!("the next sync of n{victim} fails"));
                self.world.borrow().nodes[&victim].disk.fail_next_sync();
            }
            _ => self.begin(sim, until, Harm::Full(victim)),
        }
    }

    /// Ends everything.
    pub(crate) fn mend_all(&mut self, sim: &mut Sim<'_>) {
        self.mend(sim, |_, _| true);
        for node in self.world.borrow().nodes.values() {
            // Whoever has lost the power already crashes first.
            if !node.disk.is_dark() {
                node.disk.mend();
            }
        }
        sim.set_fail_rate(0.0);
        for a in 1..=NODES_MAX {
            for b in a + 1..=NODES_MAX {
                sim.release(host(a), host(b));
            }
        }
    }

    fn is_down(&self, id: u64) -> bool {
        self.active.iter().any(|(_, harm)| *harm == Harm::Down(id))
    }

    /// A node that belongs to the cluster, the leader more often than others.
    fn victim(&mut self) -> u64 {
        let world = self.world.borrow();
        let (leader, members) = (world.leader(), world.members());
        drop(world);
        match leader {
            Some(leader) if self.random.chance(30) => leader,
            _ => match self.random.pick(&members) {
                Some(member) => *member,
                None => self.random.within(1..self.plan.voters + 1),
            },
        }
    }

    fn choose(&mut self) -> Option<Harm> {
        let faults = self.plan.faults;
        let victim = self.victim();
        let other = 1 + (victim + self.random.within(0..NODES_MAX - 1)) % NODES_MAX;
        match self.random.within(0..12) {
            0 | 1 if faults.partitions => Some(Harm::Cut(self.split())),
            2 if faults.partitions => {
                let others = (1..=NODES_MAX).filter(|id| *id != victim);
                Some(Harm::Cut(others.map(|id| (victim, id)).collect()))
            }
            3 if faults.partitions => Some(Harm::CutOneWay(victim, other)),
            4 if faults.holds => Some(Harm::Hold(victim, other)),
            5 if faults.loss => Some(Harm::Loss),
            6 | 7 if faults.crashes => Some(Harm::Down(victim)),
            8 if faults.slow_disks => Some(Harm::Slow(victim)),
            9 if faults.failing_disks => {
                self.world.borrow().nodes[&victim].disk.fail_next_sync();
                self.log(format_args!("the next sync of n{victim} fails"));
                None
            }
            10 if faults.failing_disks => Some(Harm::Full(victim)),
            11 if faults.clocks => {
                let steps = self.random.within(0..200) as i64 - 100;
                let offset_ms = steps * self.plan.clock_step_ms;
                let world = self.world.borrow();
                world.nodes[&victim].clock.set_offset_ms(offset_ms);
                drop(world);
                self.log(format_args!("the clock of n{victim} is {offset_ms} ms off"));
                None
            }
            _ => None,
        }
    }

    /// All pairs across a random border.
    fn split(&mut self) -> Vec<(u64, u64)> {
        let sides = self.random.next();
        let side = |id: u64| sides >> id & 1;
        let mut pairs = Vec::new();
        for a in 1..=NODES_MAX {
            pairs.extend(
                (a + 1..=NODES_MAX)
                    .filter(|b| side(a) != side(*b))
                    .map(|b| (a, b)),
            );
        }
        pairs
    }

    fn log(&self, line: std::fmt::Arguments<'_>) {
        self.world.borrow_mut().log(line);
    }

    fn begin(&mut self, sim: &mut Sim<'_>, until: u64, harm: Harm) {
        self.log(format_args!("{harm:?} until {until}"));
        match &harm {
            Harm::Cut(_) | Harm::CutOneWay(..) | Harm::Hold(..) | Harm::Loss => {
                apply_to_links(sim, &harm);
            }
            Harm::Down(id) if self.is_down(*id) => return,
            Harm::Down(id) => {
                // If not, a disk that seems to have no power was cut off from a killed process.
                let power_goes = self.random.chance(60);
                self.crash(sim, *id, power_goes);
            }
            Harm::Slow(id) => {
                let slowest = self.random.within(20..1500);
                let world = self.world.borrow();
                world.nodes[id].disk.set_sync_ms(Some(0..slowest));
            }
            Harm::Full(id) => self.world.borrow().nodes[id].disk.set_full(true),
        }
        self.active.push((until, harm));
    }

    /// Everything in memory is gone; when the power goes, also what was not synced.
    fn crash(&mut self, sim: &mut Sim<'_>, id: u64, power_goes: bool) {
        // The handles must not outlive the tasks that they talk to.
        let (store, mailbox) = {
            let mut world = self.world.borrow_mut();
            let Some(node) = world.nodes.get_mut(&id) else {
                return;
            };
            node.died.store(false, Ordering::Relaxed);
            (node.store.take(), node.mailbox.take())
        };
        if let Some(store) = &store {
            let mut world = self.world.borrow_mut();
            world.tally(store);
            world.snapshots.interrupted += u64::from(store.probe().is_receiving);
        }
        drop((store, mailbox));
        // The tasks end in an order that differs from process to process: nothing that they say
        // while they end may be heard.
        sim.set_fail_rate(0.0);
        for other in (1..=NODES_MAX).filter(|other| *other != id) {
            sim.partition(host(id), host(other));
        }
        sim.crash(host(id));
        for other in (1..=NODES_MAX).filter(|other| *other != id) {
            sim.repair(host(id), host(other));
        }
        for (_, harm) in &self.active {
            apply_to_links(sim, harm);
        }
        let world = self.world.borrow();
        if power_goes {
            world.nodes[&id].disk.lose_power();
        } else {
            world.nodes[&id].disk.mend();
        }
    }

    /// All disks are slow, so that much is written and not yet synced; then the power goes.
    fn overload_disks(&mut self, sim: &mut Sim<'_>, now_ms: u64) {
        let at = now_ms + self.random.within(100..1500);
        for id in 1..=NODES_MAX {
            self.begin(sim, at + 1, Harm::Slow(id));
        }
        self.dark_at_ms = Some(at);
    }

    /// The power of all goes at once.
    fn black_out(&mut self, sim: &mut Sim<'_>, now_ms: u64) {
        self.log(format_args!("the power goes"));
        for id in (1..=NODES_MAX)
            .filter(|id| !self.is_down(*id))
            .collect::<Vec<_>>()
        {
            let until = now_ms + self.random.within(50..3000);
            self.crash(sim, id, true);
            self.active.push((until, Harm::Down(id)));
        }
    }

    fn mend(&mut self, sim: &mut Sim<'_>, is_due: impl Fn(u64, &Harm) -> bool) {
        let active = std::mem::take(&mut self.active);
        let (due, rest) = active
            .into_iter()
            .partition::<Vec<_>, _>(|(until, harm)| is_due(*until, harm));
        self.active = rest;
        for (_, harm) in due {
            self.log(format_args!("end of {harm:?}"));
            match harm {
                Harm::Cut(pairs) => {
                    for (a, b) in pairs {
                        sim.repair(host(a), host(b));
                    }
                }
                Harm::CutOneWay(a, b) if a != b => sim.repair_oneway(host(a), host(b)),
                Harm::Hold(a, b) if a != b => sim.release(host(a), host(b)),
                Harm::CutOneWay(..) | Harm::Hold(..) => {}
                Harm::Loss => sim.set_fail_rate(0.0),
                Harm::Down(id) => sim.bounce(host(id)),
                Harm::Slow(id) => self.world.borrow().nodes[&id].disk.set_sync_ms(None),
                Harm::Full(id) => self.world.borrow().nodes[&id].disk.set_full(false),
            }
        }
    }
}

/// Does to the network what `harm` does to it.
fn apply_to_links(sim: &mut Sim<'_>, harm: &Harm) {
    match harm {
        Harm::Cut(pairs) => {
            for (a, b) in pairs {
                sim.partition(host(*a), host(*b));
            }
        }
        Harm::CutOneWay(a, b) if a != b => sim.partition_oneway(host(*a), host(*b)),
        Harm::Hold(a, b) if a != b => sim.hold(host(*a), host(*b)),
        Harm::Loss => sim.set_fail_rate(LOSS),
        _ => {}
    }
}
