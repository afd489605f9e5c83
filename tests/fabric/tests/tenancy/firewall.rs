//! A firewall exchanges the EVPN routes of its own networks and no others, although tenants'
//! addresses look like those of the underlay.

use std::collections::BTreeSet;
use std::process::Command;

use super::catalogue::add_firewall_networks;
use super::hosts::{Host, PORT, answer, listen};
use super::machine::{Networking, OUTSIDE};
use super::models::{enter, place, tenant, underlay};
use super::site::Site;
use super::stages::Rented;
use super::switch::reconcile;
use super::wait::found;

/// Added to the VNI of a VRF for the segment of its bridged machines.
const SEGMENT_BASE: u32 = 1 << 23;

/// VNIs in the route targets of EVPN routes that do not come from this AS itself. A route target has
/// the lower half of an AS number.
fn vnis(shown: &str, own: u32) -> BTreeSet<u32> {
    let words = shown.split_whitespace();
    let targets = words.filter_map(|word| word.strip_prefix("RT:")?.split_once(':'));
    let others = targets.filter(|(asn, _)| *asn != (own & 0xffff).to_string());
    others.filter_map(|(_, vni)| vni.parse().ok()).collect()
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
    let offered = site.deliver(5, Networking::ForgingFirewall).await;
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
        let seen = vnis(&look(), firewall.system.asn);
        seen.contains(&mine).then_some(())
    });
    let is_there = arrived.await.is_some();
    let shown = look();
    println!("{shown}");
    if !is_there {
        site.show().await;
    }
    let others: Vec<u32> = vnis(&shown, firewall.system.asn)
        .difference(&own)
        .copied()
        .collect();
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

/// VNI of the network outside.
const INTERNET: u32 = 100;
/// A server outside.
pub(crate) const SERVER: &str = "198.51.100.9";

/// Makes the spine an exit: the network outside, with a server in it. Leaves without machines have no
/// session with a spine, and its ports wait for one: a machine has to be there before.
pub(crate) fn exit(site: &Site) -> Host {
    let spine = &site.spine;
    let server = format!("{SERVER}/24");
    let host = Host::new("outside", spine, "swp3", &server, "198.51.100.1");
    let segment = SEGMENT_BASE + INTERNET;
    let mut desired = underlay(1, &["swp1", "swp2"]);
    tenant(&mut desired, INTERNET, segment, &["198.51.100.1/24"]);
    enter(&mut desired, "swp3", place(segment), 1500);
    reconcile(spine, &desired);
    host
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_leaves_through_its_firewall_alone() {
    if !super::is_guest() {
        return;
    }
    let site = Site::start().await;
    add_firewall_networks(site.client()).await;
    let mut machines = Vec::new();
    for (number, tenant, networking) in [
        (1, 0, Networking::Routed),
        (2, 1, Networking::Routed),
        (3, 0, Networking::Bridged),
    ] {
        let offered = site.deliver(number, networking).await;
        let rented = site.rent(offered, tenant).await;
        listen(rented.machine.namespace(), &format!("m{number}"));
        machines.push(rented);
    }
    let outside = exit(&site);
    let before = answer(machines[0].machine.namespace(), SERVER, PORT);
    assert_eq!(before, None, "nobody leaves without a firewall");
    let offered = site.deliver(5, Networking::Firewall).await;
    let firewall = site.rent(offered, 0).await;
    println!("the firewall's order: {:?}", firewall.system.order.networks);
    for of in machines.iter().filter(|of| of.tenant == 0) {
        let namespace = of.machine.namespace();
        let arrived = found(async || answer(namespace, SERVER, PORT));
        let arrived = arrived.await;
        println!("m{} to the server: {arrived:?}", of.machine.number);
        if arrived.as_deref() != Some("outside") {
            site.show().await;
            firewall.machine.show();
            of.machine.show();
            for command in [
                "show ip route vrf all",
                "show bgp l2vpn evpn",
                "show evpn vni detail",
            ] {
                println!("{}", firewall.machine.vtysh(command));
            }
            println!("{}", site.spine.vtysh("show ip route vrf all"));
            panic!("m{} does not leave", of.machine.number);
        }
        // No rule permits this port.
        assert_eq!(answer(namespace, SERVER, PORT + 1), None);
        // Private addresses are not known outside, and the firewall lets nobody in.
        assert_eq!(answer(&outside.name, &of.system.address, PORT), None);
    }
    let routes = site
        .spine
        .vtysh(&format!("show ip route vrf Vrf{INTERNET}"));
    println!("{routes}");
    assert!(routes.contains("192.0.2."), "the firewall's own address");
    assert!(
        !routes.contains("10.0.0."),
        "private addresses are known outside"
    );
    let other = &machines[1];
    let stranger = answer(other.machine.namespace(), SERVER, PORT);
    assert_eq!(stranger, None, "another tenant leaves through the firewall");
    router_macs_come_back(&firewall).await;
    let namespace = machines[0].machine.namespace();
    let arrived = found(async || answer(namespace, SERVER, PORT)).await;
    assert_eq!(arrived.as_deref(), Some("outside"));
}

/// Takes the entries of the leaves' router MAC addresses from a firewall, as zebra does, and waits
/// until they are back.
async fn router_macs_come_back(firewall: &Rented) {
    let namespace = firewall.machine.namespace();
    let tunnel = format!("vni{}", firewall.system.vni);
    let entries = || -> BTreeSet<(String, String)> {
        let shown = bridge(namespace, &format!("fdb show dev {tunnel}"));
        let pairs = shown.lines().filter_map(|line| {
            let (mac, rest) = line.split_once(" dst ")?;
            let end = rest.split_whitespace().next()?;
            Some((mac.trim().to_owned(), end.to_owned()))
        });
        pairs.collect()
    };
    let before = entries();
    println!("router MAC addresses that the firewall knows: {before:?}");
    assert!(!before.is_empty());
    for (mac, end) in &before {
        bridge(namespace, &format!("fdb del {mac} dev {tunnel} master"));
        let of_tunnel = format!("fdb del {mac} dev {tunnel} dst {end} self");
        bridge(namespace, &of_tunnel);
    }
    let back = found(async || entries().is_superset(&before).then_some(())).await;
    assert!(back.is_some(), "{:?}", entries());
}

fn bridge(namespace: &str, command: &str) -> String {
    let mut bridge = Command::new("bridge");
    let bridge = bridge.args(["-n", namespace]).args(command.split(' '));
    let output = bridge.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
