//! Hammer: it registers the machine, wipes, waits, installs and leaves, as control orders.

use std::ops::Range;

use control_state::life::{InstallOrder, MachineOrder, machine_order};
use control_state::{
    DiskWipe, EventKind, EventLog, InstallDone, Machine, MachineEvent, MachineSeen, Neighbour,
    RegisterMachine, WipeDone,
};
use proto_types::AllocationId;
use tests_support::objects::{PARTITION, mac, registration, text, wiped};

use super::machine::MachineAgent;
use crate::tenants::calls::Proof;
use crate::tenants::chassis::Disk;
use crate::tenants::{ledger, site};

/// Pause between two looks at the order, milliseconds.
const LOOK_MS: Range<u64> = 700..2_500;
/// Time of a wipe and of an installation, milliseconds.
const WIPE_MS: Range<u64> = 2_000..12_000;
/// Time of the removal of partition tables and signatures, milliseconds.
const CLEAR_MS: Range<u64> = 100..1_000;
const INSTALL_MS: Range<u64> = 6_000..25_000;
/// Of a hundred wipes, those that fail, and those of disks that cannot erase themselves.
const BROKEN_PERCENT: u64 = 1;
const ZEROED_PERCENT: u64 = 10;
/// Of a hundred installations, those that fail for good, and those that fail at all.
const FATAL_PERCENT: u64 = 1;
const FAILED_PERCENT: u64 = 4;

/// One boot into hammer.
struct HammerBoot {
    cycle: u64,
    id: String,
    proof: Proof,
    /// Orders carried out in this boot are reported again, and never carried out again.
    has_wiped: bool,
    installed: Option<AllocationId>,
}

impl MachineAgent {
    /// Runs hammer as long as the power cycle lasts.
    pub(crate) async fn hammer(&mut self, cycle: u64) {
        let id = format!("boot-{cycle}");
        let proof = Proof::Boot {
            machine: self.id,
            boot: id.clone(),
        };
        let mut boot = HammerBoot {
            cycle,
            id,
            proof,
            has_wiped: false,
            installed: None,
        };
        if !self.register(&boot).await {
            return;
        }
        self.begin_session(cycle, boot.proof.clone());
        while self.pause(cycle, LOOK_MS).await {
            self.go_away();
            match self.order(&boot) {
                Some(MachineOrder::Wipe) => self.wipe(&mut boot).await,
                Some(MachineOrder::WipeMetadata) => self.wipe_metadata(&boot).await,
                Some(MachineOrder::Wait) => self.wait(&boot).await,
                Some(MachineOrder::Install(order)) => self.install(&mut boot, &order).await,
                Some(MachineOrder::Reboot) => return self.leave(&boot).await,
                Some(MachineOrder::Nothing | MachineOrder::Hold { .. }) | None => {}
            }
        }
    }

    /// The order for this boot. `None` means that control does not know the boot yet.
    fn order(&self, boot: &HammerBoot) -> Option<MachineOrder> {
        self.view(|tables| {
            let machine = tables.get::<Machine>(&self.id)?;
            let is_known = machine.boot_id == boot.id;
            is_known.then(|| machine_order(tables, self.id))
        })?
    }

    async fn event(&mut self, boot: &HammerBoot, kind: EventKind, proof: Option<Proof>) -> bool {
        let event = MachineEvent {
            id: self.id,
            kind,
            message: String::new(),
            time: self.now(),
        };
        self.tell(boot.cycle, proof, event).await
    }

    /// The boot server sees the machine, and hammer comes up. `false` means that it did not.
    async fn register(&mut self, boot: &HammerBoot) -> bool {
        let number = u128::from(self.number);
        let seen = MachineSeen {
            id: self.id,
            partition: text(PARTITION),
            mac: Some(mac(number)),
            seen_at: self.now(),
            to_disk: false,
            stated_at: Some(self.now()),
            relayed: None,
        };
        self.tell(boot.cycle, None, seen).await;
        self.event(boot, EventKind::Preparing, None).await;
        self.event(boot, EventKind::Registering, None).await;
        let (leaf, port) = site::port_of(self.number);
        let mut found = registration(number, &boot.id);
        for nic in &mut found.hardware.nics {
            nic.neighbours = vec![Neighbour {
                chassis_id: leaf.clone(),
                port_id: port.clone(),
                system_name: leaf.clone(),
                ..Neighbour::default()
            }];
        }
        let registers = RegisterMachine {
            id: self.id,
            ..found
        };
        self.tell(boot.cycle, None, registers).await && self.lives(boot.cycle)
    }

    async fn wipe(&mut self, boot: &mut HammerBoot) {
        let mut error = None;
        if !boot.has_wiped {
            if !self.pause(boot.cycle, WIPE_MS).await {
                return;
            }
            if self.random.chance(BROKEN_PERCENT) {
                error = Some("broken");
            } else {
                ledger::set_disk(self.id, Disk::Clean);
                boot.has_wiped = true;
            }
        }
        let method = match self.random.chance(ZEROED_PERCENT) {
            true => "zero",
            false => "nvme-format",
        };
        self.tell_wiped(boot, method, error).await;
    }

    /// The system goes, and the data stays.
    async fn wipe_metadata(&mut self, boot: &HammerBoot) {
        if !self.pause(boot.cycle, CLEAR_MS).await {
            return;
        }
        if let Disk::System { project, .. } = ledger::disk(self.id) {
            ledger::set_disk(self.id, Disk::Data(project));
        }
        self.tell_wiped(boot, "metadata", None).await;
    }

    async fn tell_wiped(&mut self, boot: &HammerBoot, method: &str, error: Option<&str>) {
        let disk = DiskWipe {
            method: method.into(),
            ..wiped("/dev/vda", error)
        };
        let done = WipeDone {
            id: self.id,
            disks: vec![disk],
        };
        self.tell(boot.cycle, Some(boot.proof.clone()), done).await;
    }

    /// Says that it waits, unless that was the last word.
    async fn wait(&mut self, boot: &HammerBoot) {
        let state = self.view(|tables| {
            let log = tables.get::<EventLog>(&self.id)?;
            log.state
        });
        if state.flatten() != Some(EventKind::Waiting) {
            self.event(boot, EventKind::Waiting, Some(boot.proof.clone()))
                .await;
        }
    }

    async fn install(&mut self, boot: &mut HammerBoot, order: &InstallOrder) {
        let mut done = InstallDone {
            id: self.id,
            allocation: order.allocation,
            error: None,
            step: String::new(),
            retryable: false,
            log_tail: String::new(),
            console_password: "secret".into(),
            primary_disk: "/dev/vda".into(),
        };
        if boot.installed != Some(order.allocation) {
            let proof = Some(boot.proof.clone());
            self.event(boot, EventKind::Installing, proof).await;
            if !self.lives(boot.cycle) {
                return;
            }
            // From the first byte on the disk is not clean.
            ledger::set_disk(self.id, Disk::Data(order.project));
            if !self.pause(boot.cycle, INSTALL_MS).await {
                return;
            }
            let draw = self.random.within(0..100);
            if draw < FAILED_PERCENT {
                done.error = Some("no space left on device".into());
                done.step = "unpack".into();
                done.retryable = draw >= FATAL_PERCENT;
            } else {
                let system = Disk::System {
                    project: order.project,
                    allocation: order.allocation,
                };
                ledger::set_disk(self.id, system);
                boot.installed = Some(order.allocation);
            }
        }
        self.tell(boot.cycle, Some(boot.proof.clone()), done).await;
    }

    /// The last word of hammer; then the machine boots what it installed.
    async fn leave(&mut self, boot: &HammerBoot) {
        let proof = Some(boot.proof.clone());
        self.event(boot, EventKind::BootingNewKernel, proof).await;
        self.with_chassis(|chassis| {
            if chassis.lives(boot.cycle) {
                chassis.reset();
            }
        });
    }
}
