//! The reach of a firewall beside its tunnels: BGP of its link, pings in the underlay, and what the
//! site names. Neither the logins of switches nor the management network.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::daemons::Switch;
use super::leaf::{desired, is_available, mac, nft, reconcile};
use super::packets::{ACK, SYN, icmp, ipv4, ipv6, probe, tcp, udp};
use super::tap::Tap;

const SILENCE: Duration = Duration::from_millis(300);
const FIREWALL: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);
const LEAF: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 11);
/// Behind the spine: control, a host that manages firewalls, and another leaf.
const CONTROL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 12);
/// In the management network of the leaf.
const BMC: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 5);
const FIREWALL_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
const CONTROL_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const OTHER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x12);
/// Link-local addresses of the firewall and of the leaf's port.
const NEAR: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 5),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xfe),
];

const SERVICE: u16 = 4443;
const SSH: u16 = 22;
const BGP: u16 = 179;
const IPMI: u16 = 623;

/// A packet in words with its frame, with `true` if a firewall may send it.
type Case = (&'static str, Vec<u8>, bool);

/// The packets, whose payloads have the numbers 1, 2, …
fn cases(link: [[u8; 6]; 2]) -> Vec<Case> {
    let mut out: Vec<Case> = Vec::new();
    let datagrams = [
        ("control", CONTROL, SERVICE, true),
        ("control, another port", CONTROL, SSH, false),
        ("another leaf, the same port", OTHER, SERVICE, false),
        ("a BMC", BMC, IPMI, false),
        // The leaf says that nobody listens.
        ("the leaf", LEAF, IPMI, false),
    ];
    for (words, to, port, may) in datagrams {
        let payload = udp(port, &probe(number(&out)));
        out.push((words, ipv4(link, FIREWALL, to, 17, &payload), may));
    }
    let segments = [
        ("opens a connection to control", CONTROL, SERVICE, SYN, true),
        ("answers a client", CLIENT, 40_000, ACK, true),
        ("opens a connection to a client", CLIENT, SSH, SYN, false),
        ("opens a connection to a leaf", OTHER, SSH, SYN, false),
        ("answers another leaf", OTHER, 40_000, ACK, false),
    ];
    for (words, to, port, flags, may) in segments {
        let payload = tcp([SSH, port], flags, &probe(number(&out)));
        out.push((words, ipv4(link, FIREWALL, to, 6, &payload), may));
    }
    let pings = [
        ("pings the leaf", LEAF, true),
        ("pings another leaf", OTHER, true),
        ("pings a BMC", BMC, false),
    ];
    for (words, to, may) in pings {
        let payload = icmp(8, 0, [0, 1, 0, 1], &probe(number(&out)));
        out.push((words, ipv4(link, FIREWALL, to, 1, &payload), may));
    }
    let v6 = [
        ("control, IPv6", CONTROL_V6, SERVICE, true),
        ("another leaf, IPv6", OTHER_V6, SERVICE, false),
    ];
    for (words, to, port, may) in v6 {
        let payload = udp(port, &probe(number(&out)));
        let frame = ipv6(link, FIREWALL_V6, to, 17, &payload, Some(6));
        out.push((words, frame, may));
    }
    out
}

/// The number of the next case.
fn number(before: &[Case]) -> u32 {
    u32::try_from(before.len() + 1).unwrap()
}

/// The leaf, the firewall, and who hears what the leaf delivers.
struct Rack {
    leaf: Switch,
    firewall: Tap,
    spine: Tap,
    management: Tap,
}

impl Rack {
    async fn start() -> Self {
        let leaf = Switch::start("reach", &["swp7", "swp8"]).await;
        let [firewall, spine, management] =
            [("rfw", "swp5"), ("rspine", "swp6"), ("rmgmt", "eth0")]
                .map(|(name, port)| Tap::new(name, &leaf.name, port));
        reconcile(&leaf, &desired());
        leaf.ip("link set eth0 up");
        leaf.ip("addr add 10.90.0.11/24 dev eth0");
        leaf.ip("addr add fe80::fe/64 dev swp5 nodad");
        for (tap, port, addresses) in [
            (
                &firewall,
                "swp5",
                &["10.1.0.5", "2001:db8:1::5", "fe80::5"][..],
            ),
            (
                &spine,
                "swp6",
                &[
                    "10.0.0.2",
                    "10.0.0.3",
                    "10.0.0.12",
                    "2001:db8::2",
                    "2001:db8::12",
                ],
            ),
            (&management, "eth0", &["10.90.0.5"]),
        ] {
            let mac = tap.mac.map(|byte| format!("{byte:02x}")).join(":");
            for address in addresses {
                if !address.starts_with("fe80") && port != "eth0" {
                    leaf.ip(&format!("route add {address} dev {port}"));
                }
                leaf.ip(&format!("neigh replace {address} lladdr {mac} dev {port}"));
            }
        }
        Self {
            leaf,
            firewall,
            spine,
            management,
        }
    }

    fn link(&self) -> [[u8; 6]; 2] {
        [self.firewall.switch_mac, self.firewall.mac]
    }

    /// Sends each packet, and returns the words of those that somebody got, or that the leaf
    /// answered.
    fn delivered(&self) -> Vec<&'static str> {
        let cases = cases(self.link());
        for (_, frame, _) in &cases {
            self.firewall.send(frame);
        }
        let taps = [&self.firewall, &self.spine, &self.management];
        let mut heard = BTreeSet::new();
        let mut until = Instant::now() + SILENCE;
        while Instant::now() < until {
            for mark in taps.into_iter().flat_map(Tap::heard) {
                until = Instant::now() + SILENCE;
                heard.insert(mark);
            }
        }
        let all = (1..).zip(cases);
        let got = all.filter(|(number, _)| heard.contains(number));
        got.map(|(_, (words, ..))| words).collect()
    }

    /// `true` if the leaf answers the first packet of a connection, or refuses it.
    fn answers(&self, ports: [u16; 2]) -> bool {
        let [from, to] = NEAR;
        let segment = tcp(ports, SYN, &[]);
        self.firewall.frames();
        self.firewall
            .send(&ipv6(self.link(), from, to, 6, &segment, Some(16)));
        let [mine, theirs] = ports.map(u16::to_be_bytes);
        let answered = [theirs, mine].concat();
        let until = Instant::now() + SILENCE;
        while Instant::now() < until {
            let frames = self.firewall.frames();
            // Behind Ethernet's and IPv6's headers.
            let mut heads = frames.iter().filter_map(|frame| frame.get(54..58));
            if heads.any(|head| *head == answered[..]) {
                return true;
            }
        }
        false
    }
}

#[tokio::test]
async fn a_firewall_reaches_its_neighbours_and_what_the_site_names() {
    if !is_available() {
        return;
    }
    let rack = Rack::start().await;
    assert_eq!(mac(&rack.leaf, "swp5"), rack.firewall.switch_mac);
    let all = cases(rack.link());
    let permitted: Vec<_> = all.iter().filter(|(.., may)| *may).collect();
    let permitted: Vec<_> = permitted.into_iter().map(|(words, ..)| *words).collect();
    assert_eq!(rack.delivered(), permitted);
    assert!(rack.answers([40_000, BGP]), "BGP");
    assert!(!rack.answers([40_001, SSH]), "a login of the leaf");
    assert!(!rack.answers([BGP, SSH]), "the same from the port of BGP");
    // Not because nothing would get through in this test.
    nft(&rack.leaf, "delete table inet metalmesh");
    let all: Vec<_> = all.into_iter().map(|(words, ..)| words).collect();
    assert_eq!(rack.delivered(), all);
    assert!(rack.answers([40_002, SSH]) && rack.answers([BGP, SSH]));
}
