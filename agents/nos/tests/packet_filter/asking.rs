//! Packets to hosts that are not there: they fill no table, and cost nobody else anything.

use std::process::Command;
use std::time::{Duration, Instant};

use super::daemons::{DEADLINE, Switch};
use super::frames::checksum;
use super::leaf::{desired, is_available, nft, reconcile};
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
    let output = Command::new("ip")
        .args(["-n", &leaf.name, "neigh", "show", "dev", "mmb11"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let address = |line: &str| line.split(' ').next().map(str::to_owned);
    let all = text.lines().filter_map(address);
    all.filter(|of| of.starts_with("10.8.") || of.starts_with("2001:db8:8:"))
        .collect()
}

/// Addresses that a leaf has asked for during a flood, and those that it may have asked for.
struct Flood {
    count: usize,
    allowed: usize,
}

/// Sends packets to many addresses, and counts those that the leaf has asked for.
fn flood(leaf: &Switch, from: &Tap, gateway: [u8; 6], version: u8) -> Flood {
    let begun = Instant::now();
    for number in 1..=ASKED {
        from.send(&packet(version, gateway, from.mac, number));
    }
    // The kernel is done when nothing has come for a while.
    let mut known = 0;
    let mut until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < until {
        let now = asked(leaf).len();
        if now > known {
            until = Instant::now() + Duration::from_millis(300);
            known = now;
        }
    }
    // However slow the machine is: no more than the rate allows until the last look.
    let millis = usize::try_from(begun.elapsed().as_millis()).unwrap();
    Flood {
        count: known,
        allowed: BURST + REST * millis / 1000 + 1,
    }
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
    for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        super::hosts::inside(&leaf.name, async move || {
            std::fs::write(format!("/proc/sys/net/{key}"), "1").unwrap();
        });
    }
    let shown = Command::new("ip")
        .args(["netns", "exec", &leaf.name])
        .args(["cat", "/sys/class/net/mmb10/address"])
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let octets = shown.trim().split(':');
    let octets = octets.map(|octet| u8::from_str_radix(octet, 16).unwrap());
    let gateway: [u8; 6] = octets.collect::<Vec<_>>().try_into().unwrap();
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
