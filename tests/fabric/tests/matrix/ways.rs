//! Ways to the other leaf that zebra loses.

use std::process::Command;
use std::time::Instant;

use nix::sys::signal::Signal;

use super::daemons::{DEADLINE, Switch};
use super::hosts::{PORT, answer, reaches};
use super::rack::{Rack, read_ip};

/// The bonded machine whose first cable is the first leaf's, and its address.
const MACHINE: (&str, &str) = ("a1", "10.1.0.1");

#[tokio::test]
async fn a_route_that_comes_back_at_once_has_its_neighbour() {
    if !super::is_guest() {
        return;
    }
    let rack = Rack::start("wy").await;
    let second = &rack.fabric.leaves[1];
    let before = neighbour(second);
    assert!(before.contains("lladdr"), "{before}");
    for _ in 0..3 {
        return_while_zebra_waits(&rack);
        let returned = Instant::now();
        let ar = &rack.machine("ar").namespace;
        // By either leaf, as the connection's port decides.
        for _ in 0..20 {
            if !reaches(ar, MACHINE.1, MACHINE.0) {
                rack.show();
                panic!("{} is lost behind {}", MACHINE.0, second.name);
            }
        }
        println!("back after {:?}: {}", returned.elapsed(), neighbour(second));
    }
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

/// The machine's route goes and comes back before zebra of the second leaf reads of it. zebra 8.4.4
/// then has the route, and may have lost its neighbour.
fn return_while_zebra_waits(rack: &Rack) {
    let [first, second] = &rack.fabric.leaves;
    let is_known = || {
        let command = format!("show bgp vrf Vrf27 ipv4 unicast {}/32 json", MACHINE.1);
        let mut bgpd = Command::new("vtysh");
        // vtysh would wait for zebra as well.
        let bgpd = bgpd.args(["-N", &second.name, "-d", "bgpd", "-c", &command]);
        String::from_utf8_lossy(&bgpd.output().unwrap().stdout).contains("paths")
    };
    wait("the route does not come", is_known);
    second.signal_zebra(Signal::SIGSTOP);
    first.ip(&format!("neigh del {} dev mmb271", MACHINE.1));
    wait("the route stays", || !is_known());
    wait("the route does not come back", || {
        answer(&rack.machine(MACHINE.0).namespace, "10.1.0.254", PORT);
        is_known()
    });
    second.signal_zebra(Signal::SIGCONT);
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
