//! A machine that bridges its two ports closes a loop over two leaves.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use agents_nos::SwitchModel;

use super::daemons::{Switch, ip};
use super::frames::PROBE;
use super::hosts::cable;
use super::leaf::{OWN, desired, is_available, nft, reconcile, sysctl, vni};
use super::tap::Tap;

/// Frames to everybody that a port may send at once, and in a second.
const BURST: u64 = 1000;
const RATE: u64 = 500;
/// Time for which frames are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// The desired state of a leaf whose segment floods to another one.
fn flooding(own: u8, other: u8) -> SwitchModel {
    let mut model = desired();
    let address = |number| IpAddr::from([10, 0, 0, number]);
    model.vtep = Some(address(own));
    let segment = model.segments.get_mut(&vni(OWN)).unwrap();
    segment.remotes.insert(address(other));
    model
}

/// Ports of the machine.
const PORTS: [&str; 2] = ["eth0", "eth1"];

/// The machine's namespace, which goes away with the value.
struct Loop(String);

impl Drop for Loop {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.0));
    }
}

impl Loop {
    fn new(leaves: &[Switch; 2]) -> Self {
        let name = format!("mmg{}-loop", std::process::id());
        ip(&format!("netns add {name}"));
        silence(&name);
        ip(&format!("-n {name} link add br0 type bridge"));
        ip(&format!("-n {name} link set br0 up"));
        for (leaf, port) in leaves.iter().zip(PORTS) {
            cable(leaf, "swp8", &name, port);
        }
        Self(name)
    }

    fn close(&self) {
        for port in PORTS {
            ip(&format!("-n {} link set {port} master br0", self.0));
        }
    }
}

/// Lets a namespace send nothing by itself.
fn silence(namespace: &str) {
    for scope in ["all", "default"] {
        sysctl(namespace, &format!("net.ipv6.conf.{scope}.disable_ipv6=1"));
    }
}

/// Copies that a host hears of a frame to everybody that was sent once. There are also multicasts that
/// kernels send by themselves.
fn heard(from: &Tap, hearer: &Tap) -> u64 {
    from.send(&[&[0xff; 6][..], &from.mac, &PROBE, &[0; 50]].concat());
    let until = Instant::now() + WINDOW;
    let mut count = 0;
    while Instant::now() < until {
        let frames = hearer.frames();
        count += frames.iter().filter(|f| f[12..14] == PROBE).count();
    }
    u64::try_from(count).unwrap()
}

#[tokio::test]
async fn a_frame_that_goes_around_does_so_at_a_bounded_rate() {
    if !is_available() {
        return;
    }
    let leaves = [
        Switch::start("loop1", &["swp5", "swp7"]).await,
        Switch::start("loop2", &["swp5", "swp7"]).await,
    ];
    cable(&leaves[0], "swp6", &leaves[1].name, "swp6");
    let [sender, hearer] = [(0, "l1"), (1, "l2")].map(|(at, name): (usize, &str)| {
        let tap = Tap::new(name, &leaves[at].name, "swp9");
        silence(&tap.name);
        tap
    });
    let machine = Loop::new(&leaves);
    for (leaf, (own, other)) in leaves.iter().zip([(11, 12), (12, 11)]) {
        reconcile(leaf, &flooding(own, other));
        leaf.ip("link set swp9 master mmb10 up");
        leaf.ip(&format!("addr add 192.0.2.{own}/24 dev swp6"));
        leaf.ip(&format!("route add 10.0.0.{other} via 192.0.2.{other}"));
    }
    machine.close();
    // Each way around enters each leaf by the machine's port.
    let most = 2 * (BURST + 2 * RATE * WINDOW.as_secs());
    let count = heard(&sender, &hearer);
    println!("with a filter: {count}");
    assert!((1..=most).contains(&count), "{count} of {most}");
    for leaf in &leaves {
        nft(leaf, "delete table bridge metalmesh");
    }
    // All frames: at this rate each crowds the others out, so that the sent one may be lost.
    let before = hearer.received();
    let copies = heard(&sender, &hearer);
    let count = hearer.received() - before;
    println!("without: {count}, {copies} of them copies");
    assert!(count > most, "{count}");
    drop(machine);
}
