//! A leaf is drained, loses its power for an upgrade, and comes back, while packets flow.

use std::time::{Duration, Instant};

use super::daemons::DEADLINE;
use super::faults::{LOSS_MAX, cut, heal, now, start_streams, wait};
use super::rack::{BONDED, Rack, read_ip};
use super::stream::Stream;
use super::switch::reconcile;

/// The leaf that is drained, and the cable to it.
const LEAF: usize = 0;
const CABLE: &str = "eth0";
/// Time without power, in which a packet that still took the way over the leaf would be missed.
const OUTAGE: Duration = Duration::from_secs(3);

/// Brings the leaf into service or out of it, as control's desired state does: routes become the
/// last resort, and the ports of bonds go down.
fn drain(rack: &mut Rack, is_draining: bool) {
    let model = &mut rack.fabric.models[LEAF];
    model.bgp.as_mut().unwrap().is_draining = is_draining;
    for (_, port, ..) in BONDED {
        model.ports.get_mut(port).unwrap().admin_up = !is_draining;
    }
    reconcile(&rack.fabric.leaves[LEAF], &rack.fabric.models[LEAF]);
}

/// Waits until no machine sends over the leaf.
fn wait_until_unused(rack: &Rack) {
    let until = Instant::now() + DEADLINE;
    loop {
        let routes = ["ar", "as", "br"].map(|name| {
            let namespace = &rack.machine(name).namespace;
            read_ip(namespace, "route show proto bgp")
        });
        let bonds = BONDED.map(|machine| {
            let namespace = &rack.machine(machine.0).namespace;
            read_ip(namespace, "-d link show bond0")
        });
        let is_unused = !routes.iter().any(|routes| routes.contains(CABLE));
        let is_moved = bonds.iter().all(|bond| bond.contains("active_slave eth1"));
        if is_unused && is_moved {
            return;
        }
        assert!(Instant::now() < until, "{routes:#?} {bonds:#?}");
        std::thread::park_timeout(Duration::from_millis(200));
    }
}

/// Prints the loss of every stream since its packet in `since`, and returns the largest.
fn loss(what: &str, streams: &[Stream], since: &[u32]) -> Duration {
    let losses = streams.iter().zip(since).map(|(stream, since)| {
        let lost = stream.loss(*since, stream.now().saturating_sub(20));
        println!("{what} {}: {} ms", stream.name, lost.as_millis());
        lost
    });
    losses.max().unwrap()
}

#[tokio::test]
async fn a_drained_leaf_may_go_without_a_packet_lost() {
    if !super::is_guest() {
        return;
    }
    let mut rack = Rack::start("dr").await;
    assert!(heal(&rack).await, "the rack is not whole");
    let streams = start_streams(&rack);
    assert!(wait(&streams, &vec![0; streams.len()], DEADLINE));

    let since = now(&streams);
    drain(&mut rack, true);
    wait_until_unused(&rack);
    assert!(wait(&streams, &now(&streams), DEADLINE));
    let draining = loss("draining", &streams, &since);

    let since = now(&streams);
    cut(&mut rack.fabric.leaves[LEAF]);
    std::thread::park_timeout(OUTAGE);
    assert!(wait(&streams, &now(&streams), DEADLINE));
    let gone = loss("without power", &streams, &since);

    let since = now(&streams);
    rack.fabric.leaves[LEAF].restart().await;
    reconcile(&rack.fabric.leaves[LEAF], &rack.fabric.models[LEAF]);
    drain(&mut rack, false);
    assert!(heal(&rack).await, "not everything came back");
    assert!(wait(&streams, &now(&streams), DEADLINE));
    let back = loss("back in service", &streams, &since);

    assert!(
        draining <= LOSS_MAX && back <= LOSS_MAX,
        "{draining:?}, {back:?}"
    );
    assert_eq!(gone, Duration::ZERO, "traffic was still on the leaf");
}
