//! EVPN routes of a firewall at its leaf: they get into the VRFs of its own VNIs and no others.

use std::time::Instant;

use agents_nos::frr::Routing;
use agents_nos::model::{PolicyName, RouteMap, RouteMatch, RouteRule};
use agents_nos::{SwitchModel, Vni};

use super::daemons::{DEADLINE, Switch, is_available};
use super::hosts::cable;
use super::live::reconcile;
use super::readings::firewall;

/// A leaf whose firewall on `swp1` has VNI 10.
fn leaf() -> SwitchModel {
    let mut model = firewall("198.51.100.0/24");
    let import = PolicyName::new("MM-swp1-in").unwrap();
    let maps = &mut model.policies.route_maps;
    let own = maps[&import].rules()[&10].clone();
    let evpn = RouteRule {
        permits: true,
        matches: [RouteMatch::EvpnOnly(Vni::new(10).unwrap())].into(),
        is_last_resort: false,
    };
    maps.insert(import, RouteMap::new([own, evpn]).unwrap());
    let bgp = model.bgp.as_mut().unwrap();
    bgp.underlay.values_mut().for_each(|of| of.has_evpn = true);
    model
}

/// Announces the firewall's tunnel end of VNI 10, by a route-map that a test changes.
fn announce(firewall: &Switch) {
    for command in [
        "addr add 10.9.9.1/32 dev lo",
        "link add br10 type bridge",
        "link set br10 up",
        "link add vx10 type vxlan id 10 local 10.9.9.1 dstport 4789 nolearning",
        "link set vx10 master br10 up",
    ] {
        firewall.ip(command);
    }
    firewall.vtysh(
        "configure terminal\nbgp route-map delay-timer 1\nroute-map OUT permit 10\nexit\n\
         router bgp 4210000001\nno bgp ebgp-requires-policy\nbgp router-id 10.9.9.1\n\
         neighbor eth0 interface remote-as external\nneighbor eth0 timers connect 1\n\
         address-family l2vpn evpn\nneighbor eth0 activate\nneighbor eth0 route-map OUT out\n\
         advertise-all-vni",
    );
}

fn wait_for_route(leaf: &Switch, is_there: bool, targets: &str) {
    let until = Instant::now() + DEADLINE;
    loop {
        let shown = leaf.vtysh("show bgp l2vpn evpn route type multicast");
        if shown.contains("[10.9.9.1]") == is_there {
            return;
        }
        assert!(Instant::now() < until, "{targets}: {shown}");
    }
}

#[tokio::test]
async fn a_route_with_the_target_of_another_vni_does_not_pass() {
    if !is_available() {
        return;
    }
    let (leaf_switch, firewall) = (
        Switch::start("tleaf", &[]).await,
        Switch::start("tfw", &[]).await,
    );
    cable(&leaf_switch, "swp1", &firewall.name, "eth0");
    leaf_switch.ip("link set swp1 up");
    reconcile(&leaf_switch, &Routing::of(&leaf()).to_frr().unwrap()).await;
    announce(&firewall);
    wait_for_route(&leaf_switch, true, "its own target");
    for (targets, passes) in [
        ("rt 64512:11", false),
        ("rt 64512:10", true),
        ("rt 64512:110", false),
        ("none", true),
        ("rt 64512:10 64512:11", false),
        ("rt 64512:10 192.0.2.1:10", true),
        ("soo 64512:10", false),
    ] {
        let clear = "no set extcommunity rt\nno set extcommunity soo";
        let set = match targets {
            "none" => String::new(),
            targets => format!("set extcommunity {targets}"),
        };
        firewall.vtysh(&format!(
            "configure terminal\nroute-map OUT permit 10\n{clear}\n{set}"
        ));
        wait_for_route(&leaf_switch, passes, targets);
    }
}
