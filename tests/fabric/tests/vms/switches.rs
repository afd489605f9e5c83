//! The test: its stages in their order, on one rack.

use std::time::Instant;

use super::machine::Networking;
use super::midway::{Cut, Mover, cuts};
use super::power::Power;
use super::site::Site;
use super::traffic::{STAYING, Traffic};
use super::{reboot, spine};

/// Machines that come and go.
const MOVING: [(u8, Networking); 2] = [(5, Networking::Routed), (6, Networking::Bridged)];
/// Losses of power while each of them comes, and while it goes.
const CUTS: [[Option<Cut>; 2]; 2] = [
    [Some(Cut { leaf: 1, at: 2 }), None],
    [None, Some(Cut { leaf: 0, at: 2 })],
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switches_come_back_from_a_loss_of_power() {
    if !tests_fabric::is_guest() {
        println!("SKIPPED: runs in the guests of ./dev fabric vms");
        return;
    }
    let began = Instant::now();
    let stage = |name: &str| println!("== {name} ({} s)", began.elapsed().as_secs());
    stage("two tenants with the same addresses");
    let power = Power::open();
    let mut site = Site::start().await;
    let [one, two, three, four] = STAYING.map(|(number, _, networking)| (number, networking));
    let deliver = |(number, networking)| site.deliver(number, networking);
    let offered = tokio::join!(
        deliver(one),
        deliver(two),
        deliver(three),
        deliver(four),
        deliver(MOVING[0]),
        deliver(MOVING[1]),
    );
    let moving = [offered.4, offered.5];
    let offered = [offered.0, offered.1, offered.2, offered.3];
    println!("{} machines are on offer", offered.len() + moving.len());
    let mut traffic = Traffic::start(&site, offered).await;
    stage("each leaf stops while control is away");
    reboot::without_control(&mut site, &power, &mut traffic).await;
    stage("ports move after control is back");
    let mut back = Vec::new();
    for (offered, tenant) in moving.into_iter().zip([0, 1]) {
        let mut mover = Mover::new(&offered, &traffic.targets);
        let rented = mover.rent(&site, &power, offered, tenant, None).await;
        back.push(mover.release(&site, &power, rented, None).await);
        traffic.crossed.append(&mut mover.crossed);
    }
    stage("the spine stops");
    spine::fails(&site, &power, &mut traffic).await;
    stage("a leaf loses its power while a port moves");
    for (offered, losses) in back.into_iter().zip(CUTS) {
        cuts(&site, &power, &mut traffic, offered, losses).await;
    }
    traffic.cross(&site).await;
    traffic.look("at the end");
    stage("end");
    site.times.print();
    assert!(traffic.crossed.is_empty(), "{:#?}", traffic.crossed);
    assert!(traffic.lost.is_empty(), "{:#?}", traffic.lost);
}
