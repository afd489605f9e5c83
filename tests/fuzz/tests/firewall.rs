//! Fuzzes what the firewall agent reads: its configuration, and dumps of the kernel.

#![expect(
    clippy::let_underscore_must_use,
    reason = "that a decoder returns is the whole point"
)]

use agents_firewall::admit::{admit, admit_objects};
use agents_firewall::compile::{FORWARD, compile};
use agents_firewall::config::Config;
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
        let read = kept.and_then(|kept| serde_json::from_slice::<SourceObjects>(&kept));
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
