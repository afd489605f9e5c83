//! Networks whose objects are refused: they are closed, and not open.

use agents_firewall::admit::{Admitted, admit};
use agents_firewall::compile::compile;
use agents_firewall::config::Config;
use agents_firewall::explain::{Question, Resolved, explain};
use agents_firewall::interpret::{FlowState, Packet, decide, decide_arriving, decide_input};
use agents_firewall::rule::NetworkKind;
use agents_firewall::state::Loaded;

use crate::input::{SITE, packet};
use crate::tables::TAIL;

/// The site with another network.
fn with_network(object: &str) -> String {
    let first = "      - {networkID: tenant";
    let text = SITE.replacen(first, &format!("      - {object}\n{first}"), 1);
    format!("{text}{TAIL}")
}

fn admitted(object: &str) -> Admitted {
    admit(&Config::parse(&with_network(object)).unwrap())
}

#[test]
fn a_network_whose_object_is_wrong_is_closed() {
    for object in [
        // Bits after the prefix length, an unknown field, another type, a name of another network.
        "{networkID: other, networkType: private, vrf: 43, prefixes: [192.0.2.1/24]}",
        "{networkID: other, networkType: private, vrf: 43, prefixes: [192.0.2.0/24], a: b}",
        "{networkID: other, networkType: privat, vrf: '43', prefixes: [192.0.2.0/24]}",
        "{networkID: Other, networkType: private, interfaces: [vrf43, x], prefixes: [192.0.2.0/24]}",
    ] {
        let admitted = admitted(object);
        assert_eq!(admitted.problems.len(), 1, "{:?}", admitted.problems);
        let table = compile(&admitted.rules);
        // A manager's address, and a connection of before.
        let to_port = packet("vrf43 192.0.2.1 tcp 22");
        for state in [FlowState::New, FlowState::Established] {
            let packet = Packet {
                state,
                ..to_port.clone()
            };
            let decision = decide_input(&table, &packet);
            assert!(!decision.accepted, "{object}");
            assert_eq!(decision.counters, ["input/spoofed"], "{object}");
            for (input, output) in [("vrf43", "vrf42"), ("vrf42", "vrf43")] {
                let packet = Packet {
                    input: input.to_owned(),
                    output: output.to_owned(),
                    source: "10.0.0.2".parse().unwrap(),
                    ..packet.clone()
                };
                let decision = decide(&table, &packet);
                assert!(!decision.accepted, "{object}");
                assert_eq!(decision.counters, ["spoofed"], "{object}");
            }
        }
        let part = Packet {
            is_fragment: true,
            ..to_port
        };
        assert!(!decide_arriving(&table, &part).accepted, "{object}");
        // Its prefix is nobody else's.
        let forged = Packet {
            output: "vrf42".to_owned(),
            ..packet("vrf104 192.0.2.1 tcp 80")
        };
        assert!(!decide(&table, &forged).accepted, "{object}");
        let question = Question {
            from: "192.0.2.1".parse().unwrap(),
            to: "10.0.0.2".parse().unwrap(),
            protocol: 6,
            port: 80,
            input: None,
            output: None,
        };
        let reason = explain(&admitted.rules, &question, &Resolved::new()).reason;
        assert!(reason.contains("is closed"), "{object}: {reason}");
    }
}

#[test]
fn a_network_outside_whose_object_is_wrong_stays_outside() {
    let object = "{networkID: wan, networkType: external, vrf: 43, nat: true, prefixes: [x]}";
    let admitted = admitted(object);
    assert_eq!(admitted.problems.len(), 1, "{:?}", admitted.problems);
    let networks = &admitted.rules.networks;
    let own = networks.iter().find(|network| network.id == "wan").unwrap();
    assert_eq!(own.kind, NetworkKind::External);
    assert!(!own.masquerade && own.addresses == Some(Vec::new()));
    let table = compile(&admitted.rules);
    let decision = decide_input(&table, &packet("vrf43 10.0.0.2 icmp 8"));
    assert_eq!(decision.counters, ["input/spoofed"]);
    assert!(decide_input(&table, &packet("vrf43 192.0.2.7 tcp 22")).accepted);
}

#[test]
fn an_interface_of_a_right_network_stays_open() {
    let twice = "{networkID: other, networkType: private, vrf: 42, prefixes: [10.0.0.1/8]}";
    let admitted = admitted(twice);
    assert_eq!(admitted.problems.len(), 1, "{:?}", admitted.problems);
    assert_eq!(admitted.rules.networks.len(), 3);
    let table = compile(&admitted.rules);
    let packet = Packet {
        output: "vrf104".to_owned(),
        ..packet("vrf42 10.0.0.2 tcp 443")
    };
    assert!(decide(&table, &packet).accepted);
}

#[test]
fn a_network_whose_interfaces_cannot_be_read_refuses_the_file() {
    for object in [
        "{networkID: other, networkType: private, vfr: 43, prefixes: [192.0.2.0/24]}",
        "{networkID: other, networkType: private, vrf: x, prefixes: [192.0.2.0/24]}",
        "{networkID: other, networkType: external, interfaces: ['vrf 43']}",
        "{networkID: other, networkType: private, interfaces: [vrf43, 7]}",
        "{networkID: other, networkType: private, interfaces: vrf43, vrf: 43}",
        "7",
    ] {
        let text = with_network(object);
        let error = Loaded::parse(text).unwrap_err().to_string();
        let expected = "firewall networks[0]: vrf: the interfaces of the network cannot be read";
        assert!(error.contains(expected), "{object}: {error}");
        assert!(error.starts_with("line 5: "), "{object}: {error}");
        // Nothing passes where somebody uses the objects all the same.
        let admitted = admitted(object);
        assert_eq!(admitted.rules, agents_firewall::rule::RuleSet::default());
        assert_eq!(admitted.problems.len(), 1, "{object}");
    }
    for object in [
        "{networkID: other, networkType: underlay, vfr: 43}",
        "{networkID: other, networkType: private, interfaces: []}",
    ] {
        let loaded = Loaded::parse(with_network(object)).unwrap();
        assert_eq!(loaded.admitted.problems.len(), 1, "{object}");
    }
}
