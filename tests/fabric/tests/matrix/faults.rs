//! Links, leaves and spines fail one by one and come back, while packets flow.

use std::time::{Duration, Instant};

use super::daemons::{DEADLINE, Switch};
use super::fabric::spine_models;
use super::rack::{PORTS, Rack, read_ip};
use super::stream::Stream;
use super::switch::reconcile;

/// Longest time that a fault is waited for traffic to find another way.
const OUTAGE: Duration = Duration::from_secs(8);
/// Time without a link that comes back at once.
const FLAP: Duration = Duration::from_millis(100);
/// Most that a running tenant may lose when a part fails, and when it comes back.
pub(super) const LOSS_MAX: Duration = Duration::from_secs(1);

/// A part of the fabric that fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// A port of a leaf: a cable.
    Link(usize, &'static str),
    /// The same for a tenth of a second.
    Flap(usize, &'static str),
    /// A leaf without power: no carrier on any port, no daemons, nothing in its kernel.
    Leaf(usize),
    /// A spine without power.
    Spine(usize),
    /// The agent of a leaf, which starts again.
    Agent(usize),
    /// bgpd of a leaf alone. Ports stay up.
    Bgpd(usize),
    /// FRR of a leaf. Ports and the kernel's routes stay.
    Frr(usize),
}

const FAULTS: [Fault; 14] = [
    Fault::Link(0, "swp3"),
    Fault::Link(1, "swp4"),
    Fault::Link(0, "swp7"),
    Fault::Link(1, "swp7"),
    Fault::Link(0, "swp31"),
    Fault::Link(1, "swp32"),
    Fault::Flap(0, "swp32"),
    Fault::Spine(0),
    Fault::Spine(1),
    Fault::Leaf(0),
    Fault::Leaf(1),
    Fault::Agent(0),
    Fault::Bgpd(0),
    Fault::Frr(1),
];

/// Streams: from, to, and the cable that they leave by. Machines with BGP send over both.
const STREAMS: [(&str, &str, Option<&str>); 8] = [
    ("ar", "as", Some("eth0")),
    ("ar", "as", Some("eth1")),
    ("as", "ar", Some("eth0")),
    ("as", "ar", Some("eth1")),
    ("ar", "a1", None),
    ("ar", "a2", None),
    ("a1", "a2", None),
    ("a1", "ar", None),
];

impl Fault {
    /// The part of the promise that "either leaf, either link, or a spine may fail".
    fn is_bounded(self) -> bool {
        !matches!(self, Self::Bgpd(_) | Self::Frr(_))
    }

    async fn begin(self, rack: &mut Rack) {
        let fabric = &mut rack.fabric;
        match self {
            Self::Link(leaf, port) => fabric.leaves[leaf].ip(&format!("link set {port} down")),
            Self::Flap(leaf, port) => {
                fabric.leaves[leaf].ip(&format!("link set {port} down"));
                std::thread::park_timeout(FLAP);
                fabric.leaves[leaf].ip(&format!("link set {port} up"));
            }
            Self::Leaf(leaf) => cut(&mut fabric.leaves[leaf]),
            Self::Spine(spine) => cut(&mut fabric.spines[spine]),
            Self::Agent(_) => {}
            Self::Bgpd(leaf) => fabric.leaves[leaf].crash_bgpd().await,
            Self::Frr(leaf) => fabric.leaves[leaf].crash(),
        }
    }

    async fn end(self, rack: &mut Rack) {
        let fabric = &mut rack.fabric;
        match self {
            Self::Link(leaf, port) => fabric.leaves[leaf].ip(&format!("link set {port} up")),
            Self::Flap(..) => {}
            Self::Spine(number) => {
                let spine = &mut fabric.spines[number];
                spine.restart().await;
                reconcile(spine, &spine_models()[number]);
            }
            Self::Leaf(number) | Self::Frr(number) => {
                let leaf = &mut fabric.leaves[number];
                leaf.restart().await;
                reconcile(leaf, &fabric.models[number]);
            }
            Self::Bgpd(number) => {
                let leaf = &mut fabric.leaves[number];
                leaf.restart_bgpd().await;
                reconcile(leaf, &fabric.models[number]);
            }
            Self::Agent(number) => reconcile(&fabric.leaves[number], &fabric.models[number]),
        }
    }
}

/// Starts the streams of the table.
pub(super) fn start_streams(rack: &Rack) -> Vec<Stream> {
    let streams = STREAMS.into_iter().zip(0..);
    let streams = streams.map(|((from, to, cable), number)| {
        Stream::start(
            number,
            &rack.machine(from).end(),
            &rack.machine(to).end(),
            cable,
        )
    });
    streams.collect()
}

/// Takes the power from a switch: what its kernel has is gone as well.
pub(super) fn cut(switch: &mut Switch) {
    switch.ip(&format!("link set group {PORTS} down"));
    switch.crash();
    let links = read_ip(&switch.name, "-br link");
    let names = links
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|name| name.starts_with("mm") || name.starts_with("Vrf")) {
        switch.ip(&format!("link del {name}"));
    }
    switch.ip("addr flush dev lo scope global");
}

#[tokio::test]
async fn traffic_survives_every_single_fault() {
    if !super::is_guest() {
        return;
    }
    let mut rack = Rack::start("ft").await;
    assert!(heal(&rack).await, "the rack is not whole");
    let streams = start_streams(&rack);
    wait(&streams, &[0; STREAMS.len()], DEADLINE);
    println!("loss in ms: during the fault, and after its end");
    let mut broken = Vec::new();
    for fault in FAULTS {
        broken.extend(run(fault, &mut rack, &streams).await);
        if !heal(&rack).await {
            rack.show();
            broken.push(format!("{fault:?}: not everything came back"));
            break;
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Breaks a part and mends it, prints what was lost, and returns what was too much.
async fn run(fault: Fault, rack: &mut Rack, streams: &[Stream]) -> Vec<String> {
    let begun = now(streams);
    fault.begin(rack).await;
    wait(streams, &begun, OUTAGE);
    let restored = now(streams);
    fault.end(rack).await;
    let is_whole = heal(rack).await;
    let is_back = is_whole && wait(streams, &now(streams), DEADLINE);
    let mut missed = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        let end = stream.now().saturating_sub(20);
        let during = stream.loss(begun[index], restored[index]);
        let after = stream.loss(restored[index], end);
        let row = format!(
            "{fault:?} {}: {} / {}",
            stream.name,
            during.as_millis(),
            after.as_millis()
        );
        println!("{row}");
        if fault.is_bounded() && during.max(after) > LOSS_MAX {
            missed.push(row);
        }
    }
    if !is_back {
        rack.show();
        missed.push(format!("{fault:?}: not all traffic came back"));
    }
    missed
}

/// The next packet of every stream.
pub(super) fn now(streams: &[Stream]) -> Vec<u32> {
    streams.iter().map(Stream::now).collect()
}

/// Waits until every way works again. `false` if they do not.
pub(super) async fn heal(rack: &Rack) -> bool {
    let until = Instant::now() + 2 * DEADLINE;
    while !rack.is_whole().await {
        if Instant::now() > until {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(200));
    }
    true
}

/// Waits until every stream works, or the time is over.
pub(super) fn wait(streams: &[Stream], since: &[u32], limit: Duration) -> bool {
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
