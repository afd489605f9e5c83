//! A firewall whose root announces what it may not, with FRR as its tool, at its leaf.

use std::collections::BTreeSet;
use std::time::Instant;

use agents_nos::frr::{InterfaceName, Routing};
use agents_nos::model::{PolicyName, RouteMap, RouteMatch, RouteRule};
use agents_nos::{SwitchModel, Vni};

use super::daemons::{DEADLINE, Switch, is_available};
use super::hosts::cable;
use super::live::reconcile;
use super::readings::firewall;

/// Prefixes that the attacker has in its network, of both versions.
const OWN: [&str; 4] = [
    "10.77.1.0/24",
    "10.78.1.5/32",
    "2001:db8:77:1::/64",
    "2001:db8:78::5/128",
];
/// The default routes.
const DEFAULT: [&str; 2] = ["0.0.0.0/0", "::/0"];

fn vni(number: u32) -> Vni {
    Vni::new(number).unwrap()
}

/// A leaf whose firewall on `swp1` has VNI 10 and the tunnel end 10.9.9.1, as the agent has it.
fn leaf() -> SwitchModel {
    let mut model = firewall("10.9.9.1/32");
    let import = PolicyName::new("MM-swp1-in").unwrap();
    let maps = &mut model.policies.route_maps;
    let own = maps[&import].rules()[&10].clone();
    let rule = |permits, matches: &[RouteMatch]| RouteRule {
        permits,
        matches: matches.iter().cloned().collect(),
        is_last_resort: permits,
        clears_communities: false,
    };
    let permitted = rule(
        true,
        &[
            RouteMatch::EvpnOnly(vni(10)),
            RouteMatch::EvpnPrefix,
            RouteMatch::TunnelEnd([10, 9, 9, 1].into()),
            RouteMatch::AsPath(import.clone()),
        ],
    );
    maps.insert(import, RouteMap::new([own, permitted]).unwrap());
    let bgp = model.bgp.as_mut().unwrap();
    bgp.underlay.values_mut().for_each(|of| of.has_evpn = true);
    model
}

/// Makes the tunnel of a VNI, with an end that need not be the attacker's.
fn tunnel(attacker: &Switch, number: u32, end: &str) {
    for command in [
        format!("link add br{number} type bridge"),
        format!("link set br{number} address 02:00:00:00:ff:{number}"),
        format!("link set br{number} up"),
        format!("link add vx{number} type vxlan id {number} local {end} dstport 4789 nolearning"),
        format!("link set vx{number} master br{number} up"),
    ] {
        attacker.ip(&command);
    }
}

/// Removes a tunnel, and has the attacker's VRF without a VNI.
fn remove_tunnel(attacker: &Switch, number: u32) {
    configure(attacker, &[&format!("no vni {number}")]);
    attacker.ip(&format!("link del vx{number}"));
    attacker.ip(&format!("link del br{number}"));
}

fn configure(switch: &Switch, lines: &[&str]) {
    switch.vtysh(&format!("configure terminal\n{}", lines.join("\n")));
}

/// Announces the prefixes in the default VRF. The VRF of EVPN is the default one as well, which every
/// kernel has.
fn announce(attacker: &Switch) {
    attacker.ip("addr add 10.9.9.1/32 dev lo");
    configure(
        attacker,
        &[
            "bgp route-map delay-timer 1",
            "route-map OUT permit 10",
            "exit",
            "router bgp 4210000001",
            "no bgp ebgp-requires-policy",
            "no bgp network import-check",
            "bgp router-id 10.9.9.1",
            "neighbor eth0 interface remote-as external",
            "neighbor eth0 timers connect 1",
            "address-family ipv4 unicast",
            "network 10.9.9.1/32",
            "network 0.0.0.0/0",
            "network 10.77.1.0/24",
            "network 10.78.1.5/32",
            "exit-address-family",
            "address-family ipv6 unicast",
            "network ::/0",
            "network 2001:db8:77:1::/64",
            "network 2001:db8:78::5/128",
            "exit-address-family",
            "address-family l2vpn evpn",
            "neighbor eth0 activate",
            "neighbor eth0 route-map OUT out",
            "advertise-all-vni",
            "advertise ipv4 unicast",
            "advertise ipv6 unicast",
        ],
    );
}

/// Waits until the leaf has exactly these prefixes of the attacker, apart from its tunnel end.
async fn wait_for(leaf: &Switch, expected: &[&str], why: &str) {
    let until = Instant::now() + DEADLINE;
    let port = InterfaceName::new("swp1").unwrap();
    let expected: BTreeSet<&str> = expected.iter().copied().collect();
    loop {
        let announced = leaf.frr.announced(&port).await.unwrap();
        let prefixes = announced.iter().map(|route| {
            assert_eq!(route.vnis, [vni(10)].into(), "{why}: {route:?}");
            route.prefix.to_string()
        });
        let prefixes: BTreeSet<String> = prefixes.filter(|of| of != "10.9.9.1/32").collect();
        if prefixes.iter().map(String::as_str).collect::<BTreeSet<_>>() == expected {
            return;
        }
        assert!(Instant::now() < until, "{why}: {prefixes:?}");
    }
}

/// Waits until the attacker has sent a route.
fn wait_until_sent(attacker: &Switch, route: &str) {
    let command = "show bgp l2vpn evpn neighbors eth0 advertised-routes";
    wait_until_shown(attacker, command, route);
}

fn wait_until_shown(switch: &Switch, command: &str, text: &str) {
    let until = Instant::now() + DEADLINE;
    loop {
        let shown = switch.vtysh(command);
        if shown.contains(text) {
            return;
        }
        assert!(Instant::now() < until, "{text}: {shown}");
    }
}

#[tokio::test]
async fn a_firewall_announces_prefixes_over_its_own_tunnel_and_nothing_else() {
    if !is_available() {
        return;
    }
    let switch = Switch::start("aleaf", &[]).await;
    let attacker = Switch::start("afw", &[]).await;
    cable(&switch, "swp1", &attacker.name, "eth0");
    switch.ip("link set swp1 up");
    reconcile(&switch, &Routing::of(&leaf()).to_frr().unwrap()).await;
    tunnel(&attacker, 10, "10.9.9.1");
    announce(&attacker);
    // A VNI of a segment: a multicast route (type 3) with the right target.
    wait_until_sent(&attacker, "[3]:[0]:[32]:[10.9.9.1]");
    configure(&attacker, &["vni 10"]);
    let all = [&OWN[..], &DEFAULT[..]].concat();
    wait_for(&switch, &all, "its own").await;
    let shown = switch.vtysh("show bgp l2vpn evpn");
    let longer = ["4210000001"; 11].join(" ");
    assert!(shown.contains(&longer), "the last resort: {shown}");
    assert!(!shown.contains("[3]:[0]:[32]:[10.9.9.1]"), "{shown}");

    for (set, clear) in [
        ("set as-path prepend 4210000002", "no set as-path prepend"),
        ("set extcommunity rt 64512:11", "no set extcommunity rt"),
        ("set extcommunity soo 64512:10", "no set extcommunity soo"),
    ] {
        configure(&attacker, &["route-map OUT permit 10", set]);
        wait_for(&switch, &[], set).await;
        configure(&attacker, &["route-map OUT permit 10", clear]);
        wait_for(&switch, &all, clear).await;
    }

    // The tunnel end of another: its traffic would be taken, or that of its router's MAC address.
    remove_tunnel(&attacker, 10);
    wait_for(&switch, &[], "no VNI").await;
    attacker.ip("addr add 10.9.9.2/32 dev lo");
    tunnel(&attacker, 10, "10.9.9.2");
    configure(&attacker, &["vni 10"]);
    wait_until_shown(&attacker, "show bgp l2vpn evpn", " 10.9.9.2 ");
    wait_until_sent(&attacker, "[5]:[0]:[24]:[10.77.1.0]");
    wait_for(&switch, &[], "a tunnel to another").await;

    // The label of another VNI behind a target of its own.
    remove_tunnel(&attacker, 10);
    tunnel(&attacker, 11, "10.9.9.1");
    let own = [
        "vni 11",
        "route-map OUT permit 10",
        "set extcommunity rt 64512:10",
    ];
    configure(&attacker, &own);
    wait_until_sent(&attacker, "[5]:[0]:[24]:[10.77.1.0]");
    wait_for(&switch, &[], "the label of another VNI").await;
    remove_tunnel(&attacker, 11);
    tunnel(&attacker, 10, "10.9.9.1");
    configure(&attacker, &["vni 10"]);
    wait_for(&switch, &all, "its own again").await;
}
