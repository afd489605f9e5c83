//! Floods of ARP and ND: they fill no table, and cost nobody else anything.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::{Duration, Instant};

use super::daemons::{DEADLINE, Switch};
use super::leaf::{desired, is_available, nft, reconcile};
use super::neighbour_table::alone_in_the_table;
use super::tap::Tap;

/// Neighbours that a flood claims. The kernel's table of a host has 1,024.
const CLAIMED: u16 = 700;
/// Packets that a port may send at once.
const BURST: usize = 400;
/// Packets that it may send in addition during a flood, which takes some milliseconds.
const REST: usize = 200;

/// The kind of a flood.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Arp,
    /// ARP in a tag of VLAN 0, which the kernel takes for none.
    TaggedArp,
    /// ARP in two such tags.
    TwiceTaggedArp,
    Nd,
}

fn sender_v4(number: u16) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(10, 7, high + 1, low)
}

/// A frame by which a host says that it has an address.
fn claim(kind: Kind, mac: [u8; 6], number: u16) -> Vec<u8> {
    let tags = match kind {
        Kind::Arp | Kind::Nd => 0,
        Kind::TaggedArp => 1,
        Kind::TwiceTaggedArp => 2,
    };
    if let Kind::Nd = kind {
        return solicit(mac, number);
    }
    // A question for the gateway: the kernel learns who asks.
    let tags = [0x81, 0x00, 0, 0].repeat(tags);
    let head = [&[0xff; 6][..], &mac, &tags, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
    let sender = [&mac[..], &sender_v4(number).octets()].concat();
    [&head[..], &sender, &[0; 6], &[10, 7, 0, 254], &[0; 18]].concat()
}

/// A neighbour solicitation for `fe80::fe` by a link-local address.
fn solicit(mac: [u8; 6], number: u16) -> Vec<u8> {
    let from = Ipv6Addr::new(0xfe80, 0, 0, 0, 7, 0, 0, number).octets();
    let target = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xfe).octets();
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0xfe).octets();
    let mut body = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &target, &[1, 1], &mac].concat();
    let length = u16::try_from(body.len()).unwrap();
    let pseudo = [
        &from[..],
        &group,
        &[0, 0],
        &length.to_be_bytes(),
        &[0, 0, 0, 58],
    ]
    .concat();
    let sum = super::frames::checksum(&[&pseudo[..], &body].concat());
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let to = [0x33, 0x33, 0xff, 0, 0, 0xfe];
    let head = [&to[..], &mac, &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
    [
        &head[..],
        &length.to_be_bytes(),
        &[58, 255],
        &from,
        &group,
        &body,
    ]
    .concat()
}

/// Addresses that a device of the leaf knows, without the other end's own.
fn neighbours(leaf: &Switch, device: &str) -> usize {
    let output = Command::new("ip")
        .args(["-n", &leaf.name, "neigh", "show", "dev", device])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let claimed = |line: &&str| line.starts_with("10.7.") || line.starts_with("fe80::7:");
    text.lines().filter(claimed).count()
}

/// Floods from a port, and counts what the leaf has learned.
fn flood(leaf: &Switch, from: &Tap, device: &str, kind: Kind) -> usize {
    leaf.ip(&format!("neigh flush dev {device} nud all"));
    for number in 1..=CLAIMED {
        from.send(&claim(kind, from.mac, number));
    }
    // The kernel is done when nothing has come for a while.
    let mut known = 0;
    let mut until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < until {
        let now = neighbours(leaf, device);
        if now != known {
            until = Instant::now() + Duration::from_millis(300);
        }
        known = now;
    }
    known
}

fn is_heard(leaf: &Switch, from: &Tap, device: &str) -> bool {
    let until = Instant::now() + DEADLINE;
    let address = sender_v4(0x2001).to_string();
    from.send(&claim(Kind::Arp, from.mac, 0x2001));
    loop {
        let output = Command::new("ip")
            .args(["-n", &leaf.name, "neigh", "show", &address, "dev", device])
            .output()
            .unwrap();
        if !output.stdout.is_empty() {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
    }
}

#[tokio::test]
async fn a_port_teaches_a_leaf_so_many_neighbours_at_once() {
    if !is_available() {
        return;
    }
    let _table = alone_in_the_table().await;
    let leaf = Switch::start("flood", &["swp6"]).await;
    let firewall = Tap::new("ffw", &leaf.name, "swp5");
    let other = Tap::new("fother", &leaf.name, "swp7");
    let bridged = Tap::new("fhost", &leaf.name, "swp8");
    let neighbour = Tap::new("fnext", &leaf.name, "swp9");
    reconcile(&leaf, &desired());
    leaf.ip("link set swp9 nomaster");
    leaf.ip("link set swp9 master mmb10 up");
    // Gateways, which need no VRF for this.
    for device in ["mmb10", "swp5"] {
        leaf.ip(&format!("addr add 10.7.0.254/16 dev {device}"));
        leaf.ip(&format!("addr add fe80::fe/64 dev {device} nodad"));
        leaf.ip(&format!("addr del 10.7.0.254/16 dev {device}"));
    }
    let cases = [
        (&bridged, "mmb10", Kind::Arp),
        (&bridged, "mmb10", Kind::TaggedArp),
        (&bridged, "mmb10", Kind::TwiceTaggedArp),
        (&bridged, "mmb10", Kind::Nd),
        (&firewall, "swp5", Kind::Arp),
        (&firewall, "swp5", Kind::Nd),
    ];
    for is_filtered in [true, false] {
        if !is_filtered {
            for family in ["inet", "bridge", "arp"] {
                nft(&leaf, &format!("delete table {family} metalmesh"));
            }
        }
        for (from, device, kind) in cases {
            leaf.ip(&format!("addr replace 10.7.0.254/16 dev {device}"));
            let learned = flood(&leaf, from, device, kind);
            println!("{kind:?} from {device}, filtered={is_filtered}: {learned} learned");
            if is_filtered {
                assert!(learned <= BURST + REST, "{kind:?} from {device}: {learned}");
                if device == "mmb10" {
                    assert!(is_heard(&leaf, &neighbour, device), "the next port");
                }
            } else {
                assert_eq!(learned, usize::from(CLAIMED), "{kind:?} from {device}");
            }
            leaf.ip(&format!("addr del 10.7.0.254/16 dev {device}"));
            leaf.ip(&format!("neigh flush dev {device} nud all"));
            // The rate of a port that has been silent is full again after two seconds.
            if is_filtered {
                nft(&leaf, "flush set bridge metalmesh senders");
                nft(&leaf, "flush set inet metalmesh senders");
                nft(&leaf, "flush set arp metalmesh senders");
            }
        }
    }
    drop(other);
}
