//! Every link, leaf and the spine fail and come back, while packets flow.

use std::time::{Duration, Instant};

use super::daemons::{DEADLINE, Switch};
use super::models::underlay;
use super::rack::{PORTS, Rack};
use super::stream::Stream;
use super::switch::reconcile;

/// Time that a fault lasts where traffic does not find another way.
const OUTAGE: Duration = Duration::from_secs(8);

/// A part of the fabric that fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// A port of a leaf: a cable.
    Link(usize, &'static str),
    /// A leaf without power: no carrier on any port, no daemons.
    Leaf(usize),
    Spine,
}

const FAULTS: [Fault; 9] = [
    Fault::Link(0, "swp3"),
    Fault::Link(1, "swp4"),
    Fault::Link(0, "swp7"),
    Fault::Link(1, "swp7"),
    Fault::Link(0, "swp31"),
    Fault::Link(1, "swp31"),
    Fault::Leaf(0),
    Fault::Leaf(1),
    Fault::Spine,
];

impl Fault {
    async fn begin(self, rack: &mut Rack) {
        match self {
            Self::Link(leaf, port) => {
                rack.fabric.leaves[leaf].ip(&format!("link set {port} down"));
            }
            Self::Leaf(leaf) => cut(&mut rack.fabric.leaves[leaf], &format!("group {PORTS}")),
            Self::Spine => {
                rack.fabric.spine.ip("link set swp1 down");
                cut(&mut rack.fabric.spine, "swp2");
            }
        }
    }

    async fn end(self, rack: &mut Rack) {
        match self {
            Self::Link(leaf, port) => {
                rack.fabric.leaves[leaf].ip(&format!("link set {port} up"));
            }
            Self::Leaf(number) => {
                let leaf = &mut rack.fabric.leaves[number];
                leaf.restart().await;
                leaf.ip(&format!("link set group {PORTS} up"));
                reconcile(leaf, &rack.fabric.models[number]);
            }
            Self::Spine => {
                let spine = &mut rack.fabric.spine;
                spine.restart().await;
                spine.ip("link set swp1 up");
                spine.ip("link set swp2 up");
                reconcile(spine, &underlay(1, &["swp1", "swp2"]));
            }
        }
    }
}

fn cut(switch: &mut Switch, ports: &str) {
    switch.ip(&format!("link set {ports} down"));
    switch.crash();
}

#[tokio::test]
async fn traffic_survives_every_single_fault() {
    if !super::is_guest() {
        return;
    }
    let mut rack = Rack::start("ft").await;
    let streams = [
        ("ar", "as"),
        ("as", "ar"),
        ("a1", "a2"),
        ("ar", "a1"),
        ("b1", "b2"),
    ]
    .map(|(from, to)| Stream::start(rack.machine(from), rack.machine(to)));
    wait(&streams, &streams.each_ref().map(|_| 0), DEADLINE);
    println!("loss in ms: during the fault, and after its end");
    let mut broken = Vec::new();
    for fault in FAULTS {
        let begun = streams.each_ref().map(Stream::now);
        fault.begin(&mut rack).await;
        wait(&streams, &begun, OUTAGE);
        let during: Vec<bool> = streams
            .iter()
            .zip(begun)
            .map(|(stream, since)| stream.works(since))
            .collect();
        let restored = streams.each_ref().map(Stream::now);
        fault.end(&mut rack).await;
        let is_back = wait(&streams, &restored, 2 * DEADLINE);
        for (index, stream) in streams.iter().enumerate() {
            let (from, to) = (begun[index], restored[index]);
            let lost = stream.loss(from, to).as_millis();
            let after = stream.loss(to, stream.now().saturating_sub(20)).as_millis();
            let way = if during[index] { "" } else { " (no other way)" };
            println!("{fault:?} {}: {lost}{way}, {after}", stream.name);
            // A fault of a leaf or of its links leaves the other leaf's.
            if !during[index] && index < 2 {
                broken.push(format!("{fault:?}: {} found no other way", stream.name));
            }
        }
        if !is_back {
            rack.fabric.show();
            broken.push(format!("{fault:?}: not all traffic came back"));
            break;
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Waits until every stream works, or the time is over.
fn wait(streams: &[Stream], since: &[u32], limit: Duration) -> bool {
    let until = Instant::now() + limit;
    loop {
        let mut states = streams.iter().zip(since);
        if states.all(|(stream, since)| stream.works(*since)) {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        // Not a loop without pause: it would take a processor from the switches.
        std::thread::park_timeout(Duration::from_millis(50));
    }
}
