//! Frames to the groups of a link, which the kernel takes on the port, past the bridge: nothing in
//! them reaches the leaf or another tenant.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use agents_nos::Membership;
use agents_nos::model::Port;

use super::daemons::Switch;
use super::frames::{Outer, Vxlan};
use super::leaf::{FOREIGN, desired, is_available, lines, nft, port, reconcile, settled};
use super::tap::Tap;

const SILENCE: Duration = Duration::from_millis(300);
const VTEP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 11);
/// The last octets of the groups; the kernel keeps 00 in the bridge and drops 01.
const GROUPS: std::ops::RangeInclusive<u8> = 2..=0x0f;

fn group(last: u8) -> [u8; 6] {
    [0x01, 0x80, 0xc2, 0, 0, last]
}

/// VXLAN of another tenant's VNI to the leaf by each group.
fn send_vxlan(from: &Tap, number: u32) {
    for last in GROUPS {
        let outer = Outer::V4 {
            from: [10, 0, 0, 12].into(),
            to: VTEP,
            has_options: false,
            is_fragmented: false,
        };
        for (tags, mark) in [(0, number), (1, number + 100)] {
            let packet = Vxlan {
                vni: FOREIGN,
                flags: 0x0800_0000,
                reserved: 0,
                outer,
                tags,
            };
            for frame in packet.frames(group(last), from.mac, mark + u32::from(last)) {
                from.send(&frame);
            }
        }
    }
}

/// The marks that come out in the other tenant's segment.
fn heard(victim: &Tap) -> BTreeSet<u32> {
    let mut marks = BTreeSet::new();
    let mut until = Instant::now() + SILENCE;
    while Instant::now() < until {
        let now = victim.heard();
        if !now.is_empty() {
            until = Instant::now() + SILENCE;
        }
        marks.extend(now);
    }
    marks
}

/// A question for the leaf's tunnel end: the kernel learns who asks.
fn ask(from: &Tap, last: u8) {
    let head = [&group(last)[..], &from.mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
    let sender = [&from.mac[..], &[10, 7, 1, last]].concat();
    from.send(&[&head[..], &sender, &[0; 6], &VTEP.octets(), &[0; 18]].concat());
}

fn learned(leaf: &Switch, from: &Tap, device: &str) -> usize {
    GROUPS.for_each(|last| ask(from, last));
    let shown = format!("neigh show dev {device}");
    settled(|| lines(leaf, "ip", &shown, &["10.7.1."]).len())
}

#[tokio::test]
async fn frames_to_the_link_alone_reach_nothing() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("groups", &["swp5", "swp6"]).await;
    let bridged = Tap::new("gbridged", &leaf.name, "swp8");
    let alone = Tap::new("galone", &leaf.name, "swp10");
    let victim = Tap::new("gvictim", &leaf.name, "swp7");
    let mut model = desired();
    let quarantined = Port {
        admin_up: true,
        mtu: None,
        membership: Membership::Quarantine,
    };
    model.ports.insert(port("swp10"), quarantined);
    reconcile(&leaf, &model);
    let senders = [(&bridged, "swp8", 1000), (&alone, "swp10", 2000)];
    victim.heard();
    for (from, device, number) in senders {
        send_vxlan(from, number);
        assert_eq!(heard(&victim), BTreeSet::new(), "{device}");
        assert_eq!(learned(&leaf, from, device), 0, "{device}");
    }
    // Not because nothing would get through in this test.
    for family in ["inet", "arp"] {
        nft(&leaf, &format!("delete table {family} metalmesh"));
    }
    for (from, device, number) in senders {
        send_vxlan(from, number);
        let open = GROUPS.flat_map(|last| [0, 100].map(|tag| number + tag + u32::from(last)));
        assert_eq!(heard(&victim), open.collect(), "{device}");
        assert!(learned(&leaf, from, device) > 0, "{device}");
    }
}
