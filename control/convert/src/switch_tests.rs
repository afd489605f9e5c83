//! Switches of a large partition.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use control_state::{
    BootConfiguration, Command, CreatePartition, Hardware, Machine, MachineSeen, Meta, Neighbour,
    Nic, Op, Partition, RegisterMachine, RegisterSwitch, Switch, Tables, apply, label,
};
use proto_public::api::v2::{MachineConnection, SwitchQuery};
use proto_types::{MacAddr, MachineId, Timestamp};
use uuid::Uuid;

use super::{matches, switch};

const SWITCHES: u128 = 100;
const MACHINES: u128 = 10_000;
/// Each machine hangs at two switches.
const PORTS: u128 = 2 * MACHINES / SWITCHES;

fn ok(tables: &mut Tables, op: impl Into<Op>) {
    let command = Command::new(Timestamp::from_ms(1_000_000_000), "tester", op);
    apply(tables, &command).result.unwrap();
}

fn leaf(number: u128) -> RegisterSwitch {
    RegisterSwitch {
        id: format!("leaf{number}").parse().unwrap(),
        partition: "lab".parse().unwrap(),
        rack: format!("rack-{}", number / 2),
        room: String::new(),
        management_ip: None,
        vtep_ip: None,
        ports: (0..PORTS).map(|n| (format!("swp{n}"), None)).collect(),
        identifiers: BTreeMap::new(),
        os_vendor: "linux".into(),
        os_version: String::new(),
        agent_version: String::new(),
        hears: false,
    }
}

/// A machine at the same port of both leaves of its rack.
fn machine(number: u128) -> (MachineSeen, RegisterMachine) {
    let id = MachineId::new(Uuid::from_u128(number));
    let [low, high, ..] = number.to_le_bytes();
    let mac = |side: u128| MacAddr([2, u8::from(side == 1), 0, 0, high, low]);
    let (rack, port) = (number / PORTS, number % PORTS);
    let nic = |side: u128| Nic {
        name: format!("eth{side}"),
        mac: mac(side),
        identifier: String::new(),
        vendor: String::new(),
        model: String::new(),
        speed: 1000,
        neighbours: vec![Neighbour {
            chassis_id: String::new(),
            port_id: format!("swp{port}"),
            system_name: format!("leaf{}", 2 * rack + side),
            ..Neighbour::default()
        }],
        boot: side == 0,
    };
    let seen = MachineSeen {
        id,
        partition: "lab".parse().unwrap(),
        mac: Some(mac(0)),
        seen_at: Timestamp::from_ms(1_000_000_000),
        to_disk: false,
        stated_at: None,
        relayed: None,
    };
    let registration = RegisterMachine {
        id,
        seen_in: None,
        hammer_version: String::new(),
        boot_id: "boot-1".into(),
        hardware: Hardware {
            nics: vec![nic(0), nic(1)],
            ..Hardware::default()
        },
        bios: Default::default(),
        fru: Default::default(),
        bmc_address: String::new(),
        bmc_mac: String::new(),
        bmc_version: String::new(),
    };
    (seen, registration)
}

fn partition() -> Tables {
    let mut tables = Tables::new();
    let lab = Partition {
        id: "lab".parse().unwrap(),
        // All of them become known at once.
        meta: Meta::labelled([(label::UNKNOWN_MACHINES.to_owned(), "100000".to_owned())].into()),
        description: String::new(),
        boot: BootConfiguration::default(),
        dns_servers: Vec::new(),
        ntp_servers: Vec::new(),
        mgmt_service_addresses: Vec::new(),
    };
    ok(&mut tables, CreatePartition(lab));
    for number in 0..SWITCHES {
        ok(&mut tables, leaf(number));
    }
    for number in 0..MACHINES {
        let (seen, registration) = machine(number);
        ok(&mut tables, seen);
        ok(&mut tables, registration);
    }
    tables
}

/// What hangs at a switch, found by asking every machine.
fn by_asking_all(tables: &Tables, switch: &Switch) -> BTreeSet<(String, String)> {
    let links = tables.all::<Machine>().flat_map(|machine| {
        let here = machine.links.iter().filter(|link| link.switch == switch.id);
        here.map(|link| (link.port.clone(), machine.id.to_string()))
    });
    links.collect()
}

fn ports(connections: Vec<MachineConnection>) -> BTreeSet<(String, String)> {
    let port = |it: MachineConnection| (it.nic.unwrap().name, it.machine_id);
    connections.into_iter().map(port).collect()
}

/// Runs with `--nocapture` to see how long the two ways take.
#[test]
fn what_hangs_at_a_switch_is_found_without_asking_every_machine() {
    let tables = partition();
    let began = Instant::now();
    let expected: BTreeMap<_, _> = tables
        .all::<Switch>()
        .map(|it| (it.id.to_string(), by_asking_all(&tables, it)))
        .collect();
    let asking = began.elapsed();
    let began = Instant::now();
    let shown: Vec<_> = tables
        .all::<Switch>()
        .map(|it| switch(&tables, it))
        .collect();
    let took = began.elapsed();
    println!(
        "{SWITCHES} switches, {MACHINES} machines: whole switches {took:?}, asking every machine \
         for its links alone {asking:?}"
    );
    let shown: BTreeMap<_, _> = shown
        .into_iter()
        .map(|it| (it.id, ports(it.machine_connections)))
        .collect();
    assert_eq!(shown, expected);
    assert!(expected.values().all(|it| it.len() as u128 == PORTS));

    let one = Uuid::from_u128(5).to_string();
    let query = |machine: &str| SwitchQuery {
        connected_machine_id: Some(machine.to_owned()),
        ..SwitchQuery::default()
    };
    let of = |machine: &str| -> Vec<String> {
        let query = query(machine);
        let fitting = tables.all::<Switch>();
        let fitting = fitting.filter(|it| matches(&tables, it, Some(&query)));
        fitting.map(|it| it.id.to_string()).collect()
    };
    assert_eq!(of(&one), ["leaf0", "leaf1"]);
    assert_eq!(of("no machine"), Vec::<String>::new());
}
