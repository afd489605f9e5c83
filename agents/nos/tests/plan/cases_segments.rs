use agents_nos::Membership;
use agents_nos::model::Mtu;

use crate::fixture::{Build, Case, check, segment_place, vrf};

fn one() -> Build {
    Build::default().port("p1", segment_place(10), true)
}

#[test]
fn segments_change() {
    let broken = |build: Build| build.in_segment(10, |segment| segment.is_intact = false);
    check(vec![
        Case {
            name: "tunnel ends are cut before others are added",
            from: one().segment(10, &[1, 2]),
            to: one().segment(10, &[2, 3]),
            steps: &["10 not to 10.0.0.1", "10 to 10.0.0.3"],
        },
        Case {
            name: "a repair says every tunnel end again",
            from: broken(one().segment(10, &[1, 2])),
            to: one().segment(10, &[1, 2]),
            steps: &["make 10", "10 to 10.0.0.1", "10 to 10.0.0.2"],
        },
        Case {
            name: "an MTU changes in place",
            from: one().segment(10, &[1]),
            to: one()
                .segment(10, &[1])
                .in_segment(10, |segment| segment.mtu = Mtu::nearest(9000)),
            steps: &["make 10"],
        },
        Case {
            name: "another VLAN is another segment: its ports leave and enter",
            from: one().segment(10, &[1]).vlan(10, 100),
            to: one().segment(10, &[1]).vlan(10, 101),
            steps: &[
                "p1 leaves",
                "remove 10",
                "make 10",
                "10 to 10.0.0.1",
                "p1 enters 10",
            ],
        },
        Case {
            name: "a segment whose VLAN another one gets goes first",
            from: one().segment(10, &[]).vlan(10, 100),
            to: Build::default()
                .port("p1", segment_place(11), true)
                .segment(11, &[])
                .vlan(11, 100),
            steps: &["p1 leaves", "remove 10", "make 11", "p1 enters 11"],
        },
    ]);
}

#[test]
fn vrfs_and_gateways_change() {
    let routed = |build: Build| {
        build
            .segment(10, &[])
            .vrf("Vrf1", 100, 1001)
            .gateway(10, "Vrf1", "10.1.0.1/24")
    };
    let unguarded = |build: Build| build.change(|model| model.is_l3mdev_first = false);
    let open = |build: Build| {
        build.change(|model| {
            let vrf = model.vrfs.get_mut(&vrf("Vrf1")).unwrap();
            vrf.has_unreachable_default = false;
        })
    };
    check(vec![
        Case {
            name: "the rule for VRFs comes before the first VRF, the VRF before its gateway",
            from: one().segment(10, &[]),
            to: routed(one()),
            steps: &["l3mdev first", "make Vrf1", "10 gateway in Vrf1"],
        },
        Case {
            name: "a VRF that leads into the underlay is repaired in place",
            from: open(unguarded(routed(one()))),
            to: routed(one()),
            steps: &["l3mdev first", "make Vrf1"],
        },
        Case {
            name: "a gateway's address changes in place",
            from: routed(one()),
            to: routed(one()).gateway(10, "Vrf1", "10.2.0.1/24"),
            steps: &["10 gateway in Vrf1"],
        },
        Case {
            name: "a gateway leaves its VRF before it enters another one",
            from: routed(one()).vrf("Vrf2", 200, 1002),
            to: routed(one())
                .vrf("Vrf2", 200, 1002)
                .gateway(10, "Vrf2", "10.1.0.1/24"),
            steps: &["10 without gateway", "10 gateway in Vrf2"],
        },
        Case {
            name: "another table is another VRF",
            from: routed(one()),
            to: routed(one()).vrf("Vrf1", 100, 1009),
            steps: &[
                "10 without gateway",
                "remove Vrf1",
                "make Vrf1",
                "10 gateway in Vrf1",
            ],
        },
        Case {
            name: "a VRF gets the VNI of a segment that goes",
            from: one().segment(10, &[]),
            to: Build::default()
                .port("p1", Membership::Quarantine, true)
                .vrf("Vrf1", 10, 1001),
            steps: &["p1 leaves", "remove 10", "l3mdev first", "make Vrf1"],
        },
        Case {
            name: "two VRFs exchange their tables: both go first",
            from: Build::default().vrf("Vrf1", 1, 1001).vrf("Vrf2", 2, 1002),
            to: Build::default().vrf("Vrf1", 1, 1002).vrf("Vrf2", 2, 1001),
            steps: &["remove Vrf1", "remove Vrf2", "make Vrf1", "make Vrf2"],
        },
        Case {
            name: "the VRF of somebody else stays",
            from: one().segment(10, &[]).vrf("mgmt", 300, 1003),
            to: one().segment(10, &[]),
            steps: &[],
        },
    ]);
}
