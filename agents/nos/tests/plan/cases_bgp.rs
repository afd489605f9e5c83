use agents_nos::Membership;
use agents_nos::model::{BgpNeighbour, PrefixList};

use crate::fixture::{
    Build, Case, check, export_map, list_id, neighbour, paths, policy, port, routed, rule, tenant,
    vrf,
};

#[test]
fn neighbours_come_and_change() {
    let unfiltered = BgpNeighbour {
        import: None,
        ..neighbour()
    };
    check(vec![
        Case {
            name: "an allocation on a fresh switch: filters before the neighbour, the port up last",
            from: Build::default().port("p1", Membership::Quarantine, false),
            to: tenant(),
            steps: &[
                "l3mdev first",
                "make Vrf27",
                "list MM-list",
                "MM-list permits 10.0.0.0/8",
                "paths MM-paths",
                "map MM-in",
                "map MM-out",
                "bgp 4200000011",
                "bgp of Vrf27",
                "p1 enters Vrf27",
                "neighbour p1 in Vrf27",
                "p1 up",
            ],
        },
        Case {
            name: "a port to a spine comes up before the ports of machines",
            from: tenant().port("p1", routed("Vrf27"), false).port(
                "p9",
                Membership::Underlay,
                false,
            ),
            to: tenant().port("p9", Membership::Underlay, true),
            steps: &["p9 up", "p1 up"],
        },
        Case {
            name: "a neighbour that somebody unfiltered gets its filter back, and its port stays",
            from: tenant().change(|model| {
                let bgp = model.bgp.as_mut().unwrap();
                let of = bgp.vrfs.get_mut(&vrf("Vrf27")).unwrap();
                of.insert(port("p1"), unfiltered);
            }),
            to: tenant(),
            steps: &["neighbour p1 in Vrf27"],
        },
        Case {
            name: "another AS number is another BGP; ports stay",
            from: tenant(),
            to: tenant().bgp(4_200_000_012).bgp_vrf("Vrf27", &["p1"]),
            steps: &[
                "no neighbour p1 in Vrf27",
                "no bgp of Vrf27",
                "no bgp",
                "bgp 4200000012",
                "bgp of Vrf27",
                "neighbour p1 in Vrf27",
            ],
        },
    ]);
}

#[test]
fn filters_change() {
    check(vec![
        Case {
            name: "one more prefix touches neither route map nor neighbour",
            from: tenant(),
            to: tenant().change(|model| {
                let lists = &mut model.policies.prefix_lists;
                let list = lists.get_mut(&list_id("MM-list", false)).unwrap();
                list.rules.insert(rule("192.0.2.0/24"));
            }),
            steps: &["MM-list permits 192.0.2.0/24"],
        },
        Case {
            name: "a prefix is cut before another one is permitted",
            from: tenant(),
            to: tenant().filters("172.16.0.0/12"),
            steps: &[
                "MM-list forgets 10.0.0.0/8",
                "MM-list permits 172.16.0.0/12",
            ],
        },
        Case {
            name: "a list of the other family has a name of its own",
            from: tenant(),
            to: tenant().change(|model| {
                let list = PrefixList {
                    rules: [rule("2001:db8::/32")].into(),
                };
                let lists = &mut model.policies.prefix_lists;
                lists.insert(list_id("MM-list", true), list);
            }),
            steps: &["list MM-list", "MM-list permits 2001:db8::/32"],
        },
        Case {
            name: "another origin",
            from: tenant(),
            to: tenant().change(|model| {
                let lists = &mut model.policies.as_path_lists;
                lists.insert(policy("MM-paths"), paths(4_210_000_002));
            }),
            steps: &["paths MM-paths"],
        },
        Case {
            name: "a neighbour gets its new map before the old one goes",
            from: tenant().change(|model| {
                let maps = &mut model.policies.route_maps;
                maps.insert(policy("MM-old"), export_map());
                let bgp = model.bgp.as_mut().unwrap();
                let of = bgp.vrfs.get_mut(&vrf("Vrf27")).unwrap();
                of.get_mut(&port("p1")).unwrap().export = Some(policy("MM-old"));
            }),
            to: tenant(),
            steps: &["neighbour p1 in Vrf27", "no map MM-old"],
        },
        Case {
            name: "policies of somebody else stay",
            from: tenant().change(|model| {
                let maps = &mut model.policies.route_maps;
                maps.insert(policy("THEIRS"), export_map());
                let lists = &mut model.policies.prefix_lists;
                lists.insert(list_id("PL", false), PrefixList::default());
            }),
            to: tenant(),
            steps: &[],
        },
    ]);
}
