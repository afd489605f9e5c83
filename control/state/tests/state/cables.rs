//! A cable is what both of its ends say, and a port of a tenant is nobody else's.

use crate::world::*;
use control_state::*;
use proto_types::{MacAddr, MachineId};

pub(crate) const PROVISIONING: u32 = 4000;

pub(crate) const ISOLATED: u32 = 0;

pub(crate) const LIAR: u128 = 9;

/// A card beside the first one of a machine.
pub(crate) fn card(number: u128, at: u8) -> MacAddr {
    let MacAddr(mut bytes) = mac(number);
    bytes[1] = at;
    MacAddr(bytes)
}

/// A registration with one card for each port that it claims.
pub(crate) fn claiming(number: u128, ports: &[(&str, &str)]) -> RegisterMachine {
    let mut registration = registration(number, "boot-1");
    let first = registration.hardware.nics[0].clone();
    registration.hardware.nics.clear();
    for (at, (switch, port)) in ports.iter().enumerate() {
        let mut nic = first.clone();
        if at > 0 {
            nic.mac = card(number, u8::try_from(at).unwrap());
        }
        nic.neighbours[0].system_name = (*switch).to_owned();
        nic.neighbours[0].port_id = (*port).to_owned();
        registration.hardware.nics.push(nic);
    }
    registration
}

/// Registered, wiped, and waiting.
pub(crate) fn offers(world: &mut World, registration: RegisterMachine) {
    let number = registration.id.uuid().as_u128();
    world.seen(number);
    world.ok(registration);
    world.wipe(number);
    world.event(number, EventKind::Waiting);
}

pub(crate) fn links(world: &World, number: u128) -> Vec<String> {
    let links = world.machine(number).links.iter();
    links
        .map(|link| format!("{} {}", link.switch, link.port))
        .collect()
}

pub(crate) fn vni(world: &World, switch: &str, port: &str) -> u32 {
    let switch = world.tables.get::<Switch>(&text(switch)).unwrap();
    life::port_vni(&world.tables, switch, port).get()
}

pub(crate) fn obstacle(world: &World, number: u128) -> String {
    query::machine_obstacle(&world.tables, id::<MachineId>(number)).unwrap_or_default()
}

pub(crate) fn blind(world: &mut World) {
    world.ok(RegisterSwitch {
        hears: false,
        ..leaf("leaf1", "rack-1")
    });
}

#[test]
fn an_invented_machine_takes_no_port() {
    let mut world = World::new();
    world.running(1, 1);
    let tenants = world.port(1);
    world.waiting(2);
    let ports: Vec<_> = (1..=8).map(|port| format!("swp{port}")).collect();
    let all: Vec<_> = ports.iter().map(|port| ("leaf1", port.as_str())).collect();
    world.hear("leaf1", "swp7", &[card(LIAR, 6)]);
    offers(&mut world, claiming(LIAR, &all));
    assert_eq!(world.port(1), tenants, "the tenant is cut off");
    assert_eq!(
        (links(&world, 1), links(&world, 2)),
        (vec!["leaf1 swp1".into()], vec!["leaf1 swp2".into()])
    );
    assert_eq!(links(&world, LIAR), ["leaf1 swp7"]);
    let why = obstacle(&world, LIAR);
    assert!(
        why.contains(&format!(
            "which is the port of machine {}",
            id::<MachineId>(1)
        )),
        "{why}"
    );
    assert!(
        why.contains(&format!("where leaf1 hears {}", mac(2))),
        "{why}"
    );
    assert_eq!(obstacle(&world, 2), "");
    // Nor when the tenant goes.
    world.free(1);
    world.ok(claiming(LIAR, &all));
    world.bmc(BmcAction::PowerOff, None);
    world.ok(claiming(LIAR, &all));
    assert_eq!(links(&world, 1), ["leaf1 swp1"]);
}

#[test]
fn a_machine_with_the_address_of_another_takes_nothing() {
    let mut world = World::new();
    world.waiting(1);
    let mut liar = registration(LIAR, "boot-1");
    liar.hardware.nics = registration(1, "boot-1").hardware.nics;
    world.event(1, EventKind::Waiting);
    offers(&mut world, liar.clone());
    assert_eq!(links(&world, 1), ["leaf1 swp1"]);
    assert_eq!(links(&world, LIAR), [""; 0]);
    assert_ne!(obstacle(&world, LIAR), "");
    assert_ne!(obstacle(&world, 1), "", "nobody knows which it is");
    // The machine says in its frames which it is.
    let neighbour = Neighbour {
        mac: Some(mac(1)),
        system_name: id::<MachineId>(1).to_string(),
        ..Neighbour::default()
    };
    let report = world.hearing("leaf1", "swp1", vec![neighbour]).unwrap();
    world.ok(report);
    assert_eq!(obstacle(&world, 1), "");
    world.ok(liar);
    assert_eq!(links(&world, LIAR), [""; 0]);
    let why = obstacle(&world, LIAR);
    assert!(
        why.contains(&format!("hears {} of machine", mac(1))),
        "{why}"
    );
    assert_eq!(obstacle(&world, 1), "");
}

#[test]
fn a_card_has_one_cable() {
    let mut world = World::new();
    let mut registration = registration(1, "boot-1");
    for port in 2..=8 {
        let mut heard = registration.hardware.nics[0].neighbours[0].clone();
        heard.port_id = format!("swp{port}");
        registration.hardware.nics[0].neighbours.push(heard);
        world.hear("leaf1", &format!("swp{port}"), &[mac(1)]);
    }
    blind(&mut world);
    world.seen(1);
    world.ok(registration);
    assert_eq!(links(&world, 1), ["leaf1 swp1"]);
}

#[test]
fn a_cable_is_learnt_whichever_end_speaks_last() {
    let mut world = World::new();
    offers(&mut world, registration(1, "boot-1"));
    assert_eq!(links(&world, 1), [""; 0]);
    let why = obstacle(&world, 1);
    assert!(why.contains("0 of its 1 cables are confirmed"), "{why}");
    assert!(why.contains("leaf1 hears nobody"), "{why}");
    world.hear("leaf1", "swp1", &[mac(1)]);
    assert_eq!(links(&world, 1), ["leaf1 swp1"]);
    assert_eq!(obstacle(&world, 1), "");
    // Silence is no news: the machine restarts.
    world.hear("leaf1", "swp1", &[]);
    world.ok(registration(1, "boot-2"));
    assert_eq!(links(&world, 1), ["leaf1 swp1"]);
    // The switch hears somebody else.
    world.hear("leaf1", "swp1", &[mac(2)]);
    let why = obstacle(&world, 1);
    assert!(
        why.contains(&format!("where leaf1 hears {}", mac(2))),
        "{why}"
    );
    // It was plugged into another port.
    world.hear("leaf1", "swp3", &[mac(1)]);
    world.ok(claiming(1, &[("leaf1", "swp3")]));
    assert_eq!(links(&world, 1), ["leaf1 swp3"]);
    world.ok(claiming(2, &[("leaf1", "swp1")]).seen());
    assert_eq!(links(&world, 2), ["leaf1 swp1"]);
}

trait Seen {
    fn seen(self) -> Self;
}

impl Seen for RegisterMachine {
    fn seen(mut self) -> Self {
        self.seen_in = Some(text(PARTITION));
        self
    }
}

#[test]
fn a_cable_that_the_machine_did_not_hear_is_in_no_tenants_segment() {
    let mut world = World::new();
    world.ok(leaf("leaf2", "rack-1"));
    let mut deaf = claiming(1, &[("leaf1", "swp1"), ("leaf2", "swp1")]);
    deaf.hardware.nics[1].neighbours.clear();
    world.hear("leaf1", "swp1", &[mac(1)]);
    offers(&mut world, deaf.clone());
    assert_eq!(obstacle(&world, 1), "", "nobody knows of the second");
    let mut before = world.clone();
    // The leaf hears it while the machine waits,
    world.hear("leaf2", "swp1", &[card(1, 1)]);
    let why = obstacle(&world, 1);
    assert!(why.contains("1 of its 2 cables are confirmed"), "{why}");
    assert!(
        why.contains("at swp1, where the machine heard nobody"),
        "{why}"
    );
    world.ok(claiming(1, &[("leaf1", "swp1"), ("leaf2", "swp1")]));
    assert_eq!(obstacle(&world, 1), "");
    world.allocate(1);
    world.install(1, 1);
    assert_eq!(vni(&world, "leaf2", "swp1"), world.port(1));
    // or not before a tenant has it.
    before.allocate(1);
    before.install(1, 1);
    before.phone_home(1);
    assert_eq!(vni(&before, "leaf2", "swp1"), PROVISIONING);
    before.hear("leaf2", "swp1", &[card(1, 1)]);
    assert_eq!(vni(&before, "leaf2", "swp1"), ISOLATED);
    before.hear("leaf2", "swp1", &[]);
    assert_eq!(
        vni(&before, "leaf2", "swp1"),
        ISOLATED,
        "the tenant is silent"
    );
}

#[test]
fn a_partition_says_how_many_cables_machines_need() {
    let mut world = World::new();
    world.waiting(1);
    let uplinks = |text: &str| {
        relabel(LabelsUpdate::Patch {
            update: [(label::UPLINKS.to_owned(), text.to_owned())].into(),
            remove: vec![],
        })
    };
    for wrong in ["0", "65", "two", "-1"] {
        assert_eq!(world.refused(uplinks(wrong)), ErrorCode::InvalidField);
    }
    world.ok(uplinks("2"));
    assert_eq!(obstacle(&world, 1), "1 of its 2 cables are confirmed");
    assert_eq!(
        world.refused(allocation_of(1)),
        ErrorCode::NoMachineAvailable
    );
    world.ok(uplinks("1"));
    world.allocate(1);
}

#[test]
fn behind_a_switch_that_hears_nobody_two_claims_hold_both() {
    let mut world = World::new();
    blind(&mut world);
    world.waiting(1);
    world.waiting(2);
    assert_eq!(
        (obstacle(&world, 1), obstacle(&world, 2)),
        Default::default()
    );
    // One that nobody else has may be taken without proof, a tenant's never.
    world.ok(AllocateMachine {
        machine: Some(id(2)),
        partition: None,
        size: None,
        ..allocation_of(1)
    });
    offers(
        &mut world,
        claiming(LIAR, &[("leaf1", "swp2"), ("leaf1", "swp3")]),
    );
    assert_eq!(links(&world, 2), ["leaf1 swp2"]);
    assert_eq!(links(&world, LIAR), ["leaf1 swp3"]);
    assert!(obstacle(&world, LIAR).contains("is the port of machine"));
    // Two machines claim one port.
    world.later(1_000);
    offers(&mut world, claiming(LIAR, &[("leaf1", "swp1")]));
    assert_eq!(
        (links(&world, 1), links(&world, LIAR)),
        (vec!["leaf1 swp1".into()], vec![])
    );
    for (held, other) in [(1, LIAR), (LIAR, 1)] {
        let why = obstacle(&world, held);
        let other = format!("and so does machine {}", id::<MachineId>(other));
        assert!(why.contains(&other), "{why}");
    }
    // A person decides: the word of a locked machine does not count.
    let state = |machine, state| SetMachineState {
        id: id(machine),
        state,
        description: match state {
            Availability::Available => String::new(),
            _ => "it is not there".into(),
        },
    };
    let mut other = world.clone();
    world.ok(state(LIAR, Availability::Locked));
    assert_eq!(obstacle(&world, 1), "");
    other.ok(state(1, Availability::Locked));
    assert_eq!(links(&other, LIAR), ["leaf1 swp1"]);
    assert_eq!(obstacle(&other, LIAR), "");
    // Or it is deleted, once it gives no sign of life.
    world.ok(state(LIAR, Availability::Available));
    assert_ne!(obstacle(&world, 1), "");
    let delete = DeleteMachine { id: id(LIAR) };
    assert_eq!(world.refused(delete.clone()), ErrorCode::MachineAlive);
    world.tick(DEAD_AFTER_MS);
    world.event(1, EventKind::Alive);
    world.ok(delete);
    assert_eq!(obstacle(&world, 1), "");
}
