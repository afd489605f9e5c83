//! EVPN routes of a firewall at its leaf: they get into the VRFs of its own VNIs and no others.

use std::time::Instant;

use agents_nos::frr::Routing;
use agents_nos::model::{PolicyName, RouteMap, RouteMatch, RouteRule};
use agents_nos::{SwitchModel, Vni};

use super::daemons::{DEADLINE, Switch, is_available};
use super::hosts::cable;
use super::live::reconcile;
use super::readings::firewall;

const TYPE_3: &str = "show bgp l2vpn evpn route type multicast";
const TYPE_5: &str = "show bgp l2vpn evpn route type prefix";

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
        clears_communities: false,
    };
    maps.insert(import, RouteMap::new([own, evpn]).unwrap());
    let bgp = model.bgp.as_mut().unwrap();
    bgp.underlay.values_mut().for_each(|of| of.has_evpn = true);
    model
}

/// Adds the tunnel of VNI 10 with this end.
fn add_vni(switch: &Switch, end: &str) {
    switch.ip(&format!("addr add {end}/32 dev lo"));
    switch.ip("link add br10 type bridge");
    switch.ip("link set br10 up");
    switch.ip(&format!(
        "link add vx10 type vxlan id 10 local {end} dstport 4789 nolearning"
    ));
    switch.ip("link set vx10 master br10 up");
}

/// Announces the firewall's tunnel end of VNI 10, by a route-map that a test changes.
fn announce(firewall: &Switch) {
    add_vni(firewall, "10.9.9.1");
    firewall.vtysh(
        "configure terminal\nbgp route-map delay-timer 1\nroute-map OUT permit 10\nexit\n\
         router bgp 4210000001\nno bgp ebgp-requires-policy\nbgp router-id 10.9.9.1\n\
         neighbor eth0 interface remote-as external\nneighbor eth0 timers connect 1\n\
         address-family l2vpn evpn\nneighbor eth0 activate\nneighbor eth0 route-map OUT out\n\
         advertise-all-vni",
    );
}

/// Waits until what the leaf shows is as a test wants it.
fn wait_until(leaf: &Switch, command: &str, is_so: impl Fn(&str) -> bool, why: &str) {
    let until = Instant::now() + DEADLINE;
    loop {
        let shown = leaf.vtysh(command);
        if is_so(&shown) {
            return;
        }
        assert!(Instant::now() < until, "{why}: {shown}");
    }
}

fn wait_for_route(leaf: &Switch, is_there: bool, targets: &str) {
    let is_so = |shown: &str| shown.contains("[10.9.9.1]") == is_there;
    wait_until(leaf, TYPE_3, is_so, targets);
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

/// Has the leaf put its routes into EVPN as those of VNI 10, as a VRF does. The VRF is the default
/// one, which every kernel has.
fn have_vni(leaf: &Switch) {
    add_vni(leaf, "10.0.0.11");
    leaf.vtysh(
        "configure terminal\nbgp route-map delay-timer 1\nvni 10\nrouter bgp 4200000011\n\
         address-family l2vpn evpn\nadvertise-all-vni\nadvertise ipv4 unicast",
    );
}

#[tokio::test]
async fn a_machine_has_no_communities_of_its_own_choice() {
    if !is_available() {
        return;
    }
    let (leaf, machine) = (
        Switch::start("mleaf", &[]).await,
        Switch::start("mhost", &[]).await,
    );
    cable(&leaf, "swp1", &machine.name, "eth0");
    leaf.ip("link set swp1 up");
    let model = firewall("198.51.100.0/24");
    reconcile(&leaf, &Routing::of(&model).to_frr().unwrap()).await;
    have_vni(&leaf);
    machine.vtysh(
        "configure terminal\nbgp route-map delay-timer 1\nroute-map OUT permit 10\n\
         set extcommunity rt 64512:11 1.2.3.4:11\nset community no-export graceful-shutdown\n\
         set large-community 4200000011:1:28\nexit\nrouter bgp 4210000001\n\
         no bgp ebgp-requires-policy\nno bgp network import-check\nbgp router-id 198.51.100.1\n\
         neighbor eth0 interface remote-as external\nneighbor eth0 timers connect 1\n\
         address-family ipv4 unicast\nnetwork 198.51.100.1/32\n\
         neighbor eth0 route-map OUT out",
    );
    let prefix = "[5]:[0]:[32]:[198.51.100.1]";
    wait_until(&leaf, TYPE_5, |shown| shown.contains(prefix), "its route");
    let is_bare = |shown: &str| shown.contains(prefix) && !shown.contains(":11 ");
    wait_until(&leaf, TYPE_5, is_bare, "targets");
    let received = leaf.vtysh("show bgp ipv4 unicast 198.51.100.1/32");
    for sent in [
        "64512:11",
        "no-export",
        "graceful-shutdown",
        "4200000011:1:28",
    ] {
        assert!(!received.contains(sent), "{sent}: {received}");
    }
    // Not because none would pass in this test.
    leaf.vtysh(
        "configure terminal\nroute-map MM-swp1-in permit 10\nno set extcommunity none\n\
         no set community none\nno set large-community none",
    );
    let is_marked = |shown: &str| shown.contains("RT:64512:11") && shown.contains("RT:1.2.3.4:11");
    wait_until(&leaf, TYPE_5, is_marked, "without the rule");
    // An operator's removal is drift, and healed.
    reconcile_policies(&leaf, &model).await;
    wait_until(&leaf, TYPE_5, is_bare, "healed");
}

/// Heals the policies alone: the rest of the test's configuration is by hand.
async fn reconcile_policies(leaf: &Switch, model: &SwitchModel) {
    let observed = leaf.ready().await;
    let mut wanted = observed.config.clone();
    wanted.route_maps = Routing::of(model).to_frr().unwrap().route_maps;
    assert_ne!(wanted, observed.config, "the removal is seen");
    leaf.frr.apply(&observed, &wanted).await.unwrap();
}
