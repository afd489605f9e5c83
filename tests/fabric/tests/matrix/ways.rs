//! Ways to the other leaf that zebra loses.

use std::process::Command;
use std::time::Instant;

use nix::sys::signal::Signal;

use super::daemons::{DEADLINE, Switch};
use super::hosts::reaches;
use super::rack::{Rack, read_ip};

/// The bonded machine whose first cable is the first leaf's, and its address.
const MACHINE: (&str, &str) = ("a1", "10.1.0.1");

/// The agent puts the neighbour and the entry back that zebra has lost. Here it has not noticed.
#[tokio::test]
async fn the_way_to_a_switch_comes_back_without_zebra() {
    if !super::is_guest() {
        return;
    }
    let rack = Rack::start("wy").await;
    let second = &rack.fabric.leaves[1];
    let before = neighbour(second);
    let mac = before.split("lladdr ").nth(1).unwrap();
    let mac = mac.split(' ').next().unwrap();
    second.signal_zebra(Signal::SIGSTOP);
    second.ip("neigh del 10.0.0.11 dev mmr27");
    for place in ["master", "dst 10.0.0.11 self"] {
        let mut bridge = Command::new("bridge");
        let bridge = bridge.args(["-n", &second.name, "fdb", "del", mac, "dev", "mmx27"]);
        assert!(bridge.args(place.split(' ')).status().unwrap().success());
    }
    let lost = Instant::now();
    wait("the neighbour is gone", || neighbour(second).contains(mac));
    println!("back after {:?}: {}", lost.elapsed(), neighbour(second));
    let ar = &rack.machine("ar").namespace;
    // By either leaf, as the connection's port decides.
    for _ in 0..20 {
        if !reaches(ar, MACHINE.1, MACHINE.0) {
            rack.show();
            panic!("{} is lost behind {}", MACHINE.0, second.name);
        }
    }
    second.signal_zebra(Signal::SIGCONT);
    rack.converge();
}

/// A leaf asks for a machine that it has forgotten, and that says nothing by itself.
#[tokio::test]
async fn a_forgotten_machine_is_asked_for() {
    if !super::is_guest() {
        return;
    }
    let rack = Rack::start("fo").await;
    let (machine, ar) = (rack.machine(MACHINE.0), &rack.machine("ar").namespace);
    for address in machine.addresses() {
        for leaf in &rack.fabric.leaves {
            // One that is not there is no error.
            read_ip(&leaf.name, &format!("neigh del {address} dev mmb271"));
        }
        let forgotten = Instant::now();
        if !reaches(ar, &address, MACHINE.0) {
            rack.show();
            panic!("{address} is not found again");
        }
        println!("{address} is found after {:?}", forgotten.elapsed());
    }
}

/// The first leaf, as the second one's VRF knows it. `proto` says who has set it.
fn neighbour(second: &Switch) -> String {
    read_ip(&second.name, "neigh show 10.0.0.11 dev mmr27")
}

fn wait(otherwise: &str, mut is_done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_done() {
        assert!(began.elapsed() < DEADLINE, "{otherwise}");
    }
}
