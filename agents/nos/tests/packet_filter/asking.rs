//! Packets to hosts that are not there: they fill no table, and cost nobody else anything.

use std::net::Ipv4Addr;
use std::time::Instant;

use agents_nos::model::{Mtu, Segment};

use super::daemons::{DEADLINE, Switch};
use super::frames::{Outer, Vxlan, checksum};
use super::leaf::{OWN, desired, is_available, lines, mac, nft, reconcile, settled, sysctl, vni};
use super::neighbour_table::alone_in_the_table;
use super::tap::Tap;

/// Addresses that a flood asks for. The kernel's table of the whole host has 1,024.
const ASKED: u16 = 700;
/// Addresses that a port may have the leaf ask for at once.
const BURST: usize = 200;
/// Those that it may have it ask for in addition, in a second.
const REST: usize = 200;

/// An address of the other segment that nobody has.
fn nobody(version: u8, number: u16) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    match version {
        4 => vec![10, 8, high + 1, low],
        _ => [&[0x20, 1, 0x0d, 0xb8, 0, 8][..], &[0; 8], &[high, low]].concat(),
    }
}

/// A packet to such an address, in a frame for the gateway.
fn packet(version: u8, gateway: [u8; 6], mac: [u8; 6], number: u16) -> Vec<u8> {
    let to = nobody(version, number);
    let udp = [5555_u16, 9, 8, 0].map(u16::to_be_bytes).concat();
    let (kind, head) = match version {
        4 => {
            let mut head = [
                &[0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0][..],
                &[10, 7, 0, 1],
                &to,
            ]
            .concat();
            let sum = checksum(&head);
            head[10..12].copy_from_slice(&sum.to_be_bytes());
            ([8, 0], head)
        }
        _ => {
            let from = [&[0x20, 1, 0x0d, 0xb8, 0, 7][..], &[0; 9], &[1]].concat();
            let head = [&[0x60, 0, 0, 0, 0, 8, 17, 64][..], &from, &to].concat();
            ([0x86, 0xdd], head)
        }
    };
    [&gateway[..], &mac, &kind, &head, &udp].concat()
}

/// Addresses of the other segment that the leaf has asked for.
fn asked(leaf: &Switch) -> Vec<String> {
    let shown = lines(
        leaf,
        "ip",
        "neigh show dev mmb11",
        &["10.8.", "2001:db8:8:"],
    );
    let address = |line: &String| line.split(' ').next().map(str::to_owned);
    shown.iter().filter_map(address).collect()
}

/// Addresses that a leaf has asked for during a flood, and those that it may have asked for.
struct Flood {
    count: usize,
    allowed: usize,
}

impl Flood {
    /// Waits until the leaf asks for no more addresses.
    fn count(leaf: &Switch, begun: Instant) -> Self {
        let count = settled(|| asked(leaf).len());
        // However slow the machine is: no more than the rate allows until the last look.
        let millis = usize::try_from(begun.elapsed().as_millis()).unwrap();
        Self {
            count,
            allowed: BURST + REST * millis / 1000 + 1,
        }
    }
}

/// Sends packets to many addresses, and counts those that the leaf has asked for.
fn flood(leaf: &Switch, from: &Tap, gateway: [u8; 6], version: u8) -> Flood {
    let begun = Instant::now();
    for number in 1..=ASKED {
        from.send(&packet(version, gateway, from.mac, number));
    }
    Flood::count(leaf, begun)
}

/// `true` if a port has the leaf ask for an address.
fn is_served(leaf: &Switch, from: &Tap, gateway: [u8; 6]) -> bool {
    let until = Instant::now() + DEADLINE;
    from.send(&packet(4, gateway, from.mac, 0x2001));
    while !asked(leaf).contains(&"10.8.33.1".to_owned()) {
        if Instant::now() > until {
            return false;
        }
    }
    true
}

#[tokio::test]
async fn a_port_has_a_leaf_ask_for_so_many_hosts_at_once() {
    if !is_available() {
        return;
    }
    let _table = alone_in_the_table().await;
    let leaf = Switch::start("asking", &["swp5", "swp6"]).await;
    let other = Tap::new("aother", &leaf.name, "swp7");
    let bridged = Tap::new("ahost", &leaf.name, "swp8");
    let neighbour = Tap::new("anext", &leaf.name, "swp9");
    reconcile(&leaf, &desired());
    leaf.ip("link set swp9 master mmb10 up");
    for (device, network) in [("mmb10", 7), ("mmb11", 8)] {
        leaf.ip(&format!("addr add 10.{network}.0.254/16 dev {device}"));
        leaf.ip(&format!(
            "addr add 2001:db8:{network}::fe/48 dev {device} nodad"
        ));
    }
    for key in ["ipv4.ip_forward", "ipv6.conf.all.forwarding"] {
        sysctl(&leaf.name, &format!("net.{key}=1"));
    }
    let gateway = mac(&leaf, "mmb10");
    for is_filtered in [true, false] {
        if !is_filtered {
            nft(&leaf, "flush chain inet metalmesh forward");
        }
        for version in [4, 6] {
            leaf.ip("neigh flush dev mmb11 nud all");
            let Flood { count, allowed } = flood(&leaf, &bridged, gateway, version);
            println!("IPv{version}, filtered={is_filtered}: {count} asked for, of {allowed}");
            if is_filtered {
                assert!(count >= BURST, "IPv{version}: {count}");
                assert!(count <= allowed, "IPv{version}: {count} of {allowed}");
                assert!(is_served(&leaf, &neighbour, gateway), "the next port");
                nft(&leaf, "flush set inet metalmesh askers");
            } else {
                assert!(count > BURST + REST, "IPv{version}: {count}");
            }
        }
    }
    drop(other);
}

/// Another network of the firewall.
const SECOND: u32 = 12;

/// Sends packets to many addresses in a tunnel, the first of them this one.
fn flood_tunnel(from: &Tap, number: u32, gateway: [u8; 6], first: u16) {
    let tunnel = Vxlan {
        vni: number,
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
    for number in first..first + ASKED / 2 {
        let inner = packet(4, gateway, from.mac, number);
        for frame in tunnel.carry(from.switch_mac, from.mac, &inner) {
            from.send(&frame);
        }
    }
}

#[tokio::test]
async fn a_firewall_asks_for_so_many_hosts_in_all_its_networks_together() {
    if !is_available() {
        return;
    }
    let _table = alone_in_the_table().await;
    let leaf = Switch::start("budget", &["swp7", "swp8"]).await;
    let firewall = Tap::new("bfw", &leaf.name, "swp5");
    let spine = Tap::new("bspine", &leaf.name, "swp6");
    let mut wanted = desired();
    let second = Segment::new(Mtu::ETHERNET);
    wanted.segments.insert(vni(SECOND), second);
    reconcile(&leaf, &wanted);
    for (device, network) in [("mmb10", 7), ("mmb12", 6), ("mmb11", 8)] {
        leaf.ip(&format!("addr add 10.{network}.0.254/16 dev {device}"));
    }
    // All packets have one sender.
    for scope in ["all", "mmb10", "mmb12"] {
        sysctl(&leaf.name, &format!("net.ipv4.conf.{scope}.rp_filter=0"));
    }
    sysctl(&leaf.name, "net.ipv4.ip_forward=1");
    let networks = [(OWN, mac(&leaf, "mmb10")), (SECOND, mac(&leaf, "mmb12"))];
    let flood = |from: &Tap| {
        leaf.ip("neigh flush dev mmb11 nud all");
        let begun = Instant::now();
        for ((number, gateway), first) in networks.into_iter().zip([1, 1 + ASKED / 2]) {
            flood_tunnel(from, number, gateway, first);
        }
        Flood::count(&leaf, begun)
    };
    let Flood { count, allowed } = flood(&firewall);
    println!("the firewall: {count} of {allowed}");
    assert!((BURST..=allowed).contains(&count), "{count} of {allowed}");
    // What comes over the fabric: each network has a budget of its own.
    let Flood { count, allowed } = flood(&spine);
    println!("the fabric: {count} of {}", 2 * allowed);
    assert!((2 * BURST..=2 * allowed).contains(&count), "{count}");
    nft(&leaf, "flush chain inet metalmesh forward");
    let Flood { count, .. } = flood(&firewall);
    assert!(count > BURST + REST, "without a filter: {count}");
}
