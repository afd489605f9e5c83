//! Fuzzes what the firewall agent reads: its configuration, and dumps of the kernel.

#![expect(
    clippy::let_underscore_must_use,
    reason = "that a decoder returns is the whole point"
)]

use agents_firewall::admit::admit;
use agents_firewall::compile::{FORWARD, compile};
use agents_firewall::config::Config;
use agents_firewall::model::{BaseChain, Expression, Verdict};
use agents_firewall::netlink::{covers, encode_expressions};
use agents_firewall::render::render;
use bolero::check;

/// Words of configurations, so that random bytes make some that are nearly right.
const WORDS: &[&str] = &[
    "cidr: 10.0.0.0/8",
    "cidr: 'fd00::/8'",
    "cidr: 0.0.0.0/0",
    "except: [10.1.0.0/16]",
    "port: 80",
    "endPort: 90",
    "protocol: UDP",
    "protocol: ICMP",
    "icmpType: 8",
    "name: a",
    "name: 'a\"; drop'",
    "to: [{",
    "from: [{",
    "ports: [{",
    "}, {",
    "}]",
    ", ",
    "action: drop",
    "log: true",
    "]",
    "[",
    "}",
    "toFQDNs: [a]",
    "port: 65536",
    "cidr: 10.0.0.1/8",
    "direction: egress",
    "&a ",
    "*a",
    "!!b ",
    "|",
];

/// Whatever is read becomes a table that ends with a drop, and text without a tenant's quotes.
fn assert_closed(text: &str) {
    let Ok(config) = Config::parse(text) else {
        return;
    };
    let admitted = admit(&config);
    let table = compile(&admitted.rules);
    let forward = &table.chains[FORWARD];
    assert_eq!(forward.base, Some(BaseChain::Forward));
    let last = forward.rules.last().map(|rule| rule.expressions.as_slice());
    assert!(matches!(
        last,
        Some([Expression::Count(_), Expression::Verdict(Verdict::Drop)])
    ));
    assert!(!render(&admitted.rules).contains("; drop"));
}

#[test]
fn fuzz_firewall_configuration() {
    check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        assert_closed(&text);
        let words: Vec<&str> = bytes
            .iter()
            .map(|byte| WORDS[usize::from(*byte) % WORDS.len()])
            .collect();
        let words = words.concat();
        assert_closed(&format!(
            "sources: {{static: {{firewall: {{rules: [{{{words}}}]}}, cwnp: {{egress: [{{name: \
             b}}, {{{words}}}]}}}}}}\ncontrollers: {{firewall: {{source: static}}, cwnp: \
             {{source: static}}}}"
        ));
    });
}

#[test]
fn fuzz_nftables_dump() {
    let table = compile(&agents_firewall::rule::RuleSet::default());
    let rules: Vec<_> = table.chains[FORWARD]
        .rules
        .iter()
        .map(|rule| encode_expressions(&rule.expressions))
        .collect();
    check!().for_each(|bytes: &[u8]| {
        for rule in &rules {
            let _ = covers(bytes, rule);
        }
    });
}
