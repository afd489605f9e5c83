//! The binding of flows, by the interpreter.

use agents_firewall::admit::admit;
use agents_firewall::compile::compile;
use agents_firewall::config::Config;
use agents_firewall::interpret::{FlowState, Packet, decide, decide_input, decide_output};
use agents_firewall::model::NftTable;

use crate::input::{SITE, packet};
use crate::tables::TAIL;

fn table(text: &str) -> NftTable {
    let admitted = admit(&Config::parse(&format!("{text}{TAIL}")).unwrap());
    assert_eq!(admitted.problems, vec![]);
    compile(&admitted.rules)
}

/// The site without an underlay that is declared, as control and clusters send none.
fn without_underlay() -> String {
    let lines = SITE.lines().filter(|line| !line.contains("underlay"));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    assert!(!text.contains("lan0"), "{text}");
    text
}

#[test]
fn the_firewalls_own_flows_over_the_underlay_are_bound() {
    for text in [SITE.to_owned(), without_underlay()] {
        let table = table(&text);
        let question = Packet {
            input: String::new(),
            output: "lan0".to_owned(),
            ..packet("lan0 10.250.1.1 tcp 443")
        };
        let mark = decide_output(&table, &question).mark;
        assert!(mark != 0, "{text}");
        for (interface, accepted) in [("lan0", true), ("lan1", true), ("vrf104", false)] {
            let answer = Packet {
                state: FlowState::Established,
                mark,
                is_reply: true,
                ..packet(&format!("{interface} 198.51.100.1 tcp 40000"))
            };
            let decision = decide_input(&table, &answer);
            assert_eq!(decision.accepted, accepted, "{interface} {text}");
        }
        // A session that the other side begins.
        let mark = decide_input(&table, &packet("lan0 fe80::1 tcp 179")).mark;
        for (interface, accepted) in [("lan1", true), ("vrf104", false)] {
            let later = Packet {
                state: FlowState::Established,
                mark,
                ..packet(&format!("{interface} fe80::1 tcp 179"))
            };
            let decision = decide_input(&table, &later);
            assert_eq!(decision.accepted, accepted, "{interface} {text}");
        }
    }
}

/// An interface of another network is none of the underlay, although it has such a name.
#[test]
fn an_interface_has_one_side() {
    let text = without_underlay().replace("vrf: 104", "interfaces: [lan0]");
    let table = table(&text);
    let out = |output: &str| Packet {
        output: output.to_owned(),
        ..packet("vrf42 10.0.0.2 tcp 443")
    };
    let marks = ["lan0", "lan1"].map(|output| decide(&table, &out(output)).mark);
    assert!(
        marks[0] != marks[1] && marks[0] != 0 && marks[1] != 0,
        "{marks:?}"
    );
}

#[test]
fn redirects_of_both_families_pass_from_nowhere() {
    let table = table(SITE);
    let own = Packet {
        input: String::new(),
        output: "vrf104".to_owned(),
        ..packet("vrf104 2001:db8::1 udp 53")
    };
    let own = decide_output(&table, &own).mark;
    for words in ["vrf104 198.51.100.1 icmp 5", "vrf104 fe80::1 icmp6 137"] {
        for mark in [0, own] {
            let redirect = Packet {
                state: FlowState::Related,
                mark,
                is_reply: true,
                ..packet(words)
            };
            let decision = decide_input(&table, &redirect);
            assert!(!decision.accepted, "{words} {mark:#x}");
            assert_eq!(decision.counters, ["input/spoofed"], "{words} {mark:#x}");
            let forwarded = Packet {
                output: "vrf42".to_owned(),
                ..redirect
            };
            let decision = decide(&table, &forwarded);
            assert!(!decision.accepted, "{words} {mark:#x}");
            assert_eq!(decision.counters, ["spoofed"], "{words} {mark:#x}");
        }
    }
}

/// A packet that changed VRFs on its way to another address of the firewall has the mark of its way.
#[test]
fn a_flow_of_a_tenant_reaches_the_firewall_by_no_detour() {
    let table = table(SITE);
    let forwarded = Packet {
        output: "vrf104".to_owned(),
        ..packet("vrf42 10.0.0.2 icmp 8")
    };
    let mark = decide(&table, &forwarded).mark;
    let again = Packet {
        mark,
        ..packet("vrf104 198.51.100.1 icmp 8")
    };
    let decision = decide_input(&table, &again);
    assert!(!decision.accepted && decision.mark == mark);
    assert_eq!(decision.counters, ["input/spoofed"]);
    // From outside.
    let decision = decide_input(&table, &Packet { mark: 0, ..again });
    assert!(decision.accepted && decision.mark != 0);
}
