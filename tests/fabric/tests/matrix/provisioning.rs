//! Machines without a tenant in a fabric with EVPN: each reaches the services at its leaf's uplink,
//! and no other machine.

use std::time::{Duration, Instant};

use agents_nos::model::{Mtu, Segment, Tunnel};
use agents_nos::{Membership, SwitchModel};

use super::daemons::{DEADLINE, ip};
use super::ear::{Ear, mark};
use super::fabric::Fabric;
use super::hosts::cable;
use super::models::{enter, vni};
use super::packets::send_frame;

const SEGMENT: u32 = 4000;
const SERVICES: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A machine, or the services.
struct Station {
    name: String,
    mac: [u8; 6],
    ear: Ear,
}

impl Station {
    fn send(&self, to: [u8; 6], from: [u8; 6], mark: &str) {
        // EtherType for experiments (IEEE 802.3).
        let mut frame = [&to[..], &from, &[0x88, 0xb5], mark.as_bytes()].concat();
        frame.resize(60, 0);
        send_frame(&self.name, "eth0", &frame);
    }

    /// Sends until the other has heard it. `false` if it never does.
    fn reaches(&self, other: &Self, number: usize, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while Instant::now() < until {
            self.send(other.mac, self.mac, &mark(number));
            std::thread::park_timeout(Duration::from_millis(50));
            if other.ear.has(&mark(number)) {
                return true;
            }
        }
        false
    }
}

/// Puts the ports of a leaf into the provisioning segment.
fn provision(model: &mut SwitchModel, tunnel: Tunnel) {
    let mut segment = Segment::new(Mtu::ETHERNET);
    segment.tunnel = tunnel;
    model.segments.insert(vni(SEGMENT), segment);
    for (port, is_private) in [("swp1", true), ("swp2", true), ("swp3", false)] {
        let place = Membership::Segment {
            vni: vni(SEGMENT),
            is_private,
        };
        enter(model, port, place, 1500);
    }
}

#[tokio::test]
async fn machines_without_a_tenant_meet_at_no_leaf() {
    if !super::is_guest() {
        return;
    }
    let mut fabric = Fabric::start("pv").await;
    let mut stations = Vec::new();
    for (leaf, number) in fabric.leaves.iter().zip(1_u8..) {
        for (port, last) in [("swp1", 1_u8), ("swp2", 2), ("swp3", 3)] {
            let name = format!("pv-{number}{last}");
            let mac = match last {
                3 => [2, 0, 0, 0, 0, number],
                _ => [2, 0, 0, 0, number, 0x10 + last],
            };
            ip(&format!("netns add {name}"));
            cable(leaf, port, &name, "eth0");
            let text = mac.map(|byte| format!("{byte:02x}")).join(":");
            ip(&format!("-n {name} link set eth0 address {text}"));
            let ear = Ear::open(&name);
            stations.push(Station { name, mac, ear });
        }
    }
    let [m11, m12, services, m21, _m22, _other] = stations.as_slice() else {
        panic!("six stations");
    };
    assert_eq!(services.mac, SERVICES);
    // The probes are good: with tunnels from every leaf to every other, machines meet.
    for model in &mut fabric.models {
        provision(model, Tunnel::Open);
    }
    fabric.reconcile();
    if !m11.reaches(m21, 1, 2 * DEADLINE) {
        fabric.show();
        panic!("the probe does not cross an open segment");
    }
    for model in &mut fabric.models {
        provision(model, Tunnel::Absent);
    }
    fabric.reconcile();
    assert!(m11.reaches(services, 2, DEADLINE), "the services");
    assert!(services.reaches(m12, 3, DEADLINE), "and back");
    let machines: Vec<&Station> = stations
        .iter()
        .filter(|station| station.mac[4] != 0)
        .collect();
    let groups = [
        [0xff; 6],
        [0x01, 0, 0x5e, 0, 0, 0xfb],
        [0x33, 0x33, 0, 0, 0, 1],
        [0x33, 0x33, 0xff, 0, 0, 2],
        [2, 9, 9, 9, 9, 9],
    ];
    let mut number = 1000;
    let mut sent = Vec::new();
    for sender in &machines {
        for source in [sender.mac, SERVICES, m21.mac, m12.mac] {
            for target in machines.iter().map(|other| other.mac).chain(groups) {
                number += 1;
                sender.send(target, source, &mark(number));
                sent.push((number, sender.name.clone(), target, source));
            }
        }
    }
    services.send([0xff; 6], SERVICES, &mark(4));
    assert!(services.reaches(m11, 5, DEADLINE), "after the probes");
    std::thread::park_timeout(Duration::from_secs(1));
    let mut crossed = Vec::new();
    for (number, sender, target, source) in &sent {
        let hearers = machines.iter().filter(|hearer| hearer.name != *sender);
        for hearer in hearers.filter(|hearer| hearer.ear.has(&mark(*number))) {
            crossed.push(format!(
                "{} hears {sender} as {source:02x?} to {target:02x?}",
                hearer.name
            ));
        }
    }
    println!("{} probes, crossed: {crossed:#?}", sent.len());
    assert!(crossed.is_empty(), "{crossed:#?}");
}
