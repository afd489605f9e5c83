//! Fuzzes what the firewall agent reads: its configuration, dumps and reports of the kernel, DNS.

#![expect(
    clippy::let_underscore_must_use,
    reason = "that a decoder returns is the whole point"
)]

use agents_firewall::admit::{admit, admit_objects};
use agents_firewall::compile::{FORWARD, compile};
use agents_firewall::config::Config;
use agents_firewall::dns::{AnswerFit, DnsQuery, SavedName, resolved_addresses};
use agents_firewall::drops::PacketReport;
use agents_firewall::model::{BaseChain, Expression, Verdict};
use agents_firewall::netlink::{covers, encode_expressions};
use agents_firewall::render::render;
use agents_firewall::source::kubernetes::{
    Kubeconfig, ObjectList, WatchEvent, firewall_spec, policy_value, service_value,
};
use agents_firewall::source::{ControllerObjects, SourceObjects};
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

/// Words of kubeconfigs.
const KUBECONFIG_WORDS: &[&str] = &[
    "clusters: ",
    "users: ",
    "contexts: ",
    "current-context: a\n",
    "- name: a\n",
    "  cluster: ",
    "  user: ",
    "  context: ",
    "{server: 'https://x:1'}\n",
    "{token: a}\n",
    "{exec: {command: sh}}\n",
    "{cluster: a, user: a}\n",
    "{certificate-authority-data: YQ==}\n",
    "\n",
    "&a ",
    "*a",
];

#[test]
fn fuzz_kubeconfig() {
    check!().for_each(|bytes: &[u8]| {
        let _ = Kubeconfig::parse(bytes);
        let words = bytes
            .iter()
            .map(|byte| KUBECONFIG_WORDS[usize::from(*byte) % KUBECONFIG_WORDS.len()]);
        let text: String = words.collect();
        // None of the words has an authority that is one.
        assert!(Kubeconfig::parse(text.as_bytes()).is_err());
    });
}

/// Words of objects of Kubernetes.
const OBJECT_WORDS: &[&str] = &[
    r#"{"type":"ADDED","object":"#,
    r#"{"type":"DELETED","object":"#,
    r#"{"type":"ERROR","object":"#,
    r#"{"metadata":{"name":"a","resourceVersion":"1"},"spec":"#,
    r#"{"items":["#,
    r#"{"egress":[{"to":[{"cidr":"10.0.0.0/8"}]}]}"#,
    r#"{"type":"LoadBalancer","loadBalancerIP":"10.0.0.1","ports":[{"port":80}]}"#,
    r#""status":{"firewallNetworks":[{"networkID":"a","networkType":"external","vrf":1}]}"#,
    r#""status":{"loadBalancer":{"ingress":[{"ip":null}]}}"#,
    "null",
    "[",
    "]",
    "{",
    "}",
    ",",
    "7",
];

/// Whatever an API server sends becomes rules that end with a drop.
fn assert_bounded(bytes: &[u8]) {
    let mut objects = Vec::new();
    if let Ok(WatchEvent::Put(object) | WatchEvent::Removed(object)) =
        WatchEvent::decode(bytes, "watch")
    {
        objects.push(object);
    }
    if let Ok(list) = ObjectList::decode(bytes) {
        objects.extend(list.objects);
    }
    for object in objects {
        let mut source = SourceObjects::default();
        source.cwnp.policies.push(policy_value(&object));
        source.service.extend(service_value(&object));
        source.firewall = firewall_spec(&object).unwrap_or_default();
        let kept = serde_json::to_vec(&source);
        let read = kept.and_then(|bytes| serde_json::from_slice::<SourceObjects>(&bytes));
        assert!(read.is_ok(), "{read:?}");
        let admitted = admit_objects(&ControllerObjects {
            firewall: &source.firewall,
            cwnp: Some(&source.cwnp),
            service: &source.service,
        });
        let table = compile(&admitted.rules);
        assert!(table.chains.contains_key(FORWARD));
    }
}

#[test]
fn fuzz_kubernetes_objects() {
    check!().for_each(|bytes: &[u8]| {
        assert_bounded(bytes);
        let words = bytes
            .iter()
            .map(|byte| OBJECT_WORDS[usize::from(*byte) % OBJECT_WORDS.len()]);
        let text: String = words.collect();
        assert_bounded(text.as_bytes());
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
