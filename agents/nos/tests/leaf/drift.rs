//! Changes by hand: seen, and healed.

use agents_nos::{Membership, plan};

use super::daemons::Switch;
use super::models::{enter, machine, place, tenant, underlay};
use super::switch::{is_available, observe, reconcile};

#[tokio::test]
async fn what_an_operator_breaks_is_repaired() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("drift", &["swp3", "swp4", "swp5", "swp31"]).await;
    leaf.ip("link add mgmt type vrf table 9");
    leaf.ip("addr add 192.0.2.9/32 dev lo");
    let mut desired = underlay(11, &["swp31"]);
    tenant(&mut desired, 27, 271, &["10.1.0.254/24"]);
    enter(&mut desired, "swp3", place(271), 1500);
    enter(&mut desired, "swp4", Membership::Quarantine, 1500);
    machine(&mut desired, "swp5", 27, 4_210_000_001, "10.3.0.0/24");
    reconcile(&leaf, &desired);
    for damage in [
        "link set swp5 nomaster",
        "link set swp5 master mgmt",
        "route del unreachable default table 1027 metric 4278198272",
        "-6 route del unreachable default table 1027 metric 4278198272",
        "rule add pref 0 lookup local",
        "-6 rule add pref 0 lookup local",
        "rule del pref 1000",
        "link set mmr27 nomaster",
        "link set mmr27 down",
        "link set mmr27 address 02:00:00:00:00:01",
        "link del mmx27",
        "link set mmx27 type bridge_slave neigh_suppress off",
        "link set mmx271 type bridge_slave flood on",
        "link set mmb271 type bridge no_linklocal_learn 0",
        "link set mmb271 type bridge vlan_default_pvid 1",
        "link set mmr27 type bridge vlan_default_pvid 1",
        "link set mmb271 nomaster",
        "link set mmb271 address 02:00:00:00:00:01",
        "addr add 10.9.0.1/24 dev mmb271",
        "addr flush dev mmb271",
        "addr del 10.0.0.11/32 dev lo",
        "link set mmx271 type vxlan learning",
    ] {
        leaf.ip(damage);
        let observed = observe(&leaf);
        let seen = plan(&observed, &desired, agents_nos::Capability::ALL);
        assert!(!seen.steps.is_empty(), "not seen: {damage}");
        reconcile(&leaf, &desired);
        println!("healed: {damage}");
    }
    for damage in [
        "vrf Vrf27\nno vni 27",
        "router bgp 4200000011\nno neighbor swp31 timers",
        "router bgp 4200000011 vrf Vrf27\nno neighbor swp5 interface",
        // FRR keeps the instance of a VRF that has an L3 VNI.
        "vrf Vrf27\nno vni 27\nexit-vrf\nno router bgp 4200000011 vrf Vrf27",
        "ip prefix-list MM-prefixes-27 seq 9 permit any",
        "no ip prefix-list MM-prefixes-27",
        "no route-map MM-LOOPBACK",
    ] {
        leaf.vtysh(&format!("configure terminal\n{damage}"));
        let seen = plan(&observe(&leaf), &desired, agents_nos::Capability::ALL);
        assert!(!seen.steps.is_empty(), "not seen: {damage}");
        reconcile(&leaf, &desired);
        println!("healed: {damage}");
    }
    leaf.ip("link show mgmt");
    leaf.ip("addr show to 192.0.2.9 dev lo");
}
