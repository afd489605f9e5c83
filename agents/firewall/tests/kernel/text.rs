//! The text for others, loaded by nft.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use agents_firewall::explain::{Question, Resolved, explain};
use agents_firewall::render::render;
use agents_firewall::rule::{NameSelector, RuleSet};

use crate::namespace::can_run;
use crate::site::{
    INSIDE, INSIDE6, OUTSIDE, OUTSIDE6, Site, answers_ping, arrives, rules, udp, uninterrupted,
};

/// Longest wait for a datagram that must pass.
const DEADLINE: Duration = Duration::from_secs(20);
/// A policy with names has its destination here.
const NAME: &str = "n7.example.com";

fn load(site: &Site, rules: &RuleSet) {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), render(rules)).unwrap();
    let load = format!("nft -f {}", file.path().display());
    site.router.output(&load);
}

#[test]
fn nft_loads_the_text_and_the_agent_takes_over() {
    if !can_run() {
        return;
    }
    let site = Site::new("text");
    for address in ["203.0.113.50", "203.0.113.51"] {
        site.router.ip(&format!("addr add {address}/32 dev vrf104"));
    }
    let rest = "
      rateLimits: [{networkID: internet, rate: 100}]
      egressRules: [{networkID: internet, ips: [203.0.113.50, 203.0.113.51, 'fd00:b::50']}]
      rules:
      - {name: seen, action: log, ports: [{protocol: SCTP, port: 1, endPort: 9}]}
      - {name: ping, action: accept, ports: [{protocol: ICMP}, {protocol: ICMPv6, icmpType: 128}]}
    cwnp:
      egress: [{name: dns, to: [{cidr: 203.0.113.0/24, except: [203.0.113.9/32]}], ports: [{protocol: UDP, port: 53}], log: true}]
";
    load(&site, &rules(rest));
    let client = udp(&site.inside, INSIDE, 0);
    assert!(arrives(&client, &udp(&site.outside, OUTSIDE, 53)));
    assert!(!arrives(&client, &udp(&site.outside, OUTSIDE, 54)));
    assert!(!site.apply(rest).is_empty());
    assert_eq!(site.apply(rest), Vec::new());
    let client = udp(&site.inside, INSIDE, 0);
    assert!(arrives(&client, &udp(&site.outside, OUTSIDE, 53)));
    assert!(!arrives(&client, &udp(&site.outside, OUTSIDE, 54)));
}

/// More rules of every kind than are written one by one.
fn many() -> String {
    let mut rest = "      dnsServerAddress: 192.0.2.53\n      rules:\n".to_owned();
    for index in 0..70_u16 {
        let port = 2000 + index;
        let len = 24 + index % 9;
        let to = match len {
            31.. => format!("203.0.113.2/{len}"),
            _ => format!("203.0.113.0/{len}"),
        };
        let log = index % 2 == 0;
        writeln!(
            rest,
            "      - {{name: no-{index}, action: drop, direction: egress, log: {log}, \
             to: [{{cidr: {to}}}, {{cidr: 'fd00:b::/64'}}], ports: [{{protocol: UDP, port: {port}}}]}}"
        )
        .unwrap();
    }
    rest += "    cwnp:\n      egress:\n";
    rest += "      - {name: wide, ports: [{protocol: UDP, port: 2000, endPort: 2100}]}\n";
    rest += "      - {name: ping, ports: [{protocol: ICMP, icmpType: 8}, {protocol: ICMPv6, icmpType: 128}]}\n";
    rest += "      - {name: gre, to: [{cidr: 203.0.113.0/24}], ports: [{protocol: SCTP}]}\n";
    for index in 0..80_u16 {
        let port = 1000 + index * 3;
        let end = port + index % 3;
        let (to, to6) = match index % 4 {
            0 => ("203.0.113.2/32", "fd00:b::2/128"),
            1 => ("203.0.113.0/25", "fd00:b::/120"),
            2 => ("203.0.113.3/32", "fd00:b::3/128"),
            _ => ("0.0.0.0/0", "::/0"),
        };
        writeln!(
            rest,
            "      - {{name: p-{index}, to: [{{cidr: {to}}}, {{cidr: '{to6}'}}], \
             from: [{{cidr: 10.0.0.0/30}}, {{cidr: 'fd00:a::/32'}}], \
             ports: [{{protocol: UDP, port: {port}, endPort: {end}}}, {{port: {port}}}]}}"
        )
        .unwrap();
    }
    for index in 0..40_u16 {
        let port = 4000 + index % 10;
        writeln!(
            rest,
            "      - {{name: n-{index}, toFQDNs: [{{matchName: n{index}.example.com}}], \
             ports: [{{protocol: UDP, port: {port}}}]}}"
        )
        .unwrap();
    }
    rest += "      ingress:\n";
    for index in 0..80_u16 {
        let (from, port) = (index % 4, 3000 + index);
        writeln!(
            rest,
            "      - {{name: i-{index}, from: [{{cidr: 203.0.113.{from}/32}}], \
             ports: [{{protocol: UDP, port: {port}}}]}}"
        )
        .unwrap();
    }
    rest
}

/// A datagram through the router, and the socket that it would arrive at.
struct Probe {
    question: Question,
    receiver: UdpSocket,
}

fn probes(site: &Site) -> Vec<Probe> {
    let mut probes = Vec::new();
    for (is_egress, is_ipv4, ports) in [
        (true, true, 1000..1060),
        (true, false, 1000..1060),
        (true, true, 2000..2075),
        (true, false, 2060..2075),
        (true, true, 4000..4012),
        (false, true, 3000..3020),
        (false, false, 3000..3004),
    ] {
        let inside = if is_ipv4 { INSIDE } else { INSIDE6 };
        let outside = if is_ipv4 { OUTSIDE } else { OUTSIDE6 };
        let (from, to, at) = match is_egress {
            true => (inside, outside, &site.outside),
            false => (outside, inside, &site.inside),
        };
        probes.extend(ports.map(|port| Probe {
            question: Question {
                from: from.parse().unwrap(),
                to: to.parse().unwrap(),
                protocol: 17,
                port,
                input: None,
                output: None,
            },
            receiver: udp(at, to, port),
        }));
    }
    probes
}

#[test]
fn many_rules_as_text_decide_as_the_table() {
    if !can_run() {
        return;
    }
    let site = Site::new("many");
    let rules = rules(&many());
    let lines = render(&rules).matches("meta nfproto").count();
    // Each name and family needs one.
    assert!(
        lines < 150,
        "{lines} rules of nft for {}",
        rules.rules().count()
    );
    load(&site, &rules);
    let set = NameSelector::name(NAME).unwrap().set(true);
    site.router.output(&format!(
        "nft add element inet metalmesh-firewall {set} {{ {OUTSIDE} timeout 1h }}"
    ));
    let address = BTreeSet::from([OUTSIDE.parse().unwrap()]);
    let resolved = Resolved::from([(set, address)]);
    let mut passing = Vec::new();
    let mut dropped = Vec::new();
    for probe in probes(&site) {
        let from = probe.question.from.to_string();
        let at = match from == INSIDE || from == INSIDE6 {
            true => &site.inside,
            false => &site.outside,
        };
        let sender = udp(at, &from, 0);
        let to = probe.receiver.local_addr().unwrap();
        sender.send_to(b"x", to).unwrap();
        let answer = explain(&rules, &probe.question, &resolved);
        let group = match answer.accepted {
            true => &mut passing,
            false => &mut dropped,
        };
        group.push((probe, answer.reason));
    }
    assert!(passing.len() > 50 && dropped.len() > 50, "both are tried");
    let until = Instant::now() + DEADLINE;
    for (probe, reason) in &passing {
        while uninterrupted(|| probe.receiver.recv_from(&mut [0; 16])).is_err() {
            let question = &probe.question;
            assert!(Instant::now() < until, "{question:?} must pass: {reason}");
        }
    }
    // All that pass have arrived; what was sent among them would have, too.
    for (probe, reason) in &dropped {
        probe.receiver.set_nonblocking(true).unwrap();
        let received = uninterrupted(|| probe.receiver.recv_from(&mut [0; 16]));
        let question = &probe.question;
        assert!(received.is_err(), "{question:?} must not pass: {reason}");
    }
    for target in [OUTSIDE, OUTSIDE6] {
        assert!(answers_ping(&site.inside, target));
    }
    assert!(!site.apply(&many()).is_empty(), "the agent takes over");
    assert_eq!(site.apply(&many()), Vec::new());
}
