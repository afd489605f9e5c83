//! A machine from power-on to power-off: its firmware, and what it boots.

use std::ops::Range;
use std::time::Duration;

use control_state::life::{BootTarget, boot_target};
use control_state::{Op, PhoneHome, Tables};
use proto_types::{MachineId, Timestamp};

use crate::clock;
use crate::node::Shared;
use crate::random::Random;
use crate::tenants::calls::{Call, Proof, Sender, deliver};
use crate::tenants::chassis::{Chassis, Disk};
use crate::tenants::work::TenantWork;
use crate::tenants::{ids, ledger};

/// Time of the firmware before anything boots, milliseconds.
const FIRMWARE_MS: Range<u64> = 4_000..15_000;
/// Pause between two looks of an installed system, milliseconds.
const SYSTEM_MS: Range<u64> = 3_000..12_000;
/// Looks of a hundred at which an installed system phones home although control knows it.
const AGAIN_PERCENT: u64 = 3;
/// Looks of a thousand after which a machine is away for a while.
const AWAY_PERMILLE: u64 = 8;
/// Time that it is away, milliseconds.
const AWAY_MS: Range<u64> = 3_000..60_000;

/// The agent that runs on a machine.
pub(crate) struct MachineAgent {
    pub(crate) world: Shared<TenantWork>,
    pub(crate) number: u64,
    pub(crate) id: MachineId,
    pub(crate) random: Random,
}

/// Lives through the power cycles of machine `number` until the run ends.
pub(crate) async fn run(world: Shared<TenantWork>, number: u64) {
    let seed = world.borrow().plan.seed;
    let mut agent = MachineAgent {
        world,
        number,
        id: ids::machine(number),
        random: Random::new(seed, &format!("machine {number}")),
    };
    while let Some(cycle) = agent.powered().await {
        agent.live(cycle).await;
    }
}

impl MachineAgent {
    /// Waits for power. `None` means that the run ends.
    async fn powered(&self) -> Option<u64> {
        const LOOK_EVERY: Duration = Duration::from_millis(500);
        loop {
            {
                let world = self.world.borrow();
                let chassis = &world.work.chassis[&self.number];
                if world.is_calm {
                    return None;
                }
                if chassis.is_on {
                    return Some(chassis.cycle);
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn live(&mut self, cycle: u64) {
        if !self.pause(cycle, FIRMWARE_MS).await {
            return;
        }
        let boots_from_disk = self.chassis(|chassis| chassis.boots_from_disk);
        let has_system = matches!(ledger::disk(self.id), Disk::System { .. });
        let target = match boots_from_disk && has_system {
            true => BootTarget::Disk,
            false => self.pixie(),
        };
        match target {
            BootTarget::Hammer => self.hammer(cycle).await,
            BootTarget::Disk => self.system(cycle).await,
            // The firmware asks again.
            BootTarget::None => {}
        }
    }

    /// The answer of the boot server.
    fn pixie(&self) -> BootTarget {
        self.view(|tables| boot_target(tables, self.id))
            .unwrap_or(BootTarget::None)
    }

    /// The installed system phones home until control knows, and now and then later.
    async fn system(&mut self, cycle: u64) {
        let Disk::System {
            project,
            allocation,
        } = ledger::disk(self.id)
        else {
            return;
        };
        let machine = self.id;
        let proof = Proof::Tenancy {
            machine,
            allocation,
        };
        self.begin_session(cycle, proof.clone());
        let mut is_known = false;
        while self.pause(cycle, SYSTEM_MS).await {
            self.go_away();
            if is_known && !self.random.chance(AGAIN_PERCENT) {
                continue;
            }
            let call = PhoneHome {
                id: machine,
                project,
                message: String::new(),
                time: self.now(),
            };
            is_known |= self.tell(cycle, Some(proof.clone()), call).await;
        }
    }

    /// Lets time pass. `false` means that the power cycle, or the run, is over.
    pub(crate) async fn pause(&mut self, cycle: u64, ms: Range<u64>) -> bool {
        let ms = self.random.within(ms);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        self.lives(cycle)
    }

    pub(crate) fn lives(&self, cycle: u64) -> bool {
        let world = self.world.borrow();
        !world.is_calm && world.work.chassis[&self.number].lives(cycle)
    }

    fn chassis<T>(&self, look: impl FnOnce(&Chassis) -> T) -> T {
        look(&self.world.borrow().work.chassis[&self.number])
    }

    /// Changes the body of the machine.
    pub(crate) fn with_chassis(&self, change: impl FnOnce(&mut Chassis)) {
        let mut world = self.world.borrow_mut();
        if let Some(chassis) = world.work.chassis.get_mut(&self.number) {
            change(chassis);
        }
    }

    /// From now on the machine is heard with this credential.
    pub(crate) fn begin_session(&self, cycle: u64, proof: Proof) {
        self.with_chassis(|chassis| {
            if chassis.lives(cycle) {
                chassis.session = Some(proof);
            }
        });
    }

    /// Now and then the machine is cut off for a while.
    pub(crate) fn go_away(&mut self) {
        if self.random.within(0..1_000) < AWAY_PERMILLE {
            let away_ms = self.random.within(AWAY_MS);
            let until_ms = self.world.borrow().now_ms + away_ms;
            self.with_chassis(|chassis| chassis.away_until_ms = until_ms);
        }
    }

    /// Looks at the newest state that agents know. `None` means that there is none yet.
    pub(crate) fn view<T>(&self, look: impl FnOnce(&Tables) -> T) -> Option<T> {
        let view = self.world.borrow().work.view.clone()?;
        Some(look(view.as_ref()))
    }

    /// Time by the machine's own clock, which is right.
    pub(crate) fn now(&self) -> Timestamp {
        clock::at(self.world.borrow().now_ms)
    }

    /// Tells control something. `true` means that it was accepted.
    pub(crate) async fn tell(
        &mut self,
        cycle: u64,
        proof: Option<Proof>,
        op: impl Into<Op>,
    ) -> bool {
        let number = self.number;
        let call = Call {
            actor: format!("machine {number}"),
            op: op.into(),
            proof,
            sender: Sender::Machine { number, cycle },
        };
        let answer = deliver(&self.world, &mut self.random, &call).await;
        answer.is_some_and(|answer| answer.is_ok())
    }
}
