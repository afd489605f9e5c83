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
    for mine in [
        "add table inet mine",
        "add table ip metalmesh { flags dormant; }",
    ] {
        nft(&leaf, mine);
        let seen = observe(&leaf);
        assert_eq!(plan(&seen, &wanted, Capability::ALL).steps, [], "{mine}");
    }
}

/// Elements that packets add to sets: more than an agent could read.
#[tokio::test]
async fn a_filter_is_read_whatever_is_in_its_sets() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("pffull", &["swp5", "swp6", "swp7", "swp8"]).await;
    let wanted = desired();
    reconcile(&leaf, &wanted);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full.nft");
    let mut commands = String::from("add element bridge metalmesh macs {\n");
    for number in 0_u32..250_000 {
        let [_, high, middle, low] = number.to_be_bytes();
        let mac = format!("02:00:00:{high:02x}:{middle:02x}:{low:02x}");
        commands.push_str(&format!("\"swp7\" . {mac},\n"));
    }
    commands.push_str("}\n");
    std::fs::write(&path, commands).unwrap();
    nft(&leaf, &format!("include \"{}\"", path.display()));
    assert_eq!(plan(&observe(&leaf), &wanted, Capability::ALL).steps, []);
    nft(&leaf, "flush chain bridge metalmesh learning");
    assert!(!observe(&leaf).packet_filter.is_in_place);
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
