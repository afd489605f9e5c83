//! ARP and ND of a firewall inside of its own tunnels: they teach the leaf nothing.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::daemons::Switch;
use super::frames::{Outer, Vxlan};
use super::leaf::{desired, filter, is_available, lines, nft, port, reconcile, settled, sysctl};
use super::neighbour_table::alone_in_the_table;
use super::packets::ipv6;
use super::tap::Tap;

/// VNI of a VRF of the firewall.
const L3_VNI: u32 = 27;
/// Neighbours that a flood claims. The kernel's table of a host has 1,024.
const CLAIMED: u16 = 700;

/// A packet of VXLAN from the firewall to its leaf.
const TUNNEL: Vxlan = Vxlan {
    vni: L3_VNI,
    flags: 0x0800_0000,
    reserved: 0,
    outer: Outer::V4 {
        from: Ipv4Addr::new(10, 1, 0, 5),
        to: Ipv4Addr::new(10, 0, 0, 11),
        has_options: false,
        is_fragmented: false,
    },
    tags: 0,
};

/// A question for the gateway by a host that has an address behind the VNI.
fn question(mac: [u8; 6], number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let head = [&[0xff; 6][..], &mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
    let sender = [&mac[..], &[10, 9, high + 1, low]].concat();
    [&head[..], &sender, &[0; 6], &[169, 254, 1, 1], &[0; 18]].concat()
}

/// A solicitation of routers, by which a router learns who asks.
fn solicitation(mac: [u8; 6], number: u16) -> Vec<u8> {
    let from = Ipv6Addr::new(0xfe80, 0, 0, 0, 7, 0, 0, number);
    let routers = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
    let body = [&[133, 0, 0, 0, 0, 0, 0, 0][..], &[1, 1], &mac].concat();
    let link = [[0x33, 0x33, 0, 0, 0, 2], mac];
    ipv6(link, from, routers, 58, &body, Some(2))
}

/// Sends frames through the tunnel, and counts the neighbours that the leaf has learned behind it.
fn flood(leaf: &Switch, from: &Tap, frame: fn([u8; 6], u16) -> Vec<u8>) -> usize {
    leaf.ip("neigh flush dev mmr27 nud all");
    for number in 1..=CLAIMED {
        for packet in TUNNEL.carry(from.switch_mac, from.mac, &frame(from.mac, number)) {
            from.send(&packet);
        }
    }
    let claimed = ["10.9.", "fe80::7:"];
    settled(|| lines(leaf, "ip", "neigh show dev mmr27", &claimed).len())
}

/// Makes a question of a host with this MAC address and number.
type Question = fn([u8; 6], u16) -> Vec<u8>;

#[tokio::test]
async fn a_firewall_teaches_a_leaf_nobody_behind_its_tunnels() {
    if !is_available() {
        return;
    }
    let _table = alone_in_the_table().await;
    let leaf = Switch::start("tunnels", &["swp6", "swp7", "swp8"]).await;
    let firewall = Tap::new("tfw", &leaf.name, "swp5");
    let mut wanted = desired();
    let of = filter(&[L3_VNI]);
    wanted.packet_filter.firewalls.insert(port("swp5"), of);
    reconcile(&leaf, &wanted);
    // The devices of an L3 VNI, which need no VRF for this.
    for line in [
        "link add mmr27 type bridge",
        "link set mmr27 up",
        "link add mmx27 type vxlan id 27 local 10.0.0.11 dstport 4789 nolearning",
        "link set mmx27 master mmr27 up",
        "addr add 169.254.1.1/32 dev mmb10",
        "route add 10.9.0.0/16 dev mmr27",
    ] {
        leaf.ip(line);
    }
    sysctl(&leaf.name, "net.ipv6.conf.mmr27.forwarding=1");
    let kinds: [(&str, Question); 2] = [("ARP", question), ("ND", solicitation)];
    for (kind, frame) in kinds {
        assert_eq!(flood(&leaf, &firewall, frame), 0, "{kind}");
    }
    // Not because nothing would be learned in this test.
    nft(&leaf, "delete table arp metalmesh");
    nft(&leaf, "flush chain inet metalmesh prerouting");
    for (kind, frame) in kinds {
        let learned = flood(&leaf, &firewall, frame);
        println!("{kind} without a filter: {learned} learned");
        assert!(learned > usize::from(CLAIMED) / 2, "{kind}: {learned}");
    }
}
