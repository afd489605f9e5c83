//! The way of a packet.

use control_state::*;

use super::{as_desired, dual_homed, running, session, world};
use crate::world::*;

/// Kinds and objects of the hops, and the verdict.
pub(super) fn traced(world: &World, from: u128, to: &str) -> (Vec<String>, String) {
    let trace = trace_packet(&world.tables, id(from), to.parse().unwrap()).unwrap();
    let hops = trace.hops.iter().map(|hop| {
        let mark = if hop.stops { " !" } else { "" };
        format!("{} {}{mark}", hop.kind, hop.at)
    });
    (hops.collect(), trace.verdict)
}

pub(super) fn address(world: &World, number: u128) -> String {
    let allocation = world.machine(number).allocation.as_ref().unwrap();
    allocation.networks[0].ips[0].to_string()
}

#[test]
fn a_packet_is_followed_to_where_it_stops() {
    let mut world = world("evpn");
    running(&mut world, 1);
    running(&mut world, 2);
    for leaf in ["leaf1", "leaf2"] {
        let mut report = as_desired(&world, leaf, "swp1");
        let health = report.health.as_mut().unwrap();
        health
            .sessions
            .push(session("swp2", "ipv4Unicast", "Established"));
        world.ok(report);
    }
    let vrf = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .vrf
        .unwrap();
    let two = address(&world, 2);
    let (hops, verdict) = traced(&world, 1, &two);
    let (one_id, two_id) = (world.machine(1).id, world.machine(2).id);
    let local = [
        format!("machine {one_id}"),
        "port leaf1/swp1".to_owned(),
        "leaf leaf1".to_owned(),
        "port leaf1/swp2".to_owned(),
        format!("machine {two_id}"),
    ];
    assert_eq!(hops, local);
    assert_eq!(verdict, format!("arrives at machine {two_id}"));

    // Without its own port on the first leaf the target is reached through the tunnel.
    let mut report = as_desired(&world, "leaf1", "swp1");
    report.ports.get_mut("swp2").unwrap().oper_up = false;
    world.ok(report);
    let (hops, _) = traced(&world, 1, &two);
    let across = [
        format!("machine {one_id}"),
        "port leaf1/swp1".to_owned(),
        "leaf leaf1".to_owned(),
        format!("tunnel VNI {vrf}"),
        "port leaf2/swp2".to_owned(),
        format!("machine {two_id}"),
    ];
    assert_eq!(hops, across);

    let mut report = as_desired(&world, "leaf2", "swp2");
    report.health.as_mut().unwrap().sessions[1].state = "Active".into();
    world.ok(report);
    let (_, verdict) = traced(&world, 1, &two);
    let wanted = "switch leaf2 has no EVPN session that is established";
    assert!(
        verdict.starts_with("stops at tunnel") && verdict.contains(wanted),
        "{verdict}"
    );

    let (hops, verdict) = traced(&world, 1, "192.0.2.7");
    assert_eq!(hops.last().unwrap(), "leaf leaf1 !");
    assert!(verdict.contains("no machine of VRF"), "{verdict}");
    let (hops, verdict) = traced(&world, 1, &address(&world, 1));
    assert_eq!(
        (hops.len(), verdict.as_str()),
        (1, "the address is the machine's own")
    );

    dual_homed(&mut world, 3);
    let (hops, verdict) = traced(&world, 3, &two);
    assert_eq!(hops.len(), 1);
    assert!(verdict.contains("is not allocated"), "{verdict}");
    let unknown = trace_packet(&world.tables, id(99), "10.0.0.1".parse().unwrap());
    assert_eq!(unknown.unwrap_err().code, ErrorCode::NotFound);
}
