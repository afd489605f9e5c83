//! Frames to everybody: so many a second of each port, and none of those that speak to bridges reach
//! the site's switches.

use std::time::{Duration, Instant};

use super::daemons::Switch;
use super::frames::PROBE;
use super::leaf::{desired, is_available, nft, reconcile, settled};
use super::tap::Tap;

const BROADCAST: [u8; 6] = [0xff; 6];
const MULTICAST: [u8; 6] = [0x01, 0, 0x5e, 0, 0, 0xfb];
/// Spanning trees, GVRP, PVST, VTP, CFM, UplinkFast, CGMP, ERPS, MRP, FDP, EAPS, and the loopback test.
const CONTROL: [[u8; 6]; 12] = [
    [0x01, 0x80, 0xc2, 0, 0, 0],
    [0x01, 0x80, 0xc2, 0, 0, 0x21],
    [0x01, 0, 0x0c, 0xcc, 0xcc, 0xcd],
    [0x01, 0, 0x0c, 0xcc, 0xcc, 0xcc],
    [0x01, 0x80, 0xc2, 0, 0, 0x37],
    [0x01, 0, 0x0c, 0xcd, 0xcd, 0xcd],
    [0x01, 0, 0x0c, 0xdd, 0xdd, 0xdd],
    [0x01, 0x19, 0xa7, 0, 0, 1],
    [0x01, 0x15, 0x4e, 0, 0, 1],
    [0x01, 0xe0, 0x52, 0xcc, 0xcc, 0xcc],
    [0, 0xe0, 0x2b, 0, 0, 4],
    [0xcf, 0, 0, 0, 0, 0],
];
/// Tags: the one of a VLAN, of a provider's, two, an old one, and VLAN 0 around others.
const TAGS: [&[u8]; 6] = [
    &[0x81, 0, 0, 20],
    &[0x88, 0xa8, 0, 20],
    &[0x81, 0, 0, 1, 0x81, 0, 0, 20],
    &[0x91, 0, 0, 0, 0x81, 0, 0, 20],
    &[0x81, 0, 0, 0, 0x91, 0, 0, 20],
    &[0x81, 0, 0, 0, 0x81, 0, 0, 20],
];

fn frame(to: [u8; 6], from: &Tap, mark: u32) -> Vec<u8> {
    [&to[..], &from.mac, &PROBE, &mark.to_be_bytes(), &[0; 46]].concat()
}

/// Frames that arrive of so many, and the time that it took.
fn flood(from: &Tap, to: [u8; 6], count: u32, hearer: &Tap) -> (usize, Duration) {
    let before = hearer.received();
    let begin = Instant::now();
    for _ in 0..count {
        from.send(&frame(to, from, 1));
    }
    let arrived = || usize::try_from(hearer.received() - before).unwrap();
    (settled(arrived), begin.elapsed())
}

/// `true` if a frame arrives.
fn passes(from: &Tap, to: [u8; 6], mark: u32, hearer: &Tap) -> bool {
    arrives(&frame(to, from, mark), from, mark, hearer)
}

fn arrives(frame: &[u8], from: &Tap, mark: u32, hearer: &Tap) -> bool {
    from.send(frame);
    settled(|| usize::from(hearer.heard().contains(&mark))) == 1
}

/// `true` if a broadcast with tags arrives.
fn passes_tagged(from: &Tap, tags: &[u8], mark: u32, hearer: &Tap) -> bool {
    let frame = frame(BROADCAST, from, mark);
    let (addresses, rest) = frame.split_at(12);
    let frame = [addresses, tags, rest].concat();
    arrives(&frame, from, mark, hearer)
}

/// A leaf whose segment has a machine, a neighbour of it, and an uplink.
async fn with_uplink(test: &str) -> (Switch, [Tap; 3]) {
    let leaf = Switch::start(test, &["swp5", "swp6", "swp7"]).await;
    let hosts = [("host", "swp8"), ("next", "swp9"), ("site", "swp20")];
    let hosts = hosts.map(|(name, port)| Tap::new(&format!("{test}{name}"), &leaf.name, port));
    reconcile(&leaf, &desired());
    for port in ["swp9", "swp20"] {
        leaf.ip(&format!("link set {port} master mmb10 up"));
    }
    (leaf, hosts)
}

#[tokio::test]
async fn tagged_frames_stay_at_their_port() {
    if !is_available() {
        return;
    }
    let (leaf, [bridged, neighbour, uplink]) = with_uplink("tags").await;
    let hearers = [&uplink, &neighbour];
    for hearer in hearers {
        for (mark, tags) in (11..).zip(TAGS) {
            assert!(!passes_tagged(&bridged, tags, mark, hearer), "{tags:02x?}");
        }
        // A priority.
        assert!(passes_tagged(&bridged, &[0x81, 0, 0x60, 0], 30, hearer));
        assert!(passes_tagged(&bridged, &[], 31, hearer));
    }
    // What comes from the site is the site's.
    assert!(passes_tagged(&uplink, TAGS[0], 32, &bridged));
    // Not because none would get through in this test.
    nft(&leaf, "flush chain bridge metalmesh prerouting");
    assert!(passes_tagged(&bridged, TAGS[0], 40, &neighbour));
    assert!(
        !passes_tagged(&bridged, TAGS[0], 41, &uplink),
        "as forwarded"
    );
    nft(&leaf, "delete table bridge metalmesh");
    for (mark, tags) in (50..).zip(TAGS) {
        assert!(passes_tagged(&bridged, tags, mark, &uplink), "{tags:02x?}");
    }
}

#[tokio::test]
async fn a_port_sends_so_many_frames_to_everybody() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("storms", &["swp5", "swp6", "swp7"]).await;
    let bridged = Tap::new("shost", &leaf.name, "swp8");
    let neighbour = Tap::new("snext", &leaf.name, "swp9");
    reconcile(&leaf, &desired());
    leaf.ip("link set swp9 master mmb10 up");
    let cases = [
        (BROADCAST, 8000, 500, 1000),
        (MULTICAST, 12_000, 2000, 4000),
    ];
    for is_filtered in [true, false] {
        if !is_filtered {
            nft(&leaf, "delete table bridge metalmesh");
        }
        for (to, sent, rate, burst) in cases {
            let (arrived, took) = flood(&bridged, to, sent, &neighbour);
            println!("{to:02x?}, filtered={is_filtered}: {arrived} of {sent} in {took:?}");
            if is_filtered {
                let most = burst + rate * (usize::try_from(took.as_secs()).unwrap() + 1);
                assert!((burst..=most).contains(&arrived), "{arrived} of {most}");
                assert!(passes(&neighbour, to, 7, &bridged), "the next port");
            } else {
                assert!(arrived >= usize::try_from(sent).unwrap(), "{arrived}");
            }
        }
    }
}

#[tokio::test]
async fn frames_between_bridges_stay_away_from_uplinks() {
    if !is_available() {
        return;
    }
    let (leaf, [bridged, neighbour, uplink]) = with_uplink("up").await;
    assert!(passes(&bridged, MULTICAST, 10, &uplink), "multicasts pass");
    for (mark, to) in (11..).zip(CONTROL) {
        assert!(!passes(&bridged, to, mark, &uplink), "{to:02x?}");
    }
    // A tenant's bridges find their loops.
    assert!(passes(&bridged, CONTROL[0], 60, &neighbour));
    // The site's network is not limited.
    let (arrived, _) = flood(&uplink, BROADCAST, 8000, &bridged);
    assert!(arrived >= 8000, "{arrived} from the uplink");
    // Not because none would get through in this test.
    nft(&leaf, "delete table bridge metalmesh");
    for (mark, to) in (71..).zip(CONTROL) {
        assert!(passes(&bridged, to, mark, &uplink), "{to:02x?}");
    }
}
