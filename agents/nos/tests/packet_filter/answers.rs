//! Packets for the leaf itself, from senders that nobody is: each answer is a question for one, and
//! they fill no table.

use std::net::{Ipv4Addr, TcpListener};

use super::daemons::Switch;
use super::hosts::inside;
use super::leaf::{desired, is_available, lines, mac, nft, reconcile, settled};
use super::neighbour_table::alone_in_the_table;
use super::packets::{SYN, icmp, ipv4, probe, tcp_v4};
use super::tap::Tap;

/// Senders of a flood. The kernel's table of the whole host has 1,024.
const SENDERS: u16 = 700;
/// Addresses that a port may have the leaf ask for at once.
const BURST: usize = 200;
/// Those that it may have it ask for in addition during a flood, which takes some milliseconds.
const REST: usize = 250;
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 254);
/// Port that the leaf listens on. What it answers there no socket bounds, as it does pings and resets.
const OPEN: u16 = 180;
const BGP: u16 = 179;

/// Opens connections from many senders, and counts those that the leaf asks for.
fn flood(leaf: &Switch, from: &Tap, gateway: [u8; 6]) -> usize {
    leaf.ip("neigh flush dev mmb10 nud all");
    for number in 0..SENDERS {
        let [high, low] = number.to_be_bytes();
        let sender = Ipv4Addr::new(10, 7, high + 1, low);
        let segment = tcp_v4(sender, GATEWAY, [5555, OPEN], SYN);
        from.send(&ipv4([gateway, from.mac], sender, GATEWAY, 6, &segment));
    }
    settled(|| lines(leaf, "ip", "neigh show dev mmb10", &["10.7."]).len())
}

/// `true` if the leaf answers a host's ping.
fn is_answered(from: &Tap, gateway: [u8; 6]) -> bool {
    let ping = icmp(8, 0, [0, 1, 0, 1], &probe(7));
    let host = Ipv4Addr::new(10, 7, 9, 9);
    from.heard();
    from.send(&ipv4([gateway, from.mac], host, GATEWAY, 1, &ping));
    settled(|| usize::from(from.heard().contains(&7))) == 1
}

#[tokio::test]
async fn a_port_has_a_leaf_ask_for_so_many_hosts_to_answer() {
    if !is_available() {
        return;
    }
    let _table = alone_in_the_table().await;
    let leaf = Switch::start("answers", &["swp5", "swp6", "swp7"]).await;
    let bridged = Tap::new("rhost", &leaf.name, "swp8");
    let neighbour = Tap::new("rnext", &leaf.name, "swp9");
    reconcile(&leaf, &desired());
    leaf.ip("link set swp9 master mmb10 up");
    leaf.ip("addr add 10.7.0.254/16 dev mmb10");
    let gateway = mac(&leaf, "mmb10");
    let listener = inside(&leaf.name, async || {
        TcpListener::bind((GATEWAY, OPEN)).unwrap()
    });
    let count = flood(&leaf, &bridged, gateway);
    println!("with a filter: {count} asked for");
    assert!((1..=BURST + REST).contains(&count), "{count}");
    let next = neighbour.mac.map(|byte| format!("{byte:02x}")).join(":");
    leaf.ip(&format!("neigh replace 10.7.9.9 lladdr {next} dev mmb10"));
    assert!(is_answered(&neighbour, gateway), "the next port");
    // Not because the kernel would ask for none in this test.
    nft(&leaf, "flush chain inet metalmesh output");
    let count = flood(&leaf, &bridged, gateway);
    println!("without: {count} asked for");
    assert!(count > BURST + REST, "{count}");
    drop(listener);
}

/// Packets of the leaf's port that come back to connections from different ports of a host.
fn answered(from: &Tap, gateway: [u8; 6], count: u16) -> usize {
    let host = Ipv4Addr::new(10, 7, 9, 9);
    from.frames();
    for number in 0..count {
        let segment = tcp_v4(host, GATEWAY, [6000 + number, BGP], SYN);
        from.send(&ipv4([gateway, from.mac], host, GATEWAY, 6, &segment));
    }
    // Behind Ethernet's and IP's headers.
    let is_of_bgp = |frame: &&Vec<u8>| frame.get(34..36) == Some(&BGP.to_be_bytes());
    let mut all = 0;
    settled(|| {
        all += from.frames().iter().filter(is_of_bgp).count();
        all
    })
}

#[tokio::test]
async fn connections_to_bgp_are_few_and_none_of_bridged_machines() {
    if !is_available() {
        return;
    }
    let _table = alone_in_the_table().await;
    let leaf = Switch::start("calls", &["swp5", "swp7"]).await;
    let bridged = Tap::new("chost", &leaf.name, "swp8");
    let spine = Tap::new("cspine", &leaf.name, "swp6");
    reconcile(&leaf, &desired());
    leaf.ip("addr add 10.7.0.254/16 dev mmb10");
    let heard = |from: &Tap, device: &str, count| {
        let mac_of = from.mac.map(|byte| format!("{byte:02x}")).join(":");
        leaf.ip(&format!("route replace 10.7.9.9 dev {device}"));
        leaf.ip(&format!(
            "neigh replace 10.7.9.9 lladdr {mac_of} dev {device}"
        ));
        answered(from, mac(&leaf, device), count)
    };
    assert_eq!(heard(&bridged, "mmb10", 5), 0);
    let count = heard(&spine, "swp6", 200);
    println!("{count} of 200 connections are answered");
    assert!((20..=40).contains(&count), "{count}");
    // Not because nothing would be answered in this test.
    nft(&leaf, "flush chain inet metalmesh input");
    assert_eq!(heard(&bridged, "mmb10", 5), 5);
    let count = heard(&spine, "swp6", 200);
    assert!(count >= 200, "{count}");
}
