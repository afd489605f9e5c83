//! A firewall exchanges the EVPN routes of its own networks and no others, although tenants'
//! addresses look like those of the underlay.

use std::collections::BTreeSet;

use super::catalogue::add_firewall_networks;
use super::machine::{Networking, OUTSIDE};
use super::site::Site;
use super::wait::found;

/// Added to the VNI of a VRF for the segment of its bridged machines.
const SEGMENT_BASE: u32 = 1 << 23;

/// VNIs in the route targets of EVPN routes.
fn vnis(shown: &str) -> BTreeSet<u32> {
    let words = shown.split([' ', '\n', ',', '"']);
    let targets = words.filter_map(|word| word.strip_prefix("RT:"));
    let vnis = targets.filter_map(|target| target.split_once(':')?.1.trim().parse().ok());
    vnis.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_firewall_sees_the_routes_of_its_networks_alone() {
    if !super::is_guest() {
        return;
    }
    let site = Site::start().await;
    add_firewall_networks(site.client()).await;
    let mut of_tenants = BTreeSet::new();
    let mut machines = Vec::new();
    for (number, tenant, networking) in [
        (1, 0, Networking::Routed),
        (2, 1, Networking::Routed),
        (3, 0, Networking::Bridged),
        (4, 1, Networking::Bridged),
    ] {
        let offered = site.deliver(number, networking).await;
        let rented = site.rent(offered, tenant).await;
        of_tenants.insert(rented.system.vni);
        machines.push(rented);
    }
    let offered = site.deliver(5, Networking::Firewall).await;
    let firewall = site.rent(offered, 0).await;
    let mine = firewall.system.vni;
    // A host of a segment is known with the VNI of its segment beside that of its VRF.
    let segment = SEGMENT_BASE + mine;
    let own: BTreeSet<u32> = firewall
        .system
        .vnis
        .iter()
        .copied()
        .chain([segment])
        .collect();
    println!("networks of the firewall: {own:?}, of tenants: {of_tenants:?}");
    let places = site.leaves.each_ref().map(|leaf| leaf.master("swp5"));
    assert_eq!(places, ["", ""], "the firewall is in the underlay");
    let look = || firewall.machine.vtysh("show bgp l2vpn evpn");
    let arrived = found(async || {
        let seen = vnis(&look());
        seen.contains(&mine).then_some(())
    });
    let is_there = arrived.await.is_some();
    let shown = look();
    println!("{shown}");
    if !is_there {
        site.show().await;
    }
    let others: Vec<u32> = vnis(&shown).difference(&own).copied().collect();
    assert!(is_there, "no routes of its own networks");
    assert_eq!(others, Vec::<u32>::new(), "routes of other networks");
    // The prefix that it announces for its own network arrives, and the one for another not.
    let has_route = |vni: u32| {
        let leaf = &site.leaves[0].switch;
        let routes = leaf.vtysh(&format!("show ip route vrf Vrf{vni} {OUTSIDE}"));
        routes.contains("Known via \"bgp\"")
    };
    let arrived = found(async || has_route(mine).then_some(()));
    if arrived.await.is_none() {
        site.show().await;
        println!("{}", look());
        panic!("its route does not arrive in VRF {mine}");
    }
    for other in of_tenants.iter().filter(|vni| **vni != mine) {
        assert!(!has_route(*other), "its route is in VRF {other}");
    }
}
