//! One machine: its power, its disks, and what it boots.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agents_kit::{Agent, Credential};
use anyhow::{Context, Result};
use proto_mesh::{PhoneHomeRequest, PhoneHomeServiceClient};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::delays::pass;
use crate::netboot::{self, Booted};
use crate::nonce::Tag;
use crate::plan::MachinePlan;
use crate::world::World;
use crate::{hammer, truth};

/// Disks of every machine.
pub(crate) const DISKS: [&str; 2] = ["/dev/nvme0n1", "/dev/nvme1n1"];
/// What firmware waits before it tries again to boot.
const BOOT_AGAIN: Duration = Duration::from_millis(500);
/// A system that does not reach control tries again.
const CALL_AGAIN: Duration = Duration::from_millis(500);

/// Whether a machine is on, and since which switching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Power {
    pub(crate) on: bool,
    since: u64,
}

/// The persistent boot device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BootDevice {
    Pxe,
    Disk,
}

/// Where a machine stands, as it knows itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Off, or on its way.
    Away,
    /// Clean, and told to wait.
    Ready,
    Installing(Uuid),
    /// Told to wait for a person.
    Held,
    /// Its system phoned home.
    Running(Uuid),
}

/// An installed system.
#[derive(Debug, Clone)]
pub(crate) struct System {
    pub(crate) allocation: Uuid,
    pub(crate) credential: Credential,
    pub(crate) control: Vec<String>,
}

#[derive(Debug)]
struct Hard {
    boot: BootDevice,
    led: bool,
    system: Option<System>,
    /// Of each disk, whether wiping it fails.
    broken: [bool; DISKS.len()],
    switched_on: Option<Instant>,
    /// Neither the machine nor its BMC has power.
    dark: bool,
    /// The BMC takes connections and says nothing.
    hung: bool,
    /// It tried to join before.
    has_joined: bool,
}

/// A machine.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) plan: MachinePlan,
    pub(crate) power: watch::Sender<Power>,
    pub(crate) stage: watch::Sender<Stage>,
    /// Of its BMC.
    pub(crate) tag: Tag,
    hard: Mutex<Hard>,
}

impl Machine {
    /// One that was just delivered: off, and with anything on its disks.
    pub(crate) fn new(plan: MachinePlan) -> Self {
        let off = Power {
            on: false,
            since: 0,
        };
        Self {
            plan,
            power: watch::Sender::new(off),
            stage: watch::Sender::new(Stage::Away),
            tag: Tag::default(),
            hard: Mutex::new(Hard {
                boot: BootDevice::Pxe,
                led: false,
                system: None,
                broken: [false; DISKS.len()],
                switched_on: None,
                dark: false,
                hung: false,
                has_joined: false,
            }),
        }
    }

    fn hard(&self) -> MutexGuard<'_, Hard> {
        self.hard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Switches it on, off, or, when it is on, off and on again.
    pub(crate) fn switch(&self, on: bool) {
        self.stage.send_replace(Stage::Away);
        self.hard().switched_on = on.then(Instant::now);
        self.power.send_modify(|power| {
            power.since += 1;
            power.on = on;
        });
    }

    pub(crate) fn is_on(&self) -> bool {
        self.power.borrow().on
    }

    pub(crate) fn boot_device(&self) -> BootDevice {
        self.hard().boot
    }

    pub(crate) fn set_boot_device(&self, boot: BootDevice) {
        self.hard().boot = boot;
    }

    pub(crate) fn led(&self) -> bool {
        self.hard().led
    }

    pub(crate) fn set_led(&self, on: bool) {
        self.hard().led = on;
    }

    pub(crate) fn install(&self, system: System) {
        self.hard().system = Some(system);
    }

    /// A disk's end: whatever was on it is gone.
    pub(crate) fn wiped(&self, disk: usize) {
        if disk == 0 {
            self.hard().system = None;
        }
    }

    pub(crate) fn is_broken(&self, disk: usize) -> bool {
        self.hard().broken.get(disk).copied().unwrap_or_default()
    }

    pub(crate) fn set_broken(&self, disk: usize, is_broken: bool) {
        if let Some(broken) = self.hard().broken.get_mut(disk) {
            *broken = is_broken;
        }
    }

    /// Takes the power of machine and BMC away, and gives it back: it is on again then.
    pub(crate) fn set_dark(&self, dark: bool) {
        self.hard().dark = dark;
        self.switch(!dark);
    }

    pub(crate) fn is_dark(&self) -> bool {
        self.hard().dark
    }

    pub(crate) fn set_hung(&self, hung: bool) {
        self.hard().hung = hung;
    }

    pub(crate) fn is_hung(&self) -> bool {
        self.hard().hung
    }

    /// Whether it has not tried to join yet; from now on it has.
    pub(crate) fn is_first_join(&self) -> bool {
        !std::mem::replace(&mut self.hard().has_joined, true)
    }

    /// How long ago it was switched on; each switching is asked for once.
    pub(crate) fn since_power(&self) -> Option<Duration> {
        self.hard().switched_on.take().map(|at| at.elapsed())
    }

    fn system(&self) -> Option<System> {
        self.hard().system.clone()
    }
}

/// A machine's life: it boots as long as it has power.
pub(crate) async fn live(world: &World, number: usize) {
    let Some(machine) = world.machines.get(number) else {
        return;
    };
    let mut power = machine.power.subscribe();
    loop {
        let is_on = power.borrow_and_update().on;
        let boot = async {
            if is_on {
                boot(world, machine).await
            } else {
                std::future::pending().await
            }
        };
        // Without power everything that was in memory is gone.
        tokio::select! {
            () = world.stop.cancelled() => return,
            changed = power.changed() => if changed.is_err() { return },
            done = boot => {
                machine.stage.send_replace(Stage::Away);
                if let Err(error) = done {
                    world.truth.note(number, format!("boot ended: {error:#}"));
                    tracing::warn!(machine = %machine.plan.uuid, error = format!("{error:#}"), "boot ended");
                    sleep(BOOT_AGAIN).await;
                }
            }
        }
    }
}

/// From POST to the next reboot.
async fn boot(world: &World, machine: &Machine) -> Result<()> {
    pass(world.delays.post_ms).await;
    if machine.boot_device() == BootDevice::Disk
        && let Some(system) = machine.system()
    {
        return run_system(world, machine, system).await;
    }
    match netboot::boot(world, machine).await? {
        Booted::Hammer(ticket) => hammer::run(world, machine, ticket).await,
        Booted::Disk => {
            let number = machine.plan.number;
            world.truth.note(number, "is told to boot from its disk");
            // When that was pixie's word alone, control calls it back.
            world.truth.restart_ordered(number);
            let system = machine
                .system()
                .context("control says disk, but none has a system")?;
            run_system(world, machine, system).await
        }
        Booted::Nothing => {
            sleep(BOOT_AGAIN).await;
            Ok(())
        }
    }
}

/// The installed system phones home for as long as the machine runs.
async fn run_system(world: &World, machine: &Machine, system: System) -> Result<()> {
    let began = Instant::now();
    pass(world.delays.start_ms).await;
    let socket = world.socket(machine.plan.number)?;
    let agent = Agent::from_credential_on(system.credential, system.control, socket)?;
    let client: PhoneHomeServiceClient = agent.client();
    let mut is_first = true;
    loop {
        let call = PhoneHomeRequest {
            boot_id: Uuid::new_v4().to_string(),
            uptime_s: began.elapsed().as_secs(),
            kernel: "simulated".into(),
        };
        match client.phone_home(call).await {
            Ok(answer) => {
                if std::mem::take(&mut is_first) {
                    world.times.add("start of the system", began.elapsed());
                    world.truth.note(machine.plan.number, "phoned home");
                    machine
                        .stage
                        .send_replace(Stage::Running(system.allocation));
                }
                sleep(Duration::from_secs(answer.interval_s.max(1).into())).await;
            }
            // Also when control took its certificate back: only the power ends a system.
            Err(_) => sleep(CALL_AGAIN).await,
        }
    }
}

/// Facts about machines for [`truth::Truth`].
pub(crate) fn truth(plans: &[MachinePlan]) -> truth::Truth {
    truth::Truth::new(plans.iter().map(|plan| plan.uuid), DISKS.len())
}
