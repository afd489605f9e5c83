//! Fuzzes what the firewall agent reads: its configuration, dumps and reports of the kernel, DNS.

#![expect(
    clippy::let_underscore_must_use,
    reason = "that a decoder returns is the whole point"
)]

use agents_firewall::admit::admit;
use agents_firewall::compile::{FORWARD, compile};
use agents_firewall::config::Config;
use agents_firewall::dns::{AnswerFit, DnsQuery, SavedName, resolved_addresses};
use agents_firewall::drops::PacketReport;
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
    "toFQDNs: [{matchName: a.com}]",
    "toFQDNs: [{matchPattern: '*.a\"; drop'}]",
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

/// A query that the proxy serves, for the rest of an answer.
const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x03com\0\0\x01\0\x01";

#[test]
fn fuzz_dns_query() {
    check!().for_each(|bytes: &[u8]| {
        let Ok(query) = DnsQuery::parse(bytes) else {
            return;
        };
        let sent = query.to_server(7, &[0xA5; 32]);
        // The proxy asks the same question, and an answer to it fits.
        let again = DnsQuery::parse(&sent).map(|again| again.name().to_owned());
        assert_eq!(again, Ok(query.name().to_owned()));
        let mut answer = sent.clone();
        answer[2] |= 0x80;
        assert_eq!(DnsQuery::fit(&sent, &answer), AnswerFit::Exact);
        assert_eq!(query.reply(&answer, 65_535)[..2], bytes[..2]);
    });
}

#[test]
fn fuzz_dns_answer() {
    let query = DnsQuery::parse(QUERY).unwrap();
    check!().for_each(|bytes: &[u8]| {
        let _ = DnsQuery::fit(QUERY, bytes);
        let _ = query.reply(bytes, 512);
        let _ = resolved_addresses(&query, bytes);
        // Random records after the right question.
        let mut answer = QUERY.to_vec();
        answer[2] = 0x81;
        answer[7] = bytes.first().copied().unwrap_or(0);
        answer.extend(bytes);
        let _ = resolved_addresses(&query, &answer);
    });
}

#[test]
fn fuzz_packet_report() {
    check!().for_each(|bytes: &[u8]| {
        let name = |index: u32| Some(index.to_string());
        let _ = PacketReport::decode(bytes, 0, name);
        // As the payload of a report.
        let length = u16::try_from(bytes.len().min(60_000) + 4).unwrap_or(4);
        let mut report = length.to_ne_bytes().to_vec();
        report.extend(9_u16.to_ne_bytes());
        report.extend(bytes.iter().take(60_000));
        if let Some(report) = PacketReport::decode(&report, 0, name) {
            let _ = report.record.line();
            let _ = report.record.fields();
        }
    });
}

#[test]
fn fuzz_saved_names() {
    check!().for_each(|bytes: &[u8]| {
        let _ = SavedName::decode(bytes);
    });
}
