//! VXLAN of a firewall: its own networks, and everything else.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::daemons::Switch;
use super::frames::{Outer, Vxlan};
use super::leaf::{FOREIGN, OWN, desired, is_available, nft, reconcile};
use super::tap::Tap;

/// Time after which a packet is taken for dropped. One takes less than a millisecond.
const SILENCE: Duration = Duration::from_millis(300);
const VTEP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 11);
/// The tunnel end of another leaf, behind `swp6`.
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 12);
const OTHER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x12);
const FIREWALL_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);

fn v4(to: Ipv4Addr) -> Outer {
    Outer::V4 {
        from: [10, 1, 0, 5].into(),
        to,
        has_options: false,
        is_fragmented: false,
    }
}

fn v6(from: Ipv6Addr, has_options: bool, is_fragment: bool) -> Outer {
    Outer::V6 {
        from,
        to: OTHER_V6,
        has_options,
        is_fragment,
    }
}

fn packet(vni: u32, outer: Outer) -> Vxlan {
    Vxlan {
        vni,
        flags: 0x0800_0000,
        reserved: 0,
        outer,
        tags: 0,
    }
}

/// A packet in words, with `true` if a firewall may send it.
type Case = (&'static str, Vxlan, bool);

fn packets() -> Vec<Case> {
    let [own, foreign] = [OWN, FOREIGN].map(to_its_leaf);
    [own, foreign, to_another_leaf(), over_v6()].concat()
}

/// To the firewall's own leaf, which unpacks them.
fn to_its_leaf(vni: u32) -> Vec<Case> {
    let odd = |has_options, is_fragmented| Outer::V4 {
        from: [10, 1, 0, 5].into(),
        to: VTEP,
        has_options,
        is_fragmented,
    };
    let plain = packet(vni, v4(VTEP));
    let tagged = |tags| Vxlan { tags, ..plain };
    if vni == OWN {
        let spoofed = Outer::V4 {
            from: [10, 1, 0, 6].into(),
            to: VTEP,
            has_options: false,
            is_fragmented: false,
        };
        return vec![
            ("own network", plain, true),
            ("own, priority tag", tagged(1), true),
            ("own, IP options", packet(vni, odd(true, false)), true),
            ("own, fragments", packet(vni, odd(false, true)), false),
            ("own, spoofed", packet(vni, spoofed), false),
        ];
    }
    vec![
        ("foreign network", plain, false),
        ("foreign, IP options", packet(vni, odd(true, false)), false),
        ("foreign, fragments", packet(vni, odd(false, true)), false),
        ("foreign, both", packet(vni, odd(true, true)), false),
        ("foreign, priority tag", tagged(1), false),
        ("foreign, two priority tags", tagged(2), false),
        ("foreign, three priority tags", tagged(3), false),
    ]
}

fn to_another_leaf() -> Vec<Case> {
    let plain = packet(OWN, v4(OTHER));
    let flagged = |flags| Vxlan { flags, ..plain };
    let reserved = Vxlan {
        reserved: 1,
        ..plain
    };
    vec![
        ("to a leaf, own", plain, true),
        ("to a leaf, foreign", packet(FOREIGN, v4(OTHER)), false),
        ("to a leaf, GPE", flagged(0x0c00_0003), false),
        ("to a leaf, GBP", flagged(0x8800_0000), false),
        ("to a leaf, no VNI", flagged(0), false),
        ("to a leaf, reserved", reserved, false),
    ]
}

fn over_v6() -> Vec<Case> {
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 5);
    let stranger = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 5);
    let [plain, options, fragment, both] = [
        v6(FIREWALL_V6, false, false),
        v6(FIREWALL_V6, true, false),
        v6(FIREWALL_V6, false, true),
        v6(FIREWALL_V6, true, true),
    ];
    vec![
        ("IPv6, own", packet(OWN, plain), true),
        ("IPv6, own, options", packet(OWN, options), true),
        ("IPv6, own, fragment", packet(OWN, fragment), false),
        ("IPv6, foreign", packet(FOREIGN, plain), false),
        ("IPv6, foreign, options", packet(FOREIGN, options), false),
        ("IPv6, foreign, both", packet(FOREIGN, both), false),
        (
            "IPv6, spoofed",
            packet(OWN, v6(stranger, false, false)),
            false,
        ),
        (
            "IPv6, link-local",
            packet(OWN, v6(link_local, false, false)),
            false,
        ),
    ]
}

/// The leaf, and who hears what it delivers.
struct Rack {
    leaf: Switch,
    firewall: Tap,
    hearers: [Tap; 3],
}

impl Rack {
    async fn start() -> Self {
        let leaf = Switch::start("forged", &[]).await;
        let firewall = Tap::new("fw", &leaf.name, "swp5");
        let hearers = [("other", "swp6"), ("foreign", "swp7"), ("own", "swp8")]
            .map(|(name, port)| Tap::new(name, &leaf.name, port));
        reconcile(&leaf, &desired());
        let mac = hearers[0].mac.map(|byte| format!("{byte:02x}")).join(":");
        leaf.ip("route add 10.0.0.12 dev swp6");
        leaf.ip(&format!("neigh replace 10.0.0.12 lladdr {mac} dev swp6"));
        leaf.ip("-6 route add 2001:db8::12 dev swp6");
        leaf.ip(&format!(
            "-6 neigh replace 2001:db8::12 lladdr {mac} dev swp6"
        ));
        Self {
            leaf,
            firewall,
            hearers,
        }
    }

    /// Sends each packet, and returns the words of those that somebody got.
    fn delivered(&self) -> Vec<&'static str> {
        let packets = packets();
        for (mark, (_, packet, _)) in (1..).zip(&packets) {
            let (to, from) = (self.firewall.switch_mac, self.firewall.mac);
            for frame in packet.frames(to, from, mark) {
                self.firewall.send(&frame);
            }
        }
        let mut heard = BTreeMap::new();
        let mut until = Instant::now() + SILENCE;
        while Instant::now() < until {
            for mark in self.hearers.iter().flat_map(Tap::heard) {
                until = Instant::now() + SILENCE;
                heard.insert(mark, ());
            }
        }
        let all = (1..).zip(packets);
        let got = all.filter(|(mark, _)| heard.contains_key(mark));
        got.map(|(_, (words, _, _))| words).collect()
    }
}

#[tokio::test]
async fn a_firewall_sends_vxlan_of_its_networks_and_nothing_else() {
    if !is_available() {
        return;
    }
    let rack = Rack::start().await;
    let permitted: Vec<_> = packets().into_iter().filter(|(_, _, may)| *may).collect();
    let permitted: Vec<_> = permitted.into_iter().map(|(words, _, _)| words).collect();
    assert_eq!(rack.delivered(), permitted);
    // Not because nothing would get through in this test.
    nft(&rack.leaf, "delete table inet metalmesh");
    let open = rack.delivered();
    let all: Vec<_> = packets().into_iter().map(|(words, _, _)| words).collect();
    println!("without a filter: {open:?}");
    // A kernel forwards nothing of link-local addresses.
    let all: Vec<_> = all
        .into_iter()
        .filter(|words| *words != "IPv6, link-local")
        .collect();
    assert_eq!(open, all);
}
