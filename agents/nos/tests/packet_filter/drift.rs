//! Changes of the packet filter by hand: seen, and healed.

use agents_nos::{Capability, find_drift, plan};

use super::daemons::Switch;
use super::leaf::{desired, filter, is_available, nft, observe, port, reconcile, sysctl};

#[tokio::test]
async fn what_an_operator_changes_is_unsafe_and_healed() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("pfdrift", &["swp5", "swp6", "swp7", "swp8"]).await;
    let wanted = desired();
    reconcile(&leaf, &wanted);
    for damage in [
        "delete table inet metalmesh",
        "delete table bridge metalmesh",
        "delete table arp metalmesh",
        "flush ruleset",
        "flush chain inet metalmesh firewalls",
        "flush chain inet metalmesh firewall-swp5",
        "flush chain inet metalmesh prerouting",
        "flush chain bridge metalmesh prerouting",
        "flush chain arp metalmesh input",
        "flush chain inet metalmesh forward",
        "flush chain inet metalmesh output",
        "flush chain inet metalmesh beside_vxlan",
        "flush chain bridge metalmesh learning",
        "insert rule bridge metalmesh uplinks accept",
        // A table that sleeps has all its rules, and none is in force.
        "add table inet metalmesh { flags dormant; }",
        "add table bridge metalmesh { flags dormant; }",
        "insert rule inet metalmesh forward accept",
        "insert rule inet metalmesh firewalls accept",
        "insert rule inet metalmesh firewall-swp5 return",
        "add rule inet metalmesh firewall-swp5 counter",
        "insert rule inet metalmesh input accept",
        "add chain inet metalmesh mine { type filter hook prerouting priority -400; }",
    ] {
        nft(&leaf, damage);
        let drift = find_drift(&observe(&leaf), &wanted, &[], Capability::ALL);
        assert!(!drift.is_empty(), "not seen: {damage}");
        assert!(drift.iter().all(|found| found.is_unsafe), "{damage}");
        reconcile(&leaf, &wanted);
        println!("healed: {damage}");
    }
    for setting in ["ipv4.fwmark_reflect=0", "ipv4.conf.all.accept_redirects=1"] {
        sysctl(&leaf.name, &format!("net.{setting}"));
        let drift = find_drift(&observe(&leaf), &wanted, &[], Capability::ALL);
        assert!(drift.iter().any(|found| found.is_unsafe), "{setting}");
        reconcile(&leaf, &wanted);
    }
    // The tables of others stay.
    nft(&leaf, "add table inet mine");
    assert_eq!(plan(&observe(&leaf), &wanted, Capability::ALL).steps, []);
    nft(&leaf, "delete table inet mine");
}

#[tokio::test]
async fn filters_come_change_and_go() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("pfset", &["swp5", "swp6", "swp7", "swp8"]).await;
    for vnis in [&[][..], &[1], &[1, 2, 0x00ff_ffff], &[2]] {
        let mut wanted = desired();
        let firewalls = &mut wanted.packet_filter.firewalls;
        firewalls.insert(port("swp5"), filter(vnis));
        firewalls.insert(port("swp6"), agents_nos::model::VxlanFilter::default());
        reconcile(&leaf, &wanted);
        assert_eq!(observe(&leaf).packet_filter, wanted.packet_filter);
    }
    let mut wanted = desired();
    wanted.packet_filter.firewalls.clear();
    reconcile(&leaf, &wanted);
    assert_eq!(observe(&leaf).packet_filter, wanted.packet_filter);
}
