//! Errors that machines and firewalls invent: a redirect in the name of the management network's
//! gateway leaves the leaf's way to control, and "too long" the underlay's packets whole.

use std::net::Ipv4Addr;
use std::process::Command;

use super::daemons::Switch;
use super::leaf::{desired, is_available, lines, mac, nft, reconcile, settled, sysctl};
use super::packets::{icmp, ipv4, packet_v4, udp};
use super::tap::Tap;

const LEAF: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 11);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 9);
const CONTROL: Ipv4Addr = Ipv4Addr::new(10, 95, 0, 1);

/// `true` if packets to control go by the other host.
fn is_led_away(leaf: &Switch) -> bool {
    let output = Command::new("ip")
        .args(["-n", &leaf.name, "route", "get", &CONTROL.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.contains(&format!("via {OTHER}"))
}

#[tokio::test]
async fn a_machine_leads_nothing_of_its_leaf_away() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("redirects", &["swp5", "swp6", "swp7", "eth0"]).await;
    let bridged = Tap::new("dhost", &leaf.name, "swp8");
    reconcile(&leaf, &desired());
    leaf.ip("addr add 10.7.0.254/16 dev mmb10");
    for setting in ["all.rp_filter=0", "mmb10.rp_filter=0", "mmb10.forwarding=1"] {
        sysctl(&leaf.name, &format!("net.ipv4.conf.{setting}"));
    }
    leaf.ip(&format!("addr add {LEAF}/24 dev eth0"));
    leaf.ip(&format!("route add default via {GATEWAY}"));
    for (host, mac) in [(GATEWAY, "02:00:00:00:90:01"), (OTHER, "02:00:00:00:90:09")] {
        leaf.ip(&format!("neigh replace {host} lladdr {mac} dev eth0"));
    }
    // About an answer of the leaf to a ping.
    let quoted = packet_v4(LEAF, CONTROL, 1, &icmp(0, 0, [0; 4], &[0; 8]));
    let redirect = icmp(5, 1, OTHER.octets(), &quoted);
    let link = [mac(&leaf, "mmb10"), bridged.mac];
    let frame = ipv4(link, GATEWAY, Ipv4Addr::new(10, 7, 0, 254), 1, &redirect);
    let led_away = || {
        bridged.send(&frame);
        settled(|| usize::from(is_led_away(&leaf))) == 1
    };
    assert!(!led_away());
    // Either of the two is enough.
    nft(&leaf, "flush chain inet metalmesh input");
    assert!(!led_away(), "with the setting alone");
    // Not because the kernel would take none in this test.
    sysctl(&leaf.name, "net.ipv4.conf.all.accept_redirects=1");
    assert!(led_away());
}

/// A host behind another leaf's tunnel end, and what is quoted: a ping's answer, and VXLAN.
const LEAVES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 11), Ipv4Addr::new(10, 0, 0, 12)];
const FIREWALL: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);
const BEHIND_BRIDGE: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 254);

/// Errors that say that packets of the leaf to the other one were too long.
fn too_long() -> [Vec<u8>; 2] {
    let [leaf, other] = LEAVES;
    let ping = packet_v4(leaf, other, 1, &icmp(0, 0, [0; 4], &[0; 8]));
    let vxlan = packet_v4(leaf, other, 17, &udp(4789, &[8, 0, 0, 0, 0, 0, 11, 0]));
    [ping, vxlan].map(|quoted| icmp(3, 4, [0, 0, 1, 40], &quoted))
}

/// `true` if the leaf has learned that its packets to the other one are to be short.
fn is_shortened(leaf: &Switch) -> bool {
    let other = LEAVES[1].to_string();
    let shown = ["route", "get", &other].join(" ");
    !lines(leaf, "ip", &shown, &["    cache expires"]).is_empty()
}

#[tokio::test]
async fn nobody_shortens_the_packets_between_leaves() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("pmtu", &["swp7"]).await;
    let firewall = Tap::new("pfw", &leaf.name, "swp5");
    let spine = Tap::new("pspine", &leaf.name, "swp6");
    let bridged = Tap::new("phost", &leaf.name, "swp8");
    reconcile(&leaf, &desired());
    leaf.ip(&format!("addr add {BEHIND_BRIDGE}/16 dev mmb10"));
    leaf.ip("route add 10.1.0.5 dev swp5");
    let next = spine.mac.map(|byte| format!("{byte:02x}")).join(":");
    let [tunnel_end, other] = LEAVES;
    leaf.ip(&format!("route add {other} dev swp6 src {tunnel_end}"));
    leaf.ip(&format!("neigh replace {other} lladdr {next} dev swp6"));
    let by_bridge = [mac(&leaf, "mmb10"), bridged.mac];
    let by_port = [firewall.switch_mac, firewall.mac];
    let host = Ipv4Addr::new(10, 7, 0, 12);
    let senders = [
        ("a machine", &bridged, by_bridge, host, BEHIND_BRIDGE),
        ("a firewall", &firewall, by_port, FIREWALL, tunnel_end),
    ];
    let shorten = |at: usize| {
        let (_, from, link, source, to) = senders[at];
        for error in too_long() {
            from.send(&ipv4(link, source, to, 1, &error));
        }
        settled(|| usize::from(is_shortened(&leaf))) == 1
    };
    for (at, (words, ..)) in senders.iter().enumerate() {
        assert!(!shorten(at), "{words}");
    }
    // Nor those of other leaves, behind the spine.
    spine.frames();
    for error in too_long() {
        firewall.send(&ipv4(by_port, FIREWALL, other, 1, &error));
    }
    let passed = || {
        spine
            .frames()
            .iter()
            .filter(|f| f.get(34..36) == Some(&[3, 4]))
            .count()
    };
    assert_eq!(settled(passed), 0, "at the spine");
    // Not because the kernel would believe none in this test.
    nft(&leaf, "delete table inet metalmesh");
    for (at, (words, ..)) in senders.iter().enumerate() {
        assert!(shorten(at), "{words}");
        leaf.ip("route flush cache");
    }
}
