//! Access to the firewall itself, by the interpreter.

use std::collections::{BTreeMap, BTreeSet};

use agents_firewall::admit::admit;
use agents_firewall::compile::compile;
use agents_firewall::config::Config;
use agents_firewall::interpret::{FlowState, Packet, decide, decide_input, decide_output};
use agents_firewall::model::{Expression, NftTable, Verdict};
use agents_firewall::netlink::CounterValue;
use agents_firewall::rule::{RuleSet, protocol_number as number};
use agents_firewall::source::MonitorReport;

use crate::tables::TAIL;

pub(crate) const SITE: &str = "
sources:
  static:
    firewall:
      networks:
      - {networkID: tenant, networkType: private, vrf: 42, prefixes: [10.0.0.0/8, 'fd00:a::/32']}
      - {networkID: internet, networkType: external, vrf: 104, nat: true}
      - {networkID: fabric, networkType: underlay, interfaces: [lan0, lan1], prefixes: [10.250.0.0/16]}
      management: {interfaces: [tailscale0, eth9], prefixes: [192.0.2.0/24, 'fd00:c::/64'], ports: [22, 9100]}
    cwnp: {egress: [{name: all}], ingress: [{name: all}]}
";

fn site() -> RuleSet {
    let admitted = admit(&Config::parse(&format!("{SITE}{TAIL}")).unwrap());
    assert_eq!(admitted.problems, vec![]);
    admitted.rules
}

/// A packet in words: interface, source, protocol and port.
pub(crate) fn packet(words: &str) -> Packet {
    let words: Vec<&str> = words.split_whitespace().collect();
    let source: std::net::IpAddr = words[1].parse().unwrap();
    let own = if source.is_ipv4() {
        "10.0.0.1"
    } else {
        "fd00:a::1"
    };
    Packet {
        source,
        destination: own.parse().unwrap(),
        protocol: match words[2] {
            "tcp" => number::TCP,
            "udp" => number::UDP,
            "icmp" => number::ICMP,
            _ => number::ICMP6,
        },
        port: words[3].parse().unwrap(),
        input: words[0].to_owned(),
        output: String::new(),
        state: FlowState::New,
        mark: 0,
        is_reply: false,
        is_fragment: false,
    }
}

fn last_counter(table: &NftTable, words: &str) -> (bool, String) {
    let decision = decide_input(table, &packet(words));
    let counter = decision.counters.last().cloned();
    (decision.accepted, counter.unwrap_or_default())
}

/// The kernel shows a packet that changes VRFs as one that the firewall sends, too.
#[test]
fn a_flow_that_changes_vrfs_is_none_of_the_firewall() {
    let table = compile(&site());
    let forwarded = Packet {
        destination: "198.51.100.7".parse().unwrap(),
        output: "vrf104".to_owned(),
        ..packet("vrf42 10.0.0.2 tcp 443")
    };
    let first = decide(&table, &forwarded);
    assert!(first.accepted && first.mark != 0, "{first:?}");
    let forwarded = Packet {
        mark: first.mark,
        ..forwarded
    };
    assert_eq!(decide_output(&table, &forwarded).mark, first.mark);
    let own = Packet {
        input: String::new(),
        mark: 0,
        ..forwarded
    };
    let own = decide_output(&table, &own).mark;
    assert!(own != 0 && own != first.mark, "{own:#x}");
}

#[test]
fn only_the_fabric_and_management_reach_the_firewall() {
    let table = compile(&site());
    for (words, counter) in [
        ("lo 127.0.0.1 tcp 5000", "input/loopback"),
        ("lan0 fe80::1 tcp 179", "firewall/input/bgp/0"),
        ("lan1 fe80::1 icmp6 134", "firewall/input/router/0"),
        ("lan1 10.250.1.1 udp 4789", "firewall/input/vxlan/0"),
        ("lan0 10.250.1.1 udp 68", "firewall/input/dhcp/0"),
        ("vrf42 fd00:a::2 icmp6 135", "firewall/input/neighbour/0"),
        ("vrf42 fe80::2 icmp6 135", "firewall/input/neighbour/0"),
        ("vrf42 :: icmp6 135", "firewall/input/neighbour/0"),
        ("vrf42 10.0.0.2 icmp 8", "input/ping"),
        ("vrf104 2001:db8::1 icmp6 128", "input/ping"),
        (
            "tailscale0 100.64.0.1 tcp 22",
            "firewall/input/management/0",
        ),
        ("eth9 198.51.100.1 tcp 9100", "firewall/input/management/0"),
        ("eth9 0.0.0.0 udp 68", "firewall/input/management-dhcp/0"),
        ("vrf104 192.0.2.7 tcp 22", "firewall/input/managers/0"),
        ("lan0 fd00:c::7 tcp 22", "firewall/input/managers/0"),
    ] {
        assert_eq!(
            last_counter(&table, words),
            (true, counter.to_owned()),
            "{words}"
        );
    }
    for (words, counter) in [
        ("vrf42 10.0.0.2 tcp 22", "input/private"),
        ("vlan42 10.0.0.2 tcp 9100", "input/private"),
        // A tenant that writes a manager's address into its packets.
        ("vrf42 192.0.2.7 tcp 22", "input/spoofed"),
        ("vrf42 2001:db8::7 icmp6 128", "input/spoofed"),
        ("vrf104 10.0.0.2 icmp 8", "input/spoofed"),
        ("vrf42 fe80::2 tcp 179", "input/private"),
        ("vrf42 10.250.1.1 udp 4789", "input/spoofed"),
        ("vrf42 fe80::2 icmp6 134", "input/private"),
        ("vrf42 10.0.0.2 udp 53", "input/private"),
        ("vrf104 198.51.100.1 tcp 22", "input/dropped"),
        ("vrf104 198.51.100.1 udp 68", "input/dropped"),
        ("lan0 192.0.3.1 udp 4789", "input/dropped"),
        ("lan0 10.250.1.1 tcp 22", "input/dropped"),
        ("tailscale0 100.64.0.1 tcp 23", "input/dropped"),
        ("eth8 fe80::1 tcp 179", "input/dropped"),
    ] {
        assert_eq!(
            last_counter(&table, words),
            (false, counter.to_owned()),
            "{words}"
        );
    }
}

#[test]
fn the_dns_proxy_is_open_for_private_networks_when_it_runs() {
    let proxy = SITE.replace(
        "management:",
        "dnsServerAddress: 198.51.100.53\n      management:",
    );
    let rules = |text: &str| {
        let admitted = admit(&Config::parse(&format!("{text}{TAIL}")).unwrap());
        assert_eq!(admitted.problems, vec![]);
        admitted.rules
    };
    // No policy has names: the proxy does not run.
    let idle = compile(&rules(&proxy));
    assert!(!last_counter(&idle, "vrf42 10.0.0.2 udp 53").0);
    let names = "egress: [{name: all}, {name: api, toFQDNs: [{matchName: api.example.com}]}]";
    let table = compile(&rules(&proxy.replace("egress: [{name: all}]", names)));
    for words in ["vrf42 10.0.0.2 udp 53", "vlan42 fd00:a::2 tcp 53"] {
        let expected = (true, "firewall/input/dns/0".to_owned());
        assert_eq!(last_counter(&table, words), expected, "{words}");
    }
    for words in ["vrf104 198.51.100.1 udp 53", "vrf42 10.0.0.2 udp 54"] {
        assert!(!last_counter(&table, words).0, "{words}");
    }
}

#[test]
fn established_flows_pass_and_invalid_packets_do_not() {
    let table = compile(&RuleSet::default());
    let mut answer = packet("vrf104 198.51.100.1 tcp 40000");
    answer.state = FlowState::Established;
    assert!(decide_input(&table, &answer).accepted);
    answer.state = FlowState::Invalid;
    assert!(!decide_input(&table, &answer).accepted);
}

#[test]
fn without_a_configuration_the_fabric_and_the_vpn_stay_open() {
    let table = compile(&RuleSet::default());
    for words in [
        "lan0 fe80::1 tcp 179",
        "lan1 10.1.2.3 udp 4789",
        "tailscale0 100.64.0.1 tcp 22",
    ] {
        assert!(last_counter(&table, words).0, "{words}");
    }
    for words in ["eth0 198.51.100.1 tcp 22", "vrf42 10.0.0.2 tcp 22"] {
        assert!(!last_counter(&table, words).0, "{words}");
    }
}

#[test]
fn management_is_not_a_private_network() {
    let bad = SITE.replace("[tailscale0, eth9]", "[vlan42]");
    let admitted = admit(&Config::parse(&format!("{bad}{TAIL}")).unwrap());
    let problems: Vec<String> = admitted.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("vlan42"), "{problems:?}");
    assert_eq!(admitted.rules.input, RuleSet::default().input);
}

#[test]
fn a_firewall_monitor_has_every_counter_of_dropped_packets_as_drop() {
    let text = SITE.replace(
        "management:",
        "rules: [{name: no, action: drop}]\n      management:",
    );
    let admitted = admit(&Config::parse(&format!("{text}{TAIL}")).unwrap());
    let table = compile(&admitted.rules);
    let mut dropped = vec!["firewall/rules/no/0".to_owned()];
    let rules = table.chains.values().flat_map(|chain| &chain.rules);
    for rule in rules.filter(|rule| {
        let last = rule.expressions.last();
        last == Some(&Expression::Verdict(Verdict::Drop))
    }) {
        dropped.extend(rule.expressions.iter().filter_map(|expression| {
            let Expression::Count(counter) = expression else {
                return None;
            };
            Some(counter.clone())
        }));
    }
    let others = ["established", "input/ping", "cwnp/egress/all/0"];
    let counters: BTreeMap<String, CounterValue> = dropped
        .iter()
        .map(String::as_str)
        .chain(others)
        .map(|name| (name.to_owned(), CounterValue::default()))
        .collect();
    let report = MonitorReport::of_counters(&counters, &admitted.rules);
    let names = |action: &str| {
        report.rules[action]
            .keys()
            .cloned()
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(names("drop"), dropped.into_iter().collect::<BTreeSet<_>>());
    assert_eq!(names("drop").len(), 10, "{:?}", names("drop"));
    assert_eq!(names("accept"), BTreeSet::from(others.map(str::to_owned)));
}
