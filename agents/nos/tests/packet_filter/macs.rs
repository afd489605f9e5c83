//! Invented senders of frames: they fill no table, and cost nobody else anything.

use super::daemons::{DEADLINE, Switch};
use super::leaf::{desired, is_available, lines, nft, reconcile, settled};
use super::tap::Tap;

/// Senders that a flood invents.
const INVENTED: u16 = 5000;
/// Senders that a port may have at once.
const BURST: usize = 512;
/// Those that it may have in addition during the test, four a second.
const REST: usize = 120;
/// A host that nobody is, so that no limit of broadcasts counts.
const NOBODY: [u8; 6] = [2, 9, 9, 9, 9, 9];
/// The group of LLDP, whose frames the kernel takes past all rules.
const LLDP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
const PROBE: [u8; 2] = [0x88, 0xb5];
const LLDP_KIND: [u8; 2] = [0x88, 0xcc];

fn flood(from: &Tap, to: [u8; 6], kind: [u8; 2], group: u8) {
    for number in 0..INVENTED {
        let [high, low] = number.to_be_bytes();
        let sender = [2, 0, 0, group, high, low];
        from.send(&[&to[..], &sender, &kind, &[0; 46]].concat());
    }
}

/// Senders of a group that the leaf has learned.
fn learned(leaf: &Switch, group: u8) -> usize {
    let begin = format!("02:00:00:{group:02x}:");
    let shown = "fdb show br mmb10 dynamic";
    lines(leaf, "bridge", shown, &[&begin]).len()
}

fn is_learned(leaf: &Switch, from: &Tap) -> bool {
    let until = std::time::Instant::now() + DEADLINE;
    let mac = from.mac.map(|byte| format!("{byte:02x}")).join(":");
    loop {
        from.send(&[&NOBODY[..], &from.mac, &PROBE, &[0; 46]].concat());
        let shown = lines(leaf, "bridge", "fdb show br mmb10 dynamic", &[&mac]);
        if !shown.is_empty() {
            return true;
        }
        if std::time::Instant::now() > until {
            return false;
        }
    }
}

#[tokio::test]
async fn a_port_teaches_a_leaf_so_many_mac_addresses() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("macs", &["swp5", "swp6", "swp7"]).await;
    let bridged = Tap::new("mhost", &leaf.name, "swp8");
    let neighbour = Tap::new("mnext", &leaf.name, "swp9");
    reconcile(&leaf, &desired());
    leaf.ip("link set swp9 master mmb10 up");
    flood(&bridged, NOBODY, PROBE, 1);
    let count = settled(|| learned(&leaf, 1));
    println!("with a filter: {count} learned");
    // Its own is one of them.
    assert!((BURST - 1..=BURST + REST).contains(&count), "{count}");
    flood(&bridged, LLDP, LLDP_KIND, 2);
    let count = settled(|| learned(&leaf, 2));
    assert_eq!(count, 0, "of link-local frames");
    assert!(is_learned(&leaf, &neighbour), "the next port");
    // Not because nothing would be learned in this test.
    nft(&leaf, "delete table bridge metalmesh");
    leaf.ip("link set mmb10 type bridge no_linklocal_learn 0");
    for (group, to, kind) in [(3, NOBODY, PROBE), (4, LLDP, LLDP_KIND)] {
        flood(&bridged, to, kind, group);
        let count = settled(|| learned(&leaf, group));
        assert_eq!(count, usize::from(INVENTED), "{to:02x?}");
    }
}
