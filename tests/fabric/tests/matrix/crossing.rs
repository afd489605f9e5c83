//! The packet matrix: each tenant reaches its own machines and nobody else.

use std::collections::BTreeMap;
use std::thread;

use super::daemons::ip;
use super::ear::mark;
use super::floods::flooded;
use super::packets::{Protocol, datagram, forge};
use super::rack::{Machine, Rack};

const TARGETS: [&str; 13] = [
    "10.1.0.1",
    "10.1.0.2",
    "10.3.0.1",
    "10.3.0.2",
    "10.1.0.254",
    "2001:db8:1::1",
    "2001:db8:1::2",
    "2001:db8:3::1",
    "2001:db8:3::2",
    "2001:db8:1::fe",
    "10.0.0.11",
    "10.0.0.12",
    "10.0.0.1",
];

/// Senders' addresses that no machine has, and whom they speak to.
const SPOOFED: [(&str, [&str; 3]); 4] = [
    ("10.9.9.9", ["10.1.0.2", "10.3.0.1", "10.0.0.12"]),
    ("10.0.0.11", ["10.1.0.2", "10.3.0.1", "10.0.0.12"]),
    ("10.0.0.1", ["10.1.0.2", "10.3.0.1", "10.0.0.12"]),
    (
        "2001:db8:9::9",
        ["2001:db8:1::2", "2001:db8:3::1", "2001:db8:1::fe"],
    ),
];

/// A cell of the matrix.
struct Cell {
    answered: Option<String>,
    mark: String,
}

#[tokio::test]
async fn a_tenant_reaches_its_own_machines_and_nobody_else() {
    if !super::is_guest() {
        return;
    }
    let rack = &Rack::start("mx").await;
    let mut wrong = Vec::new();
    let rows = thread::scope(|scope| {
        let rows: Vec<_> = rack
            .machines
            .iter()
            .enumerate()
            .map(|(row, machine)| scope.spawn(move || probe_all(rack, row, machine)))
            .collect();
        rows.into_iter()
            .map(|row| row.join().unwrap())
            .collect::<Vec<_>>()
    });
    println!("who answered whom, and on which machines the packets were seen");
    for (machine, row) in rack.machines.iter().zip(&rows) {
        for ((target, protocol), cell) in row {
            let seen = seen_by(rack, machine, &cell.mark);
            let protocol = &protocol.to_string()[..];
            let answered = cell.answered.as_deref();
            println!(
                "{:<3} {protocol:<5} {target:<14} {:<8} seen by {seen:?}",
                machine.name,
                answered.unwrap_or("-"),
            );
            wrong.extend(judge(rack, machine, target, protocol, answered));
            wrong.extend(crossed(machine, &seen, &format!("{protocol} to {target}")));
        }
    }
    wrong.extend(spoofed(rack));
    wrong.extend(forged(rack));
    wrong.extend(flooded(rack));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn probe_all(rack: &Rack, row: usize, machine: &Machine) -> BTreeMap<(&'static str, String), Cell> {
    let mut cells = BTreeMap::new();
    let mut number = (row + 1) * 1000;
    for target in TARGETS {
        for protocol in Protocol::ALL {
            number += 1;
            let mark = mark(number);
            let answered = protocol.probe(&machine.namespace, target, &mark);
            if answered.is_none() && owner(rack, machine, target).is_some() {
                // What is shown at the end may be over by then.
                println!("{} lost {target}", machine.name);
                rack.show();
            }
            cells.insert((target, format!("{protocol:?}")), Cell { answered, mark });
        }
    }
    cells
}

/// The machines other than the sender that have seen a mark.
fn seen_by<'a>(rack: &'a Rack, sender: &Machine, mark: &str) -> Vec<&'a str> {
    let others = rack.machines.iter().filter(|m| m.name != sender.name);
    others
        .filter(|machine| machine.ear.has(mark))
        .map(|machine| machine.name)
        .collect()
}

/// A packet that another tenant has seen.
fn crossed(sender: &Machine, seen: &[&str], packet: &str) -> Option<String> {
    let is_other = |name: &&str| !name.starts_with(sender.tenant());
    let other = seen.iter().find(|name| is_other(name))?;
    Some(format!("{}: {packet} was seen by {other}", sender.name))
}

/// The machine of the sender's tenant that has an address.
fn owner<'a>(rack: &'a Rack, sender: &Machine, target: &str) -> Option<&'a Machine> {
    let mut own = rack.machines.iter();
    own.find(|m| m.tenant() == sender.tenant() && m.addresses().iter().any(|a| a == target))
}

/// A wrong answer.
fn judge(
    rack: &Rack,
    sender: &Machine,
    target: &str,
    protocol: &str,
    answered: Option<&str>,
) -> Option<String> {
    let is_gateway = ["10.1.0.254", "2001:db8:1::fe"].contains(&target);
    let is_right = match (owner(rack, sender, target), answered) {
        (Some(owner), Some(word)) => word == owner.name || (protocol == "Icmp" && word == "?"),
        (Some(_), None) => false,
        (None, Some(word)) => is_gateway && (word == "?" || word == "refused"),
        (None, None) => true,
    };
    (!is_right).then(|| format!("{}: {protocol} to {target}: {answered:?}", sender.name))
}

/// Packets with another sender's address stay with the tenant.
fn spoofed(rack: &Rack) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut number = 90_000;
    for name in ["a1", "b1", "ar"] {
        let sender = rack.machine(name);
        for (source, targets) in SPOOFED {
            let is_v6 = source.contains(':');
            let (length, nodad) = if is_v6 { (128, " nodad") } else { (32, "") };
            let namespace = &sender.namespace;
            let address = format!("{source}/{length} dev lo");
            ip(&format!("-n {namespace} addr add {address}{nodad}"));
            for target in targets {
                number += 1;
                let mark = mark(number);
                let answered = datagram(namespace, Some(source), target, 7, mark.as_bytes());
                let seen = seen_by(rack, sender, &mark);
                println!("{name} as {source} to {target}: {answered:?}, seen by {seen:?}");
                let packet = format!("from {source} to {target}");
                wrong.extend(crossed(sender, &seen, &packet));
            }
            ip(&format!("-n {namespace} addr del {address}"));
        }
    }
    wrong
}

/// VXLAN packets of a machine are not unpacked; the same ones from the spine are, which shows that
/// they are well made.
fn forged(rack: &Rack) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut number = 80_000;
    for name in ["a1", "ar"] {
        let sender = rack.machine(name);
        for target in ["10.1.0.254", "10.0.0.11", "10.0.0.12"] {
            for vni in [271, 281, 27, 28] {
                number += 1;
                forge(&sender.namespace, target, vni, &mark(number));
                let seen = seen_by(rack, sender, &mark(number));
                println!("{name} forges VNI {vni} to {target}: seen by {seen:?}");
                wrong.extend(crossed(sender, &seen, &format!("VNI {vni} to {target}")));
            }
        }
    }
    let control = mark(number + 1);
    forge(&rack.fabric.spines[0].name, "10.0.0.11", 281, &control);
    let seen: Vec<&str> = rack
        .machines
        .iter()
        .filter(|machine| machine.ear.has(&control))
        .map(|machine| machine.name)
        .collect();
    println!("the spine forges VNI 281 to 10.0.0.11: seen by {seen:?}");
    if !seen.iter().any(|name| name.starts_with('b')) {
        wrong.push("the forged packet is not well made: it does not work from the spine".into());
    }
    wrong
}
