use agents_nos::Membership;
use agents_nos::model::Mtu;

use crate::fixture::{Build, Case, check, port, routed, segment_place, tenant, vni};

const QUARANTINE: Membership = Membership::Quarantine;

fn ports(of: &[(&str, Membership, bool)]) -> Build {
    let add = |build: Build, (name, place, up): &(&str, Membership, bool)| {
        build.port(name, place.clone(), *up)
    };
    of.iter().fold(Build::default(), add)
}

#[test]
fn ports_move() {
    let (a, b) = (segment_place(10), segment_place(11));
    let both = |build: Build| build.segment(10, &[]).segment(11, &[]);
    check(vec![
        Case {
            name: "a fresh switch: bare ports are in the default VRF and leave it first",
            from: ports(&[("p1", Membership::Underlay, true)]),
            to: ports(&[("p1", a.clone(), true)]).segment(10, &[2]),
            steps: &["p1 leaves", "make 10", "10 to 10.0.0.2", "p1 enters 10"],
        },
        Case {
            name: "from provisioning to a tenant; the emptied segment goes last",
            from: ports(&[("p1", b.clone(), true)]).segment(11, &[]),
            to: ports(&[("p1", a.clone(), true)]).segment(10, &[]),
            steps: &["p1 leaves", "make 10", "p1 enters 10", "remove 11"],
        },
        Case {
            name: "two tenants exchange their ports: both leave before one enters",
            from: both(ports(&[("p1", a.clone(), true), ("p2", b.clone(), true)])),
            to: both(ports(&[("p1", b.clone(), true), ("p2", a.clone(), true)])),
            steps: &["p1 leaves", "p2 leaves", "p1 enters 11", "p2 enters 10"],
        },
        Case {
            name: "one goes down before it leaves, another comes up after it entered",
            from: both(ports(&[("p1", a.clone(), true), ("p2", QUARANTINE, false)])),
            to: both(ports(&[("p1", QUARANTINE, false), ("p2", a.clone(), true)])),
            steps: &["p1 down", "p1 leaves", "p2 enters 10", "p2 up"],
        },
        Case {
            name: "a port that nobody names is quarantined and otherwise left alone",
            from: both(ports(&[("p1", a.clone(), true), ("p9", a.clone(), true)])),
            to: both(ports(&[("p1", a.clone(), true)])),
            steps: &["p9 leaves"],
        },
        Case {
            name: "a foreign bridge loses our port",
            from: both(ports(&[("p1", Membership::Foreign("br0".into()), true)])),
            to: both(ports(&[("p1", a.clone(), true)])),
            steps: &["p1 leaves", "p1 enters 10"],
        },
        Case {
            name: "nothing to do",
            from: both(ports(&[("p1", a.clone(), true)])),
            to: both(ports(&[("p1", a, true)])),
            steps: &[],
        },
    ]);
}

#[test]
fn ports_change_in_place() {
    let private = Membership::Segment {
        vni: vni(10),
        is_private: true,
    };
    let one = |place: Membership| ports(&[("p1", place, true)]).segment(10, &[]);
    let jumbo = |build: Build| {
        build.change(|model| model.ports.get_mut(&port("p1")).unwrap().mtu = Mtu::new(9000).ok())
    };
    check(vec![
        Case {
            name: "a port becomes private without leaving",
            from: one(segment_place(10)),
            to: one(private),
            steps: &["p1 enters 10 privately"],
        },
        Case {
            name: "an MTU",
            from: one(segment_place(10)),
            to: jumbo(one(segment_place(10))),
            steps: &["p1 mtu 9000"],
        },
        Case {
            name: "a desired port without MTU keeps its own",
            from: jumbo(one(segment_place(10))),
            to: one(segment_place(10)),
            steps: &[],
        },
    ]);
}

#[test]
fn routed_ports_move() {
    let other = || {
        tenant()
            .vrf("Vrf28", 28, 1028)
            .bgp_vrf("Vrf28", &[])
            .port("p2", QUARANTINE, true)
    };
    check(vec![
        Case {
            name: "a release: the neighbour leaves before its port, the instance before its VRF",
            from: tenant(),
            to: ports(&[("p1", QUARANTINE, true)]).bgp(4_200_000_011),
            steps: &[
                "no neighbour p1 in Vrf27",
                "p1 leaves",
                "no bgp of Vrf27",
                "no map MM-in",
                "no map MM-out",
                "no list MM-list",
                "no paths MM-paths",
                "remove Vrf27",
            ],
        },
        Case {
            name: "one port moves to another VRF; nothing else is touched",
            from: other(),
            to: other()
                .port("p1", routed("Vrf28"), true)
                .bgp_vrf("Vrf27", &[])
                .bgp_vrf("Vrf28", &["p1"]),
            steps: &[
                "no neighbour p1 in Vrf27",
                "p1 leaves",
                "p1 enters Vrf28",
                "neighbour p1 in Vrf28",
            ],
        },
        Case {
            name: "a second port joins",
            from: other(),
            to: other()
                .port("p2", routed("Vrf27"), true)
                .bgp_vrf("Vrf27", &["p1", "p2"]),
            steps: &["p2 enters Vrf27", "neighbour p2 in Vrf27"],
        },
        Case {
            name: "a neighbour whose port somebody moved is set up again",
            from: other().port("p1", Membership::Underlay, true),
            to: other(),
            steps: &[
                "no neighbour p1 in Vrf27",
                "p1 leaves",
                "p1 enters Vrf27",
                "neighbour p1 in Vrf27",
            ],
        },
    ]);
}
