//! A data centre with a pool, and what its machines do.

use control_state::life::{MachineOrder, bmc_desired};
use control_state::*;
use proto_types::*;

use crate::world::*;

/// The pool.
pub(super) const POOL: &str = "shared";

/// The id of claim `number`.
pub(super) fn claim_id(number: u128) -> ClaimId {
    id(0xc000 + number)
}

/// A policy that admits everybody.
pub(super) fn everybody() -> DeployPolicy {
    DeployPolicy {
        name: "all".into(),
        allow_all: true,
        priority_max: 100,
        ..DeployPolicy::default()
    }
}

/// A policy that admits a project.
pub(super) fn only(project: u128) -> DeployPolicy {
    DeployPolicy {
        name: format!("project {project}"),
        projects: [id(project)].into(),
        ..DeployPolicy::default()
    }
}

/// A pool that admits everybody and publishes every label.
pub(super) fn pool(name: &str) -> SetPool {
    SetPool {
        id: text(name),
        expected: None,
        labels: Labels::new(),
        description: String::new(),
        policies: vec![everybody()],
        published: ["*".to_owned()].into(),
        floor: WipeLevel::Erase,
        reuse_max_ms: 3_600_000,
        reuse_floor: None,
        metadata: MetadataRules::default(),
        on_revoke: RevokeRule::Keep,
    }
}

/// The pool, which lets a host be kept with its data.
pub(super) fn keeping_pool() -> SetPool {
    SetPool {
        reuse_floor: Some(WipeLevel::Metadata),
        ..pool(POOL)
    }
}

/// `true` if the last wipe of a machine left data.
pub(super) fn is_light(machine: &Machine) -> bool {
    let last = machine.wipes.last();
    last.is_some_and(|last| last.level() < WipeLevel::Erase)
}

/// Labels from `a=b` texts.
pub(super) fn labels(texts: &[&str]) -> Labels {
    let pairs = texts.iter().map(|text| text.split_once('=').unwrap());
    pairs
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

/// Machine `number` as a host of the pool.
pub(super) fn host(number: u128, of: &[&str]) -> SetPoolHost {
    SetPoolHost {
        machine: id(number),
        expected: None,
        pool: text(POOL),
        labels: labels(of),
        annotations: Labels::new(),
        taints: [].into(),
        domain: String::new(),
        only: vec![],
        cordon: None,
    }
}

/// An intent that asks for labels, without an image.
pub(super) fn asking(of: &[&str]) -> ClaimSpec {
    ClaimSpec {
        selector: ClaimSelector {
            labels: labels(of),
            terms: vec![],
        },
        powered_on: true,
        ..ClaimSpec::default()
    }
}

/// An intent with an image, in the private network of project 1.
pub(super) fn installing(of: &[&str]) -> ClaimSpec {
    ClaimSpec {
        image: Some(text("debian-12.0")),
        layout: Some(text(LAYOUT_DEFAULT)),
        networks: vec![WantedNetwork {
            network: text("private"),
            ips: vec![],
        }],
        ..asking(of)
    }
}

/// Claim `number` of a project.
pub(super) fn claim(number: u128, project: u128, spec: ClaimSpec) -> CreateClaim {
    CreateClaim {
        id: claim_id(number),
        project: id(project),
        name: format!("claim-{number}"),
        labels: Labels::new(),
        spec,
        adopt: None,
    }
}

/// The end of claim `number` of a project.
pub(super) fn deletion(number: u128, project: u128) -> DeleteClaim {
    DeleteClaim {
        id: claim_id(number),
        project: id(project),
        epoch: None,
    }
}

/// Another intent of claim `number` of project 1.
pub(super) fn intent(number: u128, spec: ClaimSpec) -> UpdateClaim {
    UpdateClaim {
        id: claim_id(number),
        expected: None,
        project: id(1),
        epoch: None,
        spec: Some(spec),
        labels: None,
    }
}

/// The next thing that happens to a machine, by its phase.
pub(super) fn advance(world: &mut World, number: u128) {
    let orders = bmc_desired(&world.tables, &text(PARTITION));
    let order = orders.iter().find(|order| order.machine == id(number));
    if let Some(order) = order {
        world.ok(BmcOrderDone {
            id: order.id,
            partition: text(PARTITION),
            error: None,
            power_state: None,
            nonce: None,
        });
        return;
    }
    let machine = world.machine(number).clone();
    match machine.phase {
        Phase::Installing => {
            let allocation = machine.allocation.unwrap();
            world.event(number, EventKind::Installing);
            world.ok(InstallDone {
                allocation: allocation.id,
                ..installed(number, 0)
            });
        }
        Phase::Rebooting => {
            world.event(number, EventKind::BootingNewKernel);
            world.switch_obeys();
            let project = machine.allocation.unwrap().project;
            let time = world.now;
            world.ok(PhoneHome {
                id: id(number),
                project,
                message: String::new(),
                time,
            });
        }
        Phase::ReclaimPorts | Phase::TenantPorts => world.switch_obeys(),
        Phase::ReclaimBoot | Phase::ReclaimRegister | Phase::New => {
            let boot = format!("boot-{}", world.now.ms());
            world.boot(number, &boot);
        }
        Phase::Wiping => {
            let is_light = world.order(number) == MachineOrder::WipeMetadata;
            let method = if is_light { "metadata" } else { "zero" };
            world.ok(WipeDone {
                id: id(number),
                disks: vec![DiskWipe {
                    method: method.into(),
                    ..wiped("/dev/vda", None)
                }],
            });
            world.event(number, EventKind::Waiting);
        }
        // It was told to come up anew, to be wiped again.
        Phase::Waiting if machine.dirty => {
            let boot = format!("boot-{}", world.now.ms());
            world.boot(number, &boot);
        }
        Phase::Waiting => world.event(number, EventKind::Waiting),
        Phase::Held(HoldCause::Bmc | HoldCause::Ports | HoldCause::Wipe) => {
            world.ok(SetMachineState {
                id: id(number),
                state: Availability::Available,
                description: String::new(),
            });
        }
        _ => {}
    }
}

impl World {
    /// A world with the pool and no host, whose control nodes know every rule.
    pub(super) fn pooled() -> Self {
        let mut world = upgraded();
        world.ok(pool(POOL));
        world
    }

    /// A pool with these hosts, each waiting and clean.
    pub(super) fn hosting(hosts: &[&[&str]]) -> Self {
        let mut world = Self::pooled();
        for (number, of) in (1..).zip(hosts) {
            world.waiting(number);
            world.ok(host(number, of));
        }
        world
    }

    pub(super) fn claim(&self, number: u128) -> &Claim {
        self.tables.get::<Claim>(&claim_id(number)).unwrap()
    }

    pub(super) fn state(&self, number: u128) -> ClaimState {
        self.claim(number).state
    }

    pub(super) fn reason(&self, number: u128) -> (PendingReason, u32) {
        let queue = &self.claim(number).queue;
        (queue.reason, queue.matching)
    }

    /// Number of the machine that a claim has.
    pub(super) fn host_of(&self, number: u128) -> Option<u128> {
        let host = query::host_of_claim(&self.tables, claim_id(number))?;
        Some(host.machine.uuid().as_u128())
    }

    pub(super) fn pool_host(&self, number: u128) -> &PoolHost {
        self.tables.get::<PoolHost>(&id(number)).unwrap()
    }

    pub(super) fn condition(&self, number: u128, kind: ClaimConditionKind) -> &ClaimCondition {
        let mut conditions = self.claim(number).conditions.iter();
        conditions.find(|found| found.kind == kind).unwrap()
    }

    /// The machine of a claim is installed, and its system runs.
    pub(super) fn installed_claim(&mut self, number: u128) {
        let host = self.host_of(number).unwrap();
        let allocation = self.machine(host).allocation.clone().unwrap();
        self.event(host, EventKind::Installing);
        self.ok(InstallDone {
            allocation: allocation.id,
            ..installed(host, 0)
        });
        self.bmc(BmcAction::BootDisk, None);
        self.event(host, EventKind::BootingNewKernel);
        self.switch_obeys();
        let time = self.now;
        self.ok(PhoneHome {
            id: id(host),
            project: allocation.project,
            message: String::new(),
            time,
        });
    }

    /// A machine that was freed goes all the way back, and is wiped by a method.
    pub(super) fn reclaimed(&mut self, number: u128, method: &str) {
        self.left(number);
        self.ok(WipeDone {
            id: id(number),
            disks: vec![DiskWipe {
                method: method.into(),
                ..wiped("/dev/vda", None)
            }],
        });
        self.event(number, EventKind::Waiting);
    }

    /// A machine that was freed goes back as far as its wipe.
    pub(super) fn left(&mut self, number: u128) {
        self.bmc(BmcAction::PowerOff, None);
        self.switch_obeys();
        self.bmc(BmcAction::BootPxe, None);
        self.bmc(BmcAction::PowerOn, None);
        let boot = format!("boot-{}", self.now.ms());
        self.boot(number, &boot);
    }
}
