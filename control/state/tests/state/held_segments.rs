//! Segments that reports of switches hold: no other network gets the number.

use control_state::*;
use proto_types::Vni;

use crate::world::*;

const DAY_MS: u64 = 24 * 3_600_000;

fn observe(world: &mut World, leaf: &str, port: &str, vni: u32) {
    let seen = PortObserved {
        admin_up: true,
        oper_up: true,
        vni: Vni::try_from(vni).unwrap(),
        ..PortObserved::default()
    };
    let applied_generation = world.tables.revision();
    world.ok(ReportSwitch {
        id: text(leaf),
        applied_term: 1,
        applied_generation,
        duration_ms: 1,
        error: None,
        ports: [(port.to_owned(), seen)].into(),
        health: None,
    });
}

fn vrf(world: &World) -> u32 {
    let network = world.tables.get::<Network>(&text("private")).unwrap();
    network.vrf.unwrap()
}

fn delete_network() -> DeleteNetwork {
    DeleteNetwork {
        id: text("private"),
        project: Some(id(1)),
    }
}

fn internet(vrf: u32) -> CreateNetwork {
    CreateNetwork {
        kind: NetworkType::External,
        prefixes: vec!["192.0.2.0/24".parse().unwrap()],
        default_child_length: ChildLength::default(),
        vrf: Some(vrf),
        ..network("internet")
    }
}

#[test]
fn a_switch_holds_no_segment_that_it_never_had() {
    let mut world = upgraded();
    let vrf = vrf(&world);
    for (port, vni) in (1..=8).zip([vrf, vrf + 1, vrf + 2, 77, 78, 79, 80, 81]) {
        observe(&mut world, "leaf1", &format!("swp{port}"), vni);
    }
    world.ok(delete_network());
    let next = world.ok(child("another", 2)).network().unwrap();
    assert_eq!(next.vrf, Some(vrf + 1));
    world.ok(internet(77));
    let boots = [(label::PROVISIONING_VNI.to_owned(), "78".to_owned())];
    world.ok(relabel(LabelsUpdate::Replace(boots.into())));
}

/// The machine's cables were moved to another leaf, and it was released there: its port at the old
/// leaf is still in its segment.
fn left_behind() -> World {
    let mut world = upgraded();
    world.running(1, 1);
    world.switch_obeys();
    world.ok(leaf("leaf2", "rack-1"));
    world.ok(MigrateSwitch {
        from: text("leaf1"),
        to: text("leaf2"),
    });
    world.leaf_obeys("leaf2");
    world.free(1);
    world.bmc(BmcAction::PowerOff, None);
    world.leaf_obeys("leaf2");
    assert_eq!(world.machine(1).allocation, None);
    world
}

#[test]
fn a_switch_that_does_not_move_a_port_holds_its_segment_for_a_day() {
    let mut world = left_behind();
    let vrf = vrf(&world);
    let error = world.apply(delete_network()).result.unwrap_err();
    assert_eq!(error.code, ErrorCode::StillInUse);
    assert!(error.to_string().contains("leaf1/swp1"), "{error}");
    // It says that it has applied the state that wants the port elsewhere, and did not.
    observe(&mut world, "leaf1", "swp1", vrf);
    world.tick(DAY_MS - 1);
    assert_eq!(world.refused(delete_network()), ErrorCode::StillInUse);
    // Repeating it does not prolong it.
    observe(&mut world, "leaf1", "swp1", vrf);
    world.tick(1);
    let before = world.clone();
    world.ok(delete_network());
    world = before;
    // Nor does it count in a report of another port.
    observe(&mut world, "leaf1", "swp8", vrf);
    world.ok(delete_network());
}

#[test]
fn a_silent_switch_holds_its_segments_until_it_is_deleted() {
    let mut world = left_behind();
    for _ in 0..3 {
        world.tick(DAY_MS);
    }
    assert_eq!(world.refused(delete_network()), ErrorCode::StillInUse);
    let before = world.clone();
    let moved = PROVISIONING_VNI_DEFAULT;
    observe(&mut world, "leaf1", "swp1", moved);
    world.ok(delete_network());
    world = before;
    world.ok(DeleteSwitch {
        id: text("leaf1"),
        force: false,
    });
    world.ok(delete_network());
}
