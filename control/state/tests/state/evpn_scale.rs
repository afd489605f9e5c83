//! The time of one allocation in a partition of 100 leaves and 5,000 machines of one project, each on
//! two leaves. Numbers are for people: run it with
//! `cargo test --release -p control-state --test state evpn_scale -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use control_state::life::Fabric;
use control_state::*;
use proto_types::{MacAddr, Timestamp};
use tests_support::announcement;

use crate::world::*;

const LEAVES: u128 = 100;
const PORTS: u128 = 100;
const MACHINES: u128 = 5000;

/// Tables with the fabric that follows them.
struct Hall {
    tables: Tables,
    fabric: Fabric,
    now: Timestamp,
}

impl Hall {
    /// Applies a command, and returns how long the fabric takes to follow and to compute the desired
    /// state of each switch that it names, with their number.
    fn run(&mut self, op: impl Into<Op>) -> (Duration, usize) {
        self.now = self.now.plus_ms(1);
        let command = Command::new(self.now, "tester", op.into());
        let outcome = apply(&mut self.tables, &command);
        outcome.result.unwrap();
        let began = Instant::now();
        let concerned = self.fabric.take(&self.tables, &outcome.changes);
        let desired = concerned.iter().map(|id| self.fabric.desired(id).unwrap());
        let switches = desired.count();
        (began.elapsed(), switches)
    }

    fn event(&mut self, number: u128, kind: EventKind) -> (Duration, usize) {
        let time = self.now;
        self.run(MachineEvent {
            id: id(number),
            kind,
            message: String::new(),
            time,
        })
    }

    /// Puts machine `number` on offer, on the same port of the two leaves of its rack.
    fn offer(&mut self, number: u128) {
        self.run(MachineSeen {
            id: id(number),
            partition: text(PARTITION),
            mac: None,
            seen_at: self.now,
            to_disk: false,
            stated_at: None,
            relayed: None,
        });
        let mut machine = registration(1, "boot-1");
        machine.id = id(number);
        let nic = machine.hardware.nics[0].clone();
        let low = u16::try_from(number).unwrap().to_be_bytes();
        machine.hardware.nics = [0_u8, 1]
            .map(|side| {
                let mut nic = nic.clone();
                nic.name = format!("eth{side}");
                nic.mac = MacAddr([0x52, 0x54, 0, side, low[0], low[1]]);
                let leaf = number / PORTS * 2 + u128::from(side);
                nic.neighbours[0].chassis_id = format!("l{leaf}");
                nic.neighbours[0].system_name = format!("l{leaf}");
                nic.neighbours[0].port_id = format!("swp{}", number % PORTS);
                nic
            })
            .to_vec();
        self.run(machine);
        self.run(WipeDone {
            id: id(number),
            disks: vec![wiped("/dev/vda", None)],
        });
        self.event(number, EventKind::Registering);
        self.event(number, EventKind::Waiting);
    }

    /// Allocates machine `number` and installs it: the times of the steps that move its ports.
    fn allocate(&mut self, number: u128) -> Vec<(Duration, usize)> {
        let allocated = self.run(AllocateMachine {
            machine: Some(id(number)),
            partition: None,
            size: None,
            networks: vec![WantedNetwork {
                network: text("large"),
                ips: vec![],
            }],
            ..allocation_of(number + 100_000)
        });
        self.event(number, EventKind::Installing);
        let done = self.run(installed(number, number + 100_000));
        let partition = text(PARTITION);
        let order = life::bmc_desired(&self.tables, &partition)[0].id;
        self.run(BmcOrderDone {
            id: order,
            partition,
            error: None,
            power_state: None,
            nonce: None,
        });
        let booted = self.event(number, EventKind::BootingNewKernel);
        vec![allocated, done, booted]
    }
}

#[test]
#[ignore = "takes a while and proves nothing by itself"]
fn one_allocation_of_five_thousand() {
    let world = World::new();
    let mut hall = Hall {
        fabric: Fabric::of(&world.tables),
        tables: world.tables,
        now: world.now,
    };
    let labels = [
        (label::FABRIC.to_owned(), "evpn".to_owned()),
        (
            label::UNKNOWN_MACHINES.to_owned(),
            UNKNOWN_MACHINES_MAX.to_string(),
        ),
    ];
    hall.run(announcement(1));
    hall.run(relabel(LabelsUpdate::Replace(labels.into())));
    hall.run(CreateChildNetwork {
        length: ChildLength {
            v4: Some(18),
            v6: None,
        },
        ..child("large", 1)
    });
    for number in 0..LEAVES {
        hall.run(RegisterSwitch {
            ports: (0..PORTS).map(|n| (format!("swp{n}"), None)).collect(),
            hears: false,
            ..leaf(&format!("l{number}"), &format!("rack-{}", number / 2))
        });
    }
    let mut times = Vec::new();
    for number in 0..MACHINES {
        hall.offer(number);
        times.extend(hall.allocate(number));
    }
    assert!(hall.fabric == Fabric::of(&hall.tables));
    let last = times.split_off(times.len() - 300);
    for (is_moved, what) in [(false, "ports stay"), (true, "ports move")] {
        let of_kind = last
            .iter()
            .filter(|(_, switches)| (*switches > 0) == is_moved);
        let mut of_kind: Vec<_> = of_kind.collect();
        of_kind.sort();
        let middle = of_kind.get(of_kind.len() / 2);
        println!("{what}: p50 {middle:?}, slowest {:?}", of_kind.last());
    }
    let external = CreateNetwork {
        kind: NetworkType::External,
        prefixes: vec!["192.0.2.0/24".parse().unwrap()],
        default_child_length: ChildLength::default(),
        vrf: Some(100),
        ..network("internet")
    };
    hall.run(external);
    let address = hall.run(ip(1, "internet", 1));
    println!("an address outside of the network: {address:?}");
}
