//! Things that fail, and the people who mend them.
//!
//! What fails and in which order follows from the seed; what it hits on the way also depends on
//! how fast this computer is.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use anyhow::{Context, Result};
use control_client::Client;
use proto_public::admin::v2::{MachineServiceBmcCommandRequest, MachineServiceSetStateRequest};
use proto_public::api::v2::{MachineBmcCommand, MachineState};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use crate::agents::Agents;
use crate::control::Control;
use crate::machine::{DISKS, Machine, Stage};
use crate::world::World;

/// How long a fault lasts, milliseconds.
const LASTS_MS: std::ops::Range<u64> = 200..3000;
/// Between two rounds of the people who mend.
const ROUND: Duration = Duration::from_millis(500);

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    AgentDies,
    LinkFlaps,
    DiskFails,
    BmcHangs,
    PowerLost,
    /// No fault, but an administrator's order in the middle of everything.
    Restart,
    ControlKilled,
}

/// How often each comes about, of all.
const WEIGHTS: [(Fault, u32); 7] = [
    (Fault::AgentDies, 6),
    (Fault::LinkFlaps, 6),
    (Fault::DiskFails, 3),
    (Fault::BmcHangs, 6),
    (Fault::PowerLost, 4),
    (Fault::Restart, 4),
    (Fault::ControlKilled, 1),
];

impl Fault {
    const fn name(self) -> &'static str {
        match self {
            Self::AgentDies => "agent died",
            Self::LinkFlaps => "link flapped",
            Self::DiskFails => "disk failed",
            Self::BmcHangs => "BMC hung",
            Self::PowerLost => "power lost",
            Self::Restart => "restart ordered",
            Self::ControlKilled => "control killed",
        }
    }
}

/// What is to be mended.
#[derive(Debug, Clone, Copy)]
enum Mend {
    Agent(usize),
    Link(usize),
    Bmc(usize),
    Power(usize),
    Control,
}

/// Faults under way.
#[derive(Debug)]
pub(crate) struct Chaos<'a> {
    pub(crate) world: &'a World,
    pub(crate) agents: &'a mut Agents,
    pub(crate) control: &'a Mutex<Control>,
    pub(crate) admin: &'a Client,
    /// None: nothing fails by itself.
    pub(crate) every: Option<Duration>,
    rng: StdRng,
    pending: Vec<(Instant, Mend)>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

impl<'a> Chaos<'a> {
    pub(crate) fn new(
        world: &'a World,
        agents: &'a mut Agents,
        (control, admin): (&'a Mutex<Control>, &'a Client),
        (seed, every): (u64, Option<Duration>),
    ) -> Self {
        Self {
            world,
            agents,
            control,
            admin,
            every,
            rng: StdRng::seed_from_u64(seed),
            pending: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Lets things fail and mends them, without end. Nothing is lost when it is dropped.
    pub(crate) async fn stir(&mut self) -> Result<()> {
        let Some(every) = self.every else {
            return pending().await;
        };
        let mut next = Instant::now() + every;
        let mut round = Instant::now() + ROUND;
        loop {
            let due = self.pending.iter().map(|(at, _)| *at).min();
            let first = due.map_or(next, |due| due.min(next)).min(round);
            sleep_until(first).await;
            self.mend_due().await?;
            if Instant::now() >= round {
                self.repair().await;
                round = Instant::now() + ROUND;
            }
            if Instant::now() >= next {
                self.fail().await?;
                next = Instant::now() + every.mul_f64(self.rng.random_range(0.5..1.5));
            }
        }
    }

    /// Mends everything, and goes on mending what shows later, without end.
    pub(crate) async fn calm(&mut self) -> Result<()> {
        for (at, _) in &mut self.pending {
            *at = Instant::now();
        }
        if self.control.lock().await.is_dead() {
            self.mend(Mend::Control).await?;
        }
        self.mend_due().await?;
        if self.every.is_none() {
            return pending().await;
        }
        loop {
            self.repair().await;
            sleep(ROUND).await;
        }
    }

    async fn fail(&mut self) -> Result<()> {
        let (fault, _) = WEIGHTS.choose_weighted(&mut self.rng, |(_, weight)| *weight)?;
        let number = self.rng.random_range(0..self.world.machines.len());
        let lasts = Duration::from_millis(self.rng.random_range(LASTS_MS));
        let disk = self.rng.random_range(0..DISKS.len());
        let agent = self.rng.random_range(0..self.agents.len());
        let machine = self.world.machines.get(number).context("no machine")?;
        let mend = match fault {
            Fault::AgentDies => {
                tracing::info!(agent = self.agents.name(agent), "dies");
                self.agents.kill(agent);
                Some(Mend::Agent(agent))
            }
            Fault::LinkFlaps => {
                self.set_carrier(machine, false);
                Some(Mend::Link(number))
            }
            Fault::DiskFails => {
                machine.set_broken(disk, true);
                None
            }
            Fault::BmcHangs => {
                machine.set_hung(true);
                Some(Mend::Bmc(number))
            }
            Fault::PowerLost if machine.is_on() => {
                machine.set_dark(true);
                Some(Mend::Power(number))
            }
            Fault::Restart if machine.is_on() => {
                self.restart(machine).await;
                None
            }
            Fault::PowerLost | Fault::Restart => return Ok(()),
            Fault::ControlKilled => {
                let mut control = self.control.lock().await;
                if !control.is_dead() {
                    control.kill().await?;
                }
                Some(Mend::Control)
            }
        };
        *self.counts.entry(fault.name()).or_default() += 1;
        match fault {
            Fault::AgentDies | Fault::ControlKilled => {}
            _ => self
                .world
                .truth
                .note(number, format!("fault: {}", fault.name())),
        }
        self.pending
            .extend(mend.map(|mend| (Instant::now() + lasts, mend)));
        Ok(())
    }

    fn set_carrier(&self, machine: &Machine, up: bool) {
        let [cable, _] = &machine.plan.cables;
        if let Some(fabric) = self.world.fabrics.get(machine.plan.partition) {
            fabric.set_carrier(cable, up);
        }
    }

    /// An administrator restarts a machine, whatever it does.
    async fn restart(&self, machine: &Machine) {
        self.world.truth.restart_ordered(machine.plan.number);
        let request = MachineServiceBmcCommandRequest {
            uuid: machine.plan.uuid.to_string(),
            command: MachineBmcCommand::Cycle.into(),
        };
        // Control refuses while it takes the machine back, or is away just now.
        self.admin.admin_machines().bmc_command(request).await.ok();
    }

    async fn mend_due(&mut self) -> Result<()> {
        let now = Instant::now();
        while let Some(at) = self.pending.iter().position(|(at, _)| *at <= now) {
            let (_, mend) = self.pending.swap_remove(at);
            self.mend(mend).await?;
        }
        Ok(())
    }

    async fn mend(&mut self, mend: Mend) -> Result<()> {
        let machine = |number: usize| self.world.machines.get(number);
        match mend {
            Mend::Agent(at) => self.agents.begin(at),
            Mend::Link(number) => {
                if let Some(machine) = machine(number) {
                    self.set_carrier(machine, true);
                }
            }
            Mend::Bmc(number) => {
                if let Some(machine) = machine(number) {
                    machine.set_hung(false);
                }
            }
            Mend::Power(number) => {
                if let Some(machine) = machine(number).filter(|machine| machine.is_dark()) {
                    machine.set_dark(false);
                    self.world.truth.note(number, "the power is back");
                }
            }
            Mend::Control => {
                let mut control = self.control.lock().await;
                if control.is_dead() {
                    control.again().await?;
                }
            }
        }
        Ok(())
    }

    /// A person looks after machines that wait for one: another disk, and on offer again.
    async fn repair(&self) {
        let held = |machine: &&Machine| *machine.stage.borrow() == Stage::Held;
        for machine in self.world.machines.iter().filter(held) {
            let number = machine.plan.number;
            for disk in (0..DISKS.len()).filter(|disk| machine.is_broken(*disk)) {
                machine.set_broken(disk, false);
                self.world.truth.replaced(number, disk);
            }
            let request = MachineServiceSetStateRequest {
                uuid: machine.plan.uuid.to_string(),
                state: MachineState::Available.into(),
                description: String::new(),
            };
            // In the next round, when control is away.
            self.admin.admin_machines().set_state(request).await.ok();
        }
    }
}
