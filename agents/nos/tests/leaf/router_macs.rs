//! Ways to another leaf that zebra loses.

use std::process::Command;
use std::time::Instant;

use nix::sys::signal::Signal;

use super::daemons::{DEADLINE, Switch};
use super::fabric::Fabric;
use super::hosts::{PORT, answer, assert_silent, reaches};
use super::switch::run_back_end;

/// The address of a host on the second leaf.
const HOST: &str = "10.2.0.1";

/// Checks that what zebra loses comes back: `host` is on the first leaf, and `other` on the second.
pub(crate) fn router_macs_are_kept(fabric: &Fabric, host: &str, other: &str) {
    let [first, second] = &fabric.leaves;
    return_while_zebra_waits(first, second, other);
    wait("zebra 8.4.4 keeps the neighbour", || {
        neighbour(first).is_none()
    });
    assert_silent(host, HOST, PORT);
    // It has never seen the neighbour, and knows the switch by another VRF.
    run_back_end(first);
    assert!(reaches(host, HOST, "a2"));
    return_while_zebra_waits(first, second, other);
    wait("the neighbour is gone", || neighbour(first).is_some());
    assert!(reaches(host, HOST, "a2"));
    entries_come_back(first, host);
}

/// A route of the second leaf goes and comes back before zebra of the first one reads of it: zebra
/// has the route, and loses its neighbour.
fn return_while_zebra_waits(first: &Switch, second: &Switch, other: &str) {
    let is_known = || {
        let command = format!("show bgp vrf Vrf27 ipv4 unicast {HOST}/32 json");
        let mut bgpd = Command::new("vtysh");
        let bgpd = bgpd.args(["-N", &first.name, "-d", "bgpd", "-c", &command]);
        String::from_utf8_lossy(&bgpd.output().unwrap().stdout).contains("paths")
    };
    assert!(is_known());
    first.signal_zebra(Signal::SIGSTOP);
    second.ip(&format!("neigh del {HOST} dev mmb272"));
    wait("the route stays", || !is_known());
    wait("the route is gone", || {
        answer(other, "10.2.0.254", PORT);
        is_known()
    });
    first.signal_zebra(Signal::SIGCONT);
}

/// The MAC address of the second leaf in the first one's VRF.
fn neighbour(first: &Switch) -> Option<String> {
    let shown = run(first, "ip", "neigh show 10.0.0.12 dev mmr27");
    let mut words = shown.split_whitespace();
    words.find(|word| *word == "lladdr")?;
    words.next().map(str::to_owned)
}

/// zebra removes the entry of a router MAC address that routes of one IP version still need.
fn entries_come_back(leaf: &Switch, host: &str) {
    let entry = || {
        let shown = run(leaf, "bridge", "fdb show dev mmx27");
        let mut lines = shown.lines().filter(|line| line.contains("dst 10.0.0.12"));
        let mac = lines.next()?.split(' ').next()?.to_owned();
        (mac != "00:00:00:00:00:00").then_some(mac)
    };
    for _ in 0..3 {
        let mac = entry().unwrap();
        run(leaf, "bridge", &format!("fdb del {mac} dev mmx27 master"));
        let of_tunnel = format!("fdb del {mac} dev mmx27 dst 10.0.0.12 self");
        run(leaf, "bridge", &of_tunnel);
        let removed = Instant::now();
        wait("the entry is gone", || entry().is_some());
        println!("{mac} is back after {:?}", removed.elapsed());
        assert!(reaches(host, HOST, "a2"));
    }
}

fn wait(otherwise: &str, mut is_done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_done() {
        assert!(began.elapsed() < DEADLINE, "{otherwise}");
    }
}

fn run(switch: &Switch, program: &str, command: &str) -> String {
    let mut program = Command::new(program);
    let program = program.args(["-n", &switch.name]).args(command.split(' '));
    let output = program.output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
