//! A leaf that loses everything but its agent's directory while control is away comes back as it
//! was.

use std::collections::BTreeMap;

use super::hosts::{PORT, answer, listen};
use super::leaf::Leaf;
use super::machine::Networking;
use super::site::Site;
use super::stages::Rented;
use super::wait::found;

/// Number, tenant and network of the machines.
const MACHINES: [(u8, usize, Networking); 4] = [
    (1, 0, Networking::Routed),
    (2, 1, Networking::Routed),
    (3, 0, Networking::Bridged),
    (4, 1, Networking::Bridged),
];

/// The places of all ports, and FRR's configuration in the order of its text. The numbers of
/// entries of prefix lists follow the order in which they came.
fn state(leaf: &Leaf) -> (BTreeMap<u8, String>, Vec<String>) {
    let places = MACHINES.map(|(number, ..)| (number, leaf.master(&format!("swp{number}"))));
    let config = leaf.switch.vtysh("show running-config bgpd");
    let line = |line: &str| match line.split_once(" seq ") {
        Some((list, entry)) => format!("{list} {}", entry.split_once(' ').unwrap().1),
        None => line.to_owned(),
    };
    let mut lines: Vec<String> = config.lines().map(line).collect();
    lines.sort();
    (places.into(), lines)
}

/// Waits until a machine gets an answer at the address of another of its tenant, of that one.
async fn reaches(site: &Site, from: &Rented, to: &Rented) {
    let word = format!("m{}", to.machine.number);
    let reached = found(async || {
        let got = answer(from.machine.namespace(), &to.system.address, PORT)?;
        assert_eq!(got, word, "m{}", from.machine.number);
        Some(())
    });
    if reached.await.is_none() {
        site.show().await;
        panic!("m{} does not reach {word}", from.machine.number);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leaf_that_lost_everything_comes_back_without_control() {
    if !super::is_guest() {
        return;
    }
    let mut site = Site::start().await;
    let mut rented = Vec::new();
    for (number, tenant, networking) in MACHINES {
        let offered = site.deliver(number, networking).await;
        let machine = site.rent(offered, tenant).await;
        let word = format!("m{number}");
        listen(machine.machine.namespace(), &word);
        rented.push(machine);
    }
    let pairs = [(0, 2), (2, 0), (1, 3), (3, 1)];
    for (from, to) in pairs {
        reaches(&site, &rented[from], &rented[to]).await;
    }
    let has_sessions = found(async || {
        let config = site.leaves[1].switch.vtysh("show running-config bgpd");
        let mut ports = ["swp1", "swp2"].iter();
        let is_there =
            ports.all(|port| config.contains(&format!("{port} route-map MM-{port}-out")));
        is_there.then_some(())
    });
    assert!(
        has_sessions.await.is_some(),
        "sessions with the routed machines"
    );
    let before = state(&site.leaves[1]);
    println!("before: {:?}", before.0);
    site.control.kill();
    site.leaves[1].lose_everything().await;
    let lost = state(&site.leaves[1]);
    assert_ne!(lost, before);
    site.leaves[1].begin();
    let began = std::time::Instant::now();
    let is_back = found(async || (state(&site.leaves[1]) == before).then_some(()));
    if is_back.await.is_none() {
        let after = state(&site.leaves[1]);
        println!("before: {before:?}\nafter: {after:?}");
        site.leaves[1].show();
        panic!("the leaf is not as it was");
    }
    println!("as it was after {:?}", began.elapsed());
    // Through the leaf that came back alone.
    for (number, ..) in MACHINES {
        site.leaves[0]
            .switch
            .ip(&format!("link set swp{number} down"));
    }
    for (from, to) in pairs {
        reaches(&site, &rented[from], &rented[to]).await;
        println!(
            "m{} reaches m{}",
            rented[from].machine.number, rented[to].machine.number
        );
    }
}
