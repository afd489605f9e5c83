//! Kills at every moment of an update leave a program that starts.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use super::await_rules;
use super::releases::{Releases, agent};
use super::supervised::AgentHome;
use crate::namespace::can_run;
use crate::site::{Site, uninterrupted};

/// Kills, each a little later after the start.
const KILLS: u32 = 16;
/// Time between two moments.
const STEP: Duration = Duration::from_millis(300);

/// Waits until an agent has its rules in force.
fn await_ready(ready: &UnixDatagram, round: u32) {
    loop {
        let mut message = [0; 64];
        let length = uninterrupted(|| ready.recv(&mut message)).unwrap();
        match &message[..length] {
            b"READY=1" => return,
            other => assert_eq!(other, b"WATCHDOG=1", "round {round}"),
        }
    }
}

#[test]
fn a_kill_at_any_moment_leaves_a_program_that_starts() {
    if !can_run() {
        return;
    }
    let site = Site::new("updkill");
    let folder = tempfile::tempdir().unwrap();
    let releases = Releases::new(folder.path());
    let home = AgentHome::new(&site, folder.path());
    let url = releases.publish("new", "0.2.0", &agent(), |_| {});
    home.configure(&releases.config("0.2.0", &url, ""));
    let ready = home.listen();
    let mut versions = Vec::new();
    for round in 0..KILLS {
        let mut child = home.start();
        let until = Instant::now() + STEP * round;
        while Instant::now() < until && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Messages of that one.
        ready.set_nonblocking(true).unwrap();
        while uninterrupted(|| ready.recv(&mut [0; 64])).is_ok() {}
        ready.set_nonblocking(false).unwrap();

        let mut child = home.start();
        await_ready(&ready, round);
        let program = std::fs::read_link(format!("/proc/{}/exe", child.id())).unwrap();
        versions.push(program.starts_with(home.state()));
        child.kill().unwrap();
        child.wait().unwrap();
        // Kills of a trial count as its starts.
        home.update("retry");
    }
    println!("programs of the release, by the round: {versions:?}");
    await_rules(&site);
}
