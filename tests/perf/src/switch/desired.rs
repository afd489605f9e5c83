//! Control's part of one allocation in a large partition: the desired state of the switches that
//! it concerns, in this process.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use control_state::life::{self, Fabric};
use control_state::{
    AllocateMachine, BmcOrderDone, ChildLength, Command, CreateChildNetwork, CreateImage,
    CreateNetwork, CreatePartition, CreateSize, EventKind, InstallDone, LabelsUpdate, Lock,
    MachineEvent, MachineSeen, NetworkType, Op, RegisterSwitch, Tables, UNKNOWN_MACHINES_MAX,
    UpdatePartition, WantedNetwork, WipeDone, apply, label,
};
use proto_types::{MacAddr, Timestamp};
use tests_support::announcement;
use tests_support::objects::{
    IMAGE, PARTITION, allocation_of, child, id, image, leaf, network, partition, project,
    registration, size, tenant, text, wiped,
};

use super::Bench;
use crate::sample::Latencies;

const LEAVES: u128 = 100;
/// Ports of a leaf, and machines of a rack, each on two leaves.
const PORTS: u128 = 100;
const MACHINES: u128 = 5000;
/// Machines whose allocations count: the last ones.
const COUNTED: u128 = 200;
/// Number of a machine's allocation: its own and this.
const ALLOCATION: u128 = 100_000;

/// Measures.
pub(super) fn measure(bench: &mut Bench) -> Result<()> {
    bench.progress(&format!(
        "{LEAVES} leaves, {MACHINES} machines of one project"
    ));
    let mut hall = Hall::new()?;
    let mut took = Latencies::default();
    for number in 0..MACHINES {
        hall.offer(number)?;
        let counts = number + COUNTED >= MACHINES;
        let step = hall.allocate(number)?;
        if counts {
            took.add(step.took);
            ensure!(
                step.switches == 2,
                "{} switches are concerned",
                step.switches
            );
        }
    }
    ensure!(
        hall.fabric == Fabric::of(&hall.tables),
        "the desired state is not the one of the tables"
    );
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| took.quantile_us(share) / 1e3);
    bench.progress(&format!(
        "p50 {p50:.3} ms, p99 {p99:.3} ms, slowest {max:.3} ms"
    ));
    for (name, number) in [
        ("desired_p50_ms", p50),
        ("desired_p99_ms", p99),
        ("desired_max_ms", max),
        ("desired_switches", 2.0),
    ] {
        bench.report.add(name, number);
    }
    Ok(())
}

/// A command's cost: the fabric follows it, and makes the desired state of each switch concerned.
struct Followed {
    took: Duration,
    switches: usize,
}

/// Tables with the fabric that follows them.
struct Hall {
    tables: Tables,
    fabric: Fabric,
    now: Timestamp,
}

impl Hall {
    /// A partition with EVPN, a network for all machines, and the leaves.
    fn new() -> Result<Self> {
        let tables = Tables::new();
        let mut hall = Self {
            fabric: Fabric::of(&tables),
            tables,
            now: Timestamp::from_ms(1_000_000_000),
        };
        hall.run(announcement(1))?;
        hall.run(tenant("acme", Some("acme")))?;
        hall.run(project(1, "acme"))?;
        hall.run(CreatePartition(partition(PARTITION)))?;
        hall.run(CreateSize(size()))?;
        let mut routed = image(IMAGE);
        let labels = &mut routed.meta.labels;
        labels.insert(label::NETWORKING.to_owned(), "routed".to_owned());
        hall.run(CreateImage(routed))?;
        hall.run(CreateNetwork {
            kind: NetworkType::Super,
            min_child_length: ChildLength {
                v4: Some(18),
                v6: None,
            },
            ..network("super")
        })?;
        hall.run(evpn())?;
        hall.run(CreateChildNetwork {
            length: ChildLength {
                v4: Some(18),
                v6: None,
            },
            ..child("large", 1)
        })?;
        for number in 0..LEAVES {
            hall.run(RegisterSwitch {
                ports: (0..PORTS).map(|n| (format!("swp{n}"), None)).collect(),
                hears: false,
                ..leaf(&format!("l{number}"), &format!("rack-{}", number / 2))
            })?;
        }
        Ok(hall)
    }

    fn run(&mut self, op: impl Into<Op>) -> Result<Followed> {
        self.now = self.now.plus_ms(1);
        let op = op.into();
        let name = op.name();
        let command = Command::new(self.now, "bench", op);
        let outcome = apply(&mut self.tables, &command);
        outcome.result.with_context(|| name.to_owned())?;
        let began = Instant::now();
        let concerned = self.fabric.take(&self.tables, &outcome.changes);
        let desired = concerned.iter().map(|id| self.fabric.desired(id));
        let desired: Vec<_> = desired.collect::<Result<_, _>>()?;
        let took = began.elapsed();
        Ok(Followed {
            took,
            switches: desired.len(),
        })
    }

    fn event(&mut self, number: u128, kind: EventKind) -> Result<Followed> {
        let time = self.now;
        self.run(MachineEvent {
            id: id(number),
            kind,
            message: String::new(),
            time,
        })
    }

    /// Puts machine `number` on offer, on the same port of the two leaves of its rack.
    fn offer(&mut self, number: u128) -> Result<()> {
        self.run(MachineSeen {
            id: id(number),
            partition: text(PARTITION),
            mac: None,
            seen_at: self.now,
            to_disk: false,
            stated_at: None,
            relayed: None,
        })?;
        let mut machine = registration(1, "boot-1");
        machine.id = id(number);
        let nic = machine.hardware.nics.pop().context("no card")?;
        let [high, low] = u16::try_from(number)?.to_be_bytes();
        let nics = [0_u8, 1].map(|side| {
            let mut nic = nic.clone();
            nic.name = format!("eth{side}");
            nic.mac = MacAddr([0x52, 0x54, 0, side, high, low]);
            let leaf = format!("l{}", number / PORTS * 2 + u128::from(side));
            for neighbour in &mut nic.neighbours {
                neighbour.chassis_id.clone_from(&leaf);
                neighbour.system_name.clone_from(&leaf);
                neighbour.port_id = format!("swp{}", number % PORTS);
            }
            nic
        });
        machine.hardware.nics = nics.to_vec();
        self.run(machine)?;
        self.run(WipeDone {
            id: id(number),
            disks: vec![wiped("/dev/vda", None)],
        })?;
        self.event(number, EventKind::Registering)?;
        self.event(number, EventKind::Waiting)?;
        Ok(())
    }

    /// Allocates machine `number` and installs it. The step that moves its ports.
    fn allocate(&mut self, number: u128) -> Result<Followed> {
        self.run(AllocateMachine {
            machine: Some(id(number)),
            partition: None,
            size: None,
            networks: vec![WantedNetwork {
                network: text("large"),
                ips: vec![],
            }],
            ..allocation_of(number + ALLOCATION)
        })?;
        self.event(number, EventKind::Installing)?;
        self.run(InstallDone {
            id: id(number),
            allocation: id(number + ALLOCATION),
            error: None,
            step: String::new(),
            retryable: false,
            log_tail: String::new(),
            console_password: "secret".into(),
            primary_disk: "/dev/vda".into(),
        })?;
        let partition = text(PARTITION);
        let orders = life::bmc_desired(&self.tables, &partition);
        let order = orders.first().context("no order to boot from disk")?.id;
        self.run(BmcOrderDone {
            id: order,
            partition,
            error: None,
            power_state: None,
            nonce: None,
        })?;
        self.event(number, EventKind::BootingNewKernel)
    }
}

/// Makes the partition one of EVPN, with many unknown machines.
fn evpn() -> UpdatePartition {
    let labels = [
        (label::FABRIC.to_owned(), "evpn".to_owned()),
        (
            label::UNKNOWN_MACHINES.to_owned(),
            UNKNOWN_MACHINES_MAX.to_string(),
        ),
    ];
    UpdatePartition {
        id: text(PARTITION),
        lock: Lock::Server,
        description: None,
        boot: None,
        dns_servers: None,
        ntp_servers: None,
        mgmt_service_addresses: None,
        labels: Some(LabelsUpdate::Replace(labels.into())),
    }
}
