//! Which steps wait for which: a table by objects.

use agents_nos::model::{Mtu, Port, RouteMap, Table, Vrf};
use agents_nos::{Capability, Dependencies, HeldStep, Membership, Schedule, Step, plan, schedule};
use proto_types::Asn;

use crate::fixture::{
    Build, export_map, gateway, import_map, list_id, neighbour, paths, policy, port, routed, rule,
    segment_place, short, tenant, vni, vrf, withholding_map,
};

/// Both states of the table: `p1` and `p2` are in segment 10 and `Vrf27` first.
fn before() -> Build {
    tenant()
        .port("p2", segment_place(10), true)
        .segment(10, &[1])
        .gateway(10, "Vrf27", "10.0.0.1/8")
        .vlan(10, 100)
}

fn quarantine(name: &str) -> Step {
    Step::Quarantine { port: port(name) }
}

fn enter(name: &str, place: Membership) -> Step {
    let port = port(name);
    Step::Enter { port, place }
}

fn ensure(number: u32, vlan: Option<u16>) -> Step {
    Step::EnsureSegment {
        vni: vni(number),
        vlan: vlan.map(|vlan| agents_nos::model::Vlan::new(vlan).unwrap()),
        mtu: Mtu::ETHERNET,
        tunnel: agents_nos::model::Tunnel::Open,
    }
}

fn ensure_vrf(name: &str, l3_vni: u32, table: u32) -> Step {
    Step::EnsureVrf {
        name: vrf(name),
        vrf: Vrf::new(vni(l3_vni), Table::new(table).unwrap()),
    }
}

fn set_neighbour(name: &str) -> Step {
    Step::SetNeighbour {
        vrf: Some(vrf("Vrf27")),
        port: port(name),
        neighbour: neighbour(),
    }
}

fn remove_neighbour(name: &str) -> Step {
    Step::RemoveNeighbour {
        vrf: Some(vrf("Vrf27")),
        port: port(name),
    }
}

fn up(name: &str) -> Step {
    let port = port(name);
    Step::SetAdmin { port, up: true }
}

fn remote(number: u32, last: u8, adds: bool) -> Step {
    let (vni, remote) = (vni(number), [10, 0, 0, last].into());
    if adds {
        Step::AddRemote { vni, remote }
    } else {
        Step::RemoveRemote { vni, remote }
    }
}

fn map(name: &str, map: RouteMap) -> Step {
    let name = policy(name);
    Step::SetRouteMap { name, map }
}

/// Each pair: the earlier step, the later one, and whether the later one waits.
fn places() -> Vec<(Step, Step, bool)> {
    let no_gateway = || Step::SetGateway {
        vni: vni(10),
        gateway: None,
    };
    vec![
        (ensure(10, None), enter("p9", segment_place(10)), true),
        (ensure(11, None), enter("p9", segment_place(10)), false),
        (
            ensure_vrf("Vrf27", 27, 1027),
            enter("p9", routed("Vrf27")),
            true,
        ),
        (
            ensure_vrf("Vrf28", 28, 1028),
            enter("p9", routed("Vrf27")),
            false,
        ),
        (Step::PutL3mdevFirst, enter("p9", routed("Vrf27")), true),
        (Step::PutL3mdevFirst, enter("p9", segment_place(10)), false),
        // Nobody comes where somebody could not leave; everybody else moves.
        (quarantine("p2"), enter("p9", segment_place(10)), true),
        (quarantine("p2"), enter("p9", segment_place(11)), false),
        (quarantine("p2"), enter("p2", segment_place(11)), true),
        (quarantine("p1"), enter("p9", routed("Vrf27")), true),
        (quarantine("p1"), enter("p9", segment_place(10)), false),
        (quarantine("p2"), remote(10, 3, true), true),
        (no_gateway(), enter("p9", segment_place(10)), true),
        (no_gateway(), enter("p9", routed("Vrf27")), true),
        (remote(10, 1, false), enter("p9", segment_place(10)), true),
        (remote(10, 1, true), enter("p9", segment_place(10)), false),
        // Leaving waits for nothing but the session on the port.
        (remove_neighbour("p1"), quarantine("p1"), true),
        (remove_neighbour("p1"), quarantine("p2"), false),
        (quarantine("p1"), quarantine("p2"), false),
        (ensure(11, None), quarantine("p2"), false),
        (enter("p2", segment_place(11)), up("p2"), true),
        (quarantine("p2"), up("p2"), true),
        (set_neighbour("p2"), up("p2"), true),
        (quarantine("p1"), up("p2"), false),
        (
            Step::SetMtu {
                port: port("p2"),
                mtu: Mtu::ETHERNET,
            },
            enter("p2", segment_place(11)),
            false,
        ),
    ]
}

fn objects() -> Vec<(Step, Step, bool)> {
    let remove_segment = |number| Step::RemoveSegment { vni: vni(number) };
    let remove_vrf = |name: &str| Step::RemoveVrf { name: vrf(name) };
    let set_gateway = || Step::SetGateway {
        vni: vni(11),
        gateway: Some(gateway("Vrf27", "10.1.0.1/24")),
    };
    vec![
        (quarantine("p2"), remove_segment(10), true),
        (quarantine("p1"), remove_segment(10), false),
        (quarantine("p1"), remove_vrf("Vrf27"), true),
        (remove_segment(10), remove_vrf("Vrf27"), true),
        (remove_segment(11), remove_vrf("Vrf27"), false),
        (remove_segment(10), ensure(11, Some(100)), true),
        (remove_segment(10), ensure(11, Some(101)), false),
        (remove_segment(10), ensure(10, Some(101)), true),
        (remove_segment(10), ensure_vrf("Vrf10", 10, 1010), true),
        (remove_vrf("Vrf27"), ensure(27, None), true),
        (remove_vrf("Vrf27"), ensure_vrf("Vrf28", 28, 1027), true),
        (remove_vrf("Vrf27"), ensure_vrf("Vrf28", 28, 1028), false),
        (ensure(11, None), set_gateway(), true),
        (ensure_vrf("Vrf27", 27, 1027), set_gateway(), true),
        (ensure_vrf("Vrf28", 28, 1028), set_gateway(), false),
        // Nothing waits for a leftover.
        (remove_segment(12), ensure(11, None), false),
        (remove_vrf("Vrf30"), enter("p2", segment_place(11)), false),
    ]
}

/// Exports that withhold the hosts of a gateway's prefix.
fn exports() -> Vec<(Step, Step, bool)> {
    let gateway = |of: &str| Step::SetGateway {
        vni: vni(11),
        gateway: Some(gateway(of, "10.1.0.1/24")),
    };
    let withhold = |name: &str| map(name, withholding_map("MM-hosts"));
    let announce = || map("MM-out", export_map());
    let remove_segment = |number| Step::RemoveSegment { vni: vni(number) };
    vec![
        // Otherwise a neighbour would have neither the hosts nor the prefix for a moment.
        (gateway("Vrf27"), withhold("MM-out"), true),
        (gateway("Vrf28"), withhold("MM-out"), false),
        (gateway("Vrf27"), announce(), false),
        // A new one's sessions wait for their filter, and know no hosts yet.
        (gateway("Vrf27"), withhold("MM-new"), false),
        (announce(), remove_segment(10), true),
        (announce(), remove_segment(11), false),
        (map("MM-in", export_map()), remove_segment(10), false),
    ]
}

fn bgp() -> Vec<(Step, Step, bool)> {
    let ensure_bgp = || Step::EnsureBgp {
        asn: Asn(4_200_000_011),
        router_id: [10, 0, 0, 11].into(),
        is_draining: false,
    };
    let instance = |name: &str| Step::EnsureBgpVrf { vrf: vrf(name) };
    let list = || list_id("MM-list", false);
    let (cut, add) = (
        || Step::RemovePrefix {
            list: list(),
            rule: rule("10.0.0.0/8"),
        },
        || Step::AddPrefix {
            list: list(),
            rule: rule("10.0.0.0/8"),
        },
    );
    let make = || Step::EnsurePrefixList { list: list() };
    let origins = || Step::SetAsPathList {
        name: policy("MM-paths"),
        list: paths(4_210_000_002),
    };
    let import = || map("MM-in", import_map("MM-list", "MM-paths"));
    let remove_map = || Step::RemoveRouteMap {
        name: policy("MM-in"),
    };
    vec![
        (ensure_bgp(), instance("Vrf27"), true),
        (ensure_bgp(), set_neighbour("p2"), true),
        (instance("Vrf27"), set_neighbour("p2"), true),
        (instance("Vrf28"), set_neighbour("p2"), false),
        (enter("p2", routed("Vrf27")), set_neighbour("p2"), true),
        (enter("p3", routed("Vrf27")), set_neighbour("p2"), false),
        (import(), set_neighbour("p2"), true),
        (map("MM-x", export_map()), set_neighbour("p2"), false),
        // A session waits until its filter passes nothing more than it should, and not for more.
        (cut(), set_neighbour("p2"), true),
        (origins(), set_neighbour("p2"), true),
        (add(), set_neighbour("p2"), false),
        (make(), add(), true),
        (make(), import(), true),
        (origins(), import(), true),
        (remove_neighbour("p1"), remove_map(), true),
        (remove_neighbour("p2"), remove_map(), false),
        (remove_map(), Step::RemovePrefixList { list: list() }, true),
        (
            map("MM-in", export_map()),
            Step::RemovePrefixList { list: list() },
            true,
        ),
        (
            remove_neighbour("p1"),
            Step::RemoveBgpVrf { vrf: vrf("Vrf27") },
            true,
        ),
        (
            Step::RemoveBgpVrf { vrf: vrf("Vrf27") },
            Step::RemoveBgp,
            true,
        ),
        (Step::RemoveBgp, ensure_bgp(), true),
    ]
}

#[test]
fn a_step_waits_for_its_objects_and_for_nothing_else() {
    let (observed, target) = (before().0, tenant().0);
    let dependencies = Dependencies {
        observed: &observed,
        target: &target,
    };
    for (earlier, step, waits) in [places(), objects(), exports(), bgp()].concat() {
        let pair = format!("{} after {}", short(&step), short(&earlier));
        assert_eq!(dependencies.holds(&earlier, &step), waits, "{pair}");
    }
}

/// The steps that are done and those that are held when some of a plan fail.
fn held(from: &Build, to: &Build, failing: &[&str]) -> [Vec<String>; 2] {
    let steps = plan(&from.0, &to.0, Capability::ALL).steps;
    let dependencies = Dependencies {
        observed: &from.0,
        target: &to.0,
    };
    let undone = |step: &Step| failing.contains(&short(step).as_str());
    let Schedule { now, held } = schedule(steps, undone, dependencies);
    let held = held
        .iter()
        .map(|HeldStep { step, waits_for }| format!("{}: {waits_for}", short(step)));
    [now.iter().map(short).collect(), held.collect()]
}

#[test]
fn a_failed_leave_holds_the_exchange_and_not_the_others() {
    let ports = |one, two| {
        Build::default()
            .port("p1", segment_place(one), true)
            .port("p2", segment_place(two), true)
            .segment(10, &[])
            .segment(11, &[])
    };
    let from = ports(10, 11).port("p3", Membership::Quarantine, true).port(
        "p4",
        Membership::Quarantine,
        false,
    );
    let to = ports(11, 10)
        .port("p3", segment_place(11), true)
        .port("p4", segment_place(12), true)
        .segment(12, &[]);
    let [now, held] = held(&from, &to, &["p1 leaves"]);
    assert_eq!(now, ["p2 leaves", "make 12"]);
    assert_eq!(held, ["p1 enters 11: port p1", "p2 enters 10: port p1"]);
}

#[test]
fn a_failed_segment_keeps_its_ports_down_and_no_other() {
    let quarantined = |name: &str, of: Build| of.port(name, Membership::Quarantine, false);
    let from = quarantined("p1", quarantined("p2", Build::default()));
    let to = Build::default()
        .port("p1", segment_place(10), true)
        .port("p2", segment_place(11), true)
        .segment(10, &[1])
        .segment(11, &[]);
    let [now, held] = held(&from, &to, &["make 10"]);
    assert_eq!(now, ["make 11"]);
    let waiting = ["10 to 10.0.0.1", "p1 enters 10", "p1 up"];
    assert_eq!(held, waiting.map(|step| format!("{step}: segment 10")));
}

#[test]
fn a_leftover_delays_nobody() {
    let from = Build::default()
        .port("p1", Membership::Quarantine, true)
        .segment(9, &[])
        .segment(10, &[]);
    let to = Build::default()
        .port("p1", segment_place(10), true)
        .segment(10, &[]);
    let [now, held] = held(&from, &to, &["remove 9"]);
    assert_eq!(now, ["p1 enters 10"]);
    assert_eq!(held, [""; 0]);
    let port: &Port = &to.0.ports[&port("p1")];
    assert!(port.admin_up);
}
