//! Frames to everybody and to groups: they stay in the segment of their sender.

use std::time::Instant;

use super::daemons::DEADLINE;
use super::ear::mark;
use super::packets::send_frame;
use super::rack::{Machine, Rack};

/// Everybody, groups of IPv4 and IPv6, a solicited node (RFC 4291) and a host that does not exist.
const GROUPS: [[u8; 6]; 5] = [
    [0xff; 6],
    [0x01, 0, 0x5e, 0, 0, 0xfb],
    [0x33, 0x33, 0, 0, 0, 1],
    [0x33, 0x33, 0xff, 0, 0, 2],
    [2, 9, 9, 9, 9, 9],
];
const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 0x77];
/// `EtherType` for experiments (IEEE 802.3).
const EXPERIMENT: [u8; 2] = [0x88, 0xb5];
const ARP: [u8; 2] = [0x08, 0x06];

/// Sends to groups from every machine, and asks for hosts by ARP. Returns what arrived at another
/// tenant, and what did not arrive at a neighbour.
pub(crate) fn flooded(rack: &Rack) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut sent = Vec::new();
    let mut number = 70_000;
    for machine in &rack.machines {
        for group in GROUPS {
            number += 1;
            let payload = mark(number).into_bytes();
            send(machine, group, EXPERIMENT, &payload);
            sent.push((machine, number, format!("{group:02x?}")));
        }
        // The own network, another tenant's, the underlay.
        for target in [[10, 1, 0, 2], [10, 3, 0, 1], [10, 0, 0, 12]] {
            number += 1;
            send(machine, [0xff; 6], ARP, &request(target, &mark(number)));
            sent.push((machine, number, format!("ARP for {target:?}")));
        }
    }
    // Frames of one segment are in order: the last one shows that the others had their time.
    let last = mark(number + 1);
    let [sender, hearer] = ["a1", "a2"].map(|name| rack.machine(name));
    let until = Instant::now() + DEADLINE;
    while !hearer.ear.has(&last) {
        send(sender, [0xff; 6], EXPERIMENT, last.as_bytes());
        if Instant::now() > until {
            wrong.push("no frame to everybody arrives at a neighbour".to_owned());
            break;
        }
    }
    for (sender, number, what) in sent {
        let hearers = rack.machines.iter().filter(|m| m.name != sender.name);
        let hearers = hearers.filter(|machine| machine.ear.has(&mark(number)));
        let hearers: Vec<&str> = hearers.map(|machine| machine.name).collect();
        println!("{} to {what}: seen by {hearers:?}", sender.name);
        let is_other = |name: &&&str| !name.starts_with(sender.tenant());
        if let Some(other) = hearers.iter().find(is_other) {
            wrong.push(format!("{} to {what} was seen by {other}", sender.name));
        }
    }
    wrong
}

fn send(machine: &Machine, to: [u8; 6], kind: [u8; 2], payload: &[u8]) {
    let mut frame = [&to[..], &SENDER, &kind, payload].concat();
    frame.resize(60, 0);
    send_frame(&machine.namespace, machine.device(), &frame);
}

/// An ARP request (RFC 826) with a mark behind its end.
fn request(target: [u8; 4], mark: &str) -> Vec<u8> {
    let header = [0, 1, 8, 0, 6, 4, 0, 1];
    let sender = [10, 1, 0, 77];
    let nobody = [0; 6];
    [
        &header[..],
        &SENDER,
        &sender,
        &nobody,
        &target,
        mark.as_bytes(),
    ]
    .concat()
}
