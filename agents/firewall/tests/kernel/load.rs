//! Rule changes under load: nothing leaks, nothing that is allowed is lost.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crate::namespace::can_run;
use crate::site::{INSIDE, OUTSIDE, Site, table, udp, uninterrupted};

/// Changes while packets flow.
const CHANGES: usize = 1000;

fn rest(step: usize) -> String {
    let deny = "      - {name: no-4001, action: drop, ports: [{protocol: UDP, port: 4001}]}\n";
    // Operator rules come and go around the one that denies, and tenant rules of other shapes.
    let rule = |name: &str, action: &str, cidr: &str| {
        format!("      - {{name: {name}, action: {action}, to: [{{cidr: {cidr}}}]}}\n")
    };
    let [accept, drop] = [
        rule("first", "accept", "192.0.2.0/24"),
        rule("last", "drop", "192.0.2.0/25"),
    ];
    let operator = match step % 4 {
        0 => format!("      rules:\n{deny}"),
        1 => format!("      rules:\n{accept}{deny}"),
        2 => format!("      rules:\n{deny}{drop}"),
        // The rule that denies moves to the map of another layer.
        _ => format!("      rules:\n{drop}{accept}{deny}"),
    };
    let port = 5000 + step;
    format!(
        "{operator}    cwnp:
      egress:
      - {{name: pass, to: [{{cidr: 203.0.113.2/32}}], ports: [{{protocol: UDP, port: 4000}}]}}
      - {{name: wide, to: [{{cidr: 203.0.113.0/24}}], ports: [{{protocol: UDP, port: 4001}}]}}
      - {{name: changes, to: [{{cidr: 198.51.100.0/2{}}}], ports: [{{port: {port}}}]}}
",
        4 + step % 4
    )
}

/// Sends from ever new ports, so that each datagram is a new flow; returns how many were sent.
fn send_new_flows(site: &Site, port: u16, stop: &AtomicBool, sent: &AtomicU64) {
    site.inside.inside(|| {
        let target = format!("{OUTSIDE}:{port}");
        while !stop.load(Ordering::Relaxed) {
            let socket = UdpSocket::bind((INSIDE, 0)).unwrap();
            socket.send_to(b"x", &target).unwrap();
            sent.fetch_add(1, Ordering::Relaxed);
        }
    });
}

fn count(socket: &UdpSocket, stop: &AtomicBool) -> u64 {
    let mut count = 0;
    loop {
        match uninterrupted(|| socket.recv_from(&mut [0; 16])) {
            Ok(_) => count += 1,
            Err(_) if stop.load(Ordering::Relaxed) => return count,
            Err(_) => {}
        }
    }
}

#[test]
fn nothing_leaks_while_rules_change() {
    if !can_run() {
        return;
    }
    let site = Site::new("load");
    let denied = udp(&site.outside, OUTSIDE, 4001);
    let allowed = udp(&site.outside, OUTSIDE, 4000);
    let tables: Vec<_> = (0..12).map(|step| table(&rest(step))).collect();
    site.apply(&rest(0));
    let (stop, sent, tried) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let (leaked, arrived, took) = std::thread::scope(|scope| {
        scope.spawn(|| send_new_flows(&site, 4000, &stop, &sent));
        scope.spawn(|| send_new_flows(&site, 4001, &stop, &tried));
        let leaked = scope.spawn(|| count(&denied, &stop));
        let arrived = scope.spawn(|| count(&allowed, &stop));
        let begin = Instant::now();
        site.with_kernel(|kernel| {
            for step in 0..CHANGES {
                kernel.apply(&tables[step % tables.len()]).unwrap();
            }
        });
        let took = begin.elapsed();
        stop.store(true, Ordering::Relaxed);
        (leaked.join().unwrap(), arrived.join().unwrap(), took)
    });
    let (sent, tried) = (sent.into_inner(), tried.into_inner());
    println!(
        "{CHANGES} changes in {took:?}; {arrived} of {sent} allowed arrived, {leaked} of {tried} leaked"
    );
    assert_eq!(leaked, 0, "of {tried}");
    assert!(tried > 1000 && sent > 1000, "there was load");
    // Every packet is counted once, by its rule. A receiver that is too slow may lose some after it.
    let passed = site.counted("cwnp/egress/pass/0").packets;
    assert_eq!(passed, sent, "{arrived} arrived");
    assert_eq!(site.counted("firewall/rules/no-4001/0").packets, tried);
}
