//! Objects that are refused, one by one.

use agents_firewall::admit::admit;
use agents_firewall::config::Config;

use crate::tables::{HEAD, TAIL};

/// The problems of a configuration that also has a rule without one.
fn problems(rest: &str) -> Vec<String> {
    let config = Config::parse(&format!("{HEAD}{rest}{TAIL}")).unwrap();
    let admitted = admit(&config);
    admitted.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_wrong_rule_names_object_field_and_remedy() {
    for (rule, expected) in [
        ("{name: Bad}", "cwnp egress[0]: name: \"Bad\" is not a name"),
        (
            "{nam: x}",
            "cwnp egress[0]: the object: unknown field `nam`",
        ),
        ("7", "cwnp egress[0]: the object: invalid type"),
        (
            "{name: x, to: [{cidr: 10.0.0.1/8}]}",
            "cwnp egress/x rule 0: to[0].cidr: 10.0.0.1/8 has bits",
        ),
        (
            "{name: x, to: [{cidr: 10.0.0.1}]}",
            "cwnp egress/x rule 0: to[0].cidr: \"10.0.0.1\" is not",
        ),
        (
            "{name: x, to: [{cidr: 10.0.0.0/8, except: [11.0.0.0/8]}]}",
            "cwnp egress/x rule 0: to[0].except: 11.0.0.0/8 is not in 10.0.0.0/8",
        ),
        (
            "{name: x, ports: [{port: 0}]}",
            "cwnp egress/x rule 0: ports[0].port: 0 is not a port",
        ),
        (
            "{name: x, ports: [{port: 65536}]}",
            "cwnp egress/x rule 0: ports[0].port: 65536 is not",
        ),
        (
            "{name: x, ports: [{port: 2, endPort: 1}]}",
            "cwnp egress/x rule 0: ports[0].endPort: the range ends at 1",
        ),
        (
            "{name: x, ports: [{protocol: GRE}]}",
            "cwnp egress/x rule 0: ports[0].protocol: \"GRE\" is not a protocol",
        ),
        (
            "{name: x, toFQDNs: [{matchName: example.com}]}",
            "cwnp egress/x rule 0: toFQDNs: the firewall has no DNS proxy",
        ),
        (
            "{name: x, from: [{cidr: 10.0.0.0/8}], to: [{cidr: 'fd00::/8'}]}",
            "cwnp egress/x rule 0: from: source, destination and protocol have no address family",
        ),
        (
            "{name: x, action: drop}",
            "cwnp egress/x rule 0: action: a policy only accepts",
        ),
        (
            "{name: x, direction: ingress}",
            "cwnp egress/x rule 0: direction: it is not that of the list",
        ),
        (
            "{name: x, ports: [{protocol: ICMP, icmpType: 256}]}",
            "cwnp egress/x rule 0: ports[0].icmpType: 256 is not a type of ICMP",
        ),
        (
            "{name: good}",
            "cwnp egress/good rule 0: name: another object has the same name",
        ),
    ] {
        let rest = format!("    cwnp:\n      egress:\n      - {rule}\n      - {{name: good}}\n");
        let found = problems(&rest);
        assert_eq!(found.len(), 1, "{rule}: {found:?}");
        assert!(found[0].starts_with(expected), "{rule}: {found:?}");
        assert!(found[0].contains("; "), "a remedy: {found:?}");
    }
}

#[test]
fn a_wrong_rule_of_the_operator_names_object_field_and_remedy() {
    for (rule, expected) in [
        (
            "{name: x}",
            "firewall rules/x rule 0: action: it is missing",
        ),
        (
            "{name: x, action: allow}",
            "firewall rules/x rule 0: action: \"allow\" is not an action",
        ),
        (
            "{name: x, action: drop, direction: out}",
            "firewall rules/x rule 0: direction: \"out\" is not a direction",
        ),
        (
            "{name: x, action: drop, toFQDNs: [{matchName: a.com}]}",
            "firewall rules/x rule 0: toFQDNs: rules of operators have no names",
        ),
        (
            "{name: X, action: drop}",
            "firewall rules[0]: name: \"X\" is not a name",
        ),
    ] {
        let found = problems(&format!("      rules: [{rule}]\n"));
        assert_eq!(found.len(), 1, "{rule}: {found:?}");
        assert!(found[0].starts_with(expected), "{rule}: {found:?}");
        assert!(found[0].contains("; "), "a remedy: {found:?}");
    }
}

/// The agent reads these as control does.
#[test]
fn equal_rules_are_equal_however_they_are_written() {
    let rules = |egress: &str| {
        let rest = format!("    cwnp:\n      egress: [{egress}]\n");
        let config = Config::parse(&format!("{HEAD}{rest}{TAIL}")).unwrap();
        let admitted = admit(&config);
        assert_eq!(admitted.problems, [], "{egress}");
        admitted.rules
    };
    for (one, other) in [
        // Without a name, and with an empty one.
        ("{}", "{name: ''}"),
        ("{}", "{name: rule-0}"),
        // Ports that are named twice, or in another order.
        (
            "{ports: [{port: 80}, {port: 443}]}",
            "{ports: [{port: 443}, {protocol: TCP, port: 80}, {port: 443}]}",
        ),
        (
            "{to: [{cidr: 10.0.0.0/9}, {cidr: 10.128.0.0/9}]}",
            "{to: [{cidr: 10.0.0.0/8}]}",
        ),
        ("{action: accept, direction: egress}", "{}"),
    ] {
        assert_eq!(rules(one), rules(other), "{one} and {other}");
    }
}

#[test]
fn a_wrong_name_names_object_field_and_remedy() {
    let many: Vec<String> = (0..65)
        .map(|index| format!("{{matchName: n{index}.com}}"))
        .collect();
    let many = format!("[{}]", many.join(", "));
    for (names, expected) in [
        (
            "[{matchName: '*.com'}]",
            "toFQDNs[0].matchName: \"*.com\" is not a DNS name",
        ),
        (
            "[{matchName: a.com}, {matchPattern: 'a..b'}]",
            "toFQDNs[1].matchPattern: \"a..b\" is",
        ),
        (
            "[{matchName: 'a.com; drop'}]",
            "toFQDNs[0].matchName: \"a.com; drop\" is not a DNS",
        ),
        (
            "[{}]",
            "toFQDNs[0]: it needs either matchName or matchPattern",
        ),
        (
            "[{matchName: a, matchPattern: b}]",
            "toFQDNs[0]: it needs either matchName or",
        ),
        (
            "[{matchName: a.com}], to: [{cidr: 10.0.0.0/8}]",
            "toFQDNs: a policy has prefixes or",
        ),
        (many.as_str(), "toFQDNs: there are 65 names"),
    ] {
        let rest = format!(
            "      dnsServerAddress: 192.0.2.53\n    cwnp:\n      egress:\n      - {{name: x, toFQDNs: {names}}}\n"
        );
        let found = problems(&rest);
        assert_eq!(found.len(), 1, "{names}: {found:?}");
        let expected = format!("cwnp egress/x rule 0: {expected}");
        assert!(found[0].starts_with(&expected), "{names}: {found:?}");
        assert!(found[0].contains("; "), "a remedy: {found:?}");
    }
    let ingress = "      dnsServerAddress: 192.0.2.53\n    cwnp: {ingress: [{name: x, toFQDNs: [{matchName: a}]}]}\n";
    assert!(problems(ingress)[0].contains("only egress policies have names"));
    let mut all = "      dnsServerAddress: 192.0.2.53\n    cwnp:\n      egress:\n".to_owned();
    for policy in 0..9 {
        let names: Vec<String> = (0..60)
            .map(|index| format!("{{matchName: n{index}.p{policy}.com}}"))
            .collect();
        all += &format!(
            "      - {{name: p{policy}, toFQDNs: [{}]}}\n",
            names.join(", ")
        );
    }
    let found = problems(&all);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("cwnp egress/p8 rule 0: toFQDNs: all policies together"));
}

#[test]
fn a_wrong_dns_proxy_names_field_and_remedy() {
    for (fields, expected) in [
        (
            "dnsServerAddress: nowhere",
            "dnsServerAddress: \"nowhere\" is not an address",
        ),
        (
            "dnsServerAddress: 0.0.0.0",
            "dnsServerAddress: \"0.0.0.0\" is not an address",
        ),
        (
            "dnsServerAddress: '[ff02::fb]:53'",
            "dnsServerAddress: \"[ff02::fb]:53\" is not an address",
        ),
        (
            "dnsServerAddress: []",
            "dnsServerAddress: there may be 1 to 16 addresses",
        ),
        ("dnsServerAddress: {a: b}", "dnsServerAddress: invalid type"),
        (
            "dnsPort: 53",
            "dnsServerAddress: the DNS proxy has no server to ask",
        ),
        (
            "dnsServerAddress: 192.0.2.53\n      dnsPort: 0",
            "dnsPort: 0 is not a port",
        ),
        (
            "dnsServerAddress: 192.0.2.53\n      dnsPort: 65536",
            "dnsPort: invalid value",
        ),
        (
            "dnsServerAddress: 192.0.2.53\n      dnsListenAddresses: [x]",
            "dnsListenAddresses: \"x\" is not an address",
        ),
    ] {
        let found = problems(&format!("      {fields}\n"));
        assert_eq!(found.len(), 1, "{fields}: {found:?}");
        let expected = format!("firewall dns: {expected}");
        assert!(found[0].starts_with(&expected), "{fields}: {found:?}");
    }
    for fields in [
        "192.0.2.53",
        "'[2001:db8::53]:5353'",
        "[192.0.2.53, '192.0.2.54:54']",
    ] {
        assert_eq!(
            problems(&format!("      dnsServerAddress: {fields}\n")),
            Vec::<String>::new()
        );
    }
}

#[test]
fn messages_do_not_steer_the_terminal() {
    for rule in [
        "{\"\\e[2J\": 1}",
        "{name: \"\\e[2J\"}",
        "{name: x, to: [{cidr: \"\\u202E\\e\"}]}",
        "{name: x, ports: [{protocol: \"\\b\"}]}",
    ] {
        let found = problems(&format!("    cwnp:\n      egress:\n      - {rule}\n"));
        assert_eq!(found.len(), 1, "{rule}: {found:?}");
        let steers = |c: char| c.is_control() || c == '\u{202E}';
        assert!(!found[0].contains(steers), "{rule}: {found:?}");
    }
}

#[test]
fn a_wrong_object_leaves_the_others() {
    let rest = "
    cwnp:
      egress: [{name: a}, {name: 'b; drop'}, {name: c, to: [{cidr: x}]}, {name: d}]
      ingress: [{}, 1]
    service:
    - {name: ok, loadBalancerIPs: [203.0.113.7], ports: [{port: 443}]}
    - {name: no-address, ports: [{port: 443}]}
    - {name: no-port, loadBalancerIPs: [203.0.113.7]}
";
    let config = Config::parse(&format!("{HEAD}{rest}{TAIL}")).unwrap();
    let admitted = admit(&config);
    let objects: Vec<&str> = admitted
        .rules
        .rules()
        .map(|rule| rule.id.object.as_str())
        .collect();
    assert_eq!(
        objects,
        ["ingress/rule-0", "egress/a", "egress/d", "default/ok"]
    );
    assert_eq!(admitted.problems.len(), 5, "{:?}", admitted.problems);
}

#[test]
fn tenants_stay_in_the_allowed_networks() {
    let rest = "
      allowedNetworks: {egress: [198.51.100.0/24], ingress: [203.0.113.0/24]}
    cwnp:
      egress: [{name: in, to: [{cidr: 198.51.100.7/32}]}, {name: all}, {name: out, to: [{cidr: 192.0.2.0/24}]}]
      ingress: [{name: all}]
    service:
    - {name: in, loadBalancerIPs: [203.0.113.7], ports: [{port: 443}]}
    - {name: out, loadBalancerIPs: [192.0.2.7], ports: [{port: 443}]}
";
    let found = problems(rest);
    let objects: Vec<&str> = found
        .iter()
        .filter_map(|text| text.split(" rule").next())
        .collect();
    assert_eq!(
        objects,
        [
            "cwnp ingress/all",
            "cwnp egress/all",
            "cwnp egress/out",
            "service default/out"
        ]
    );
    let rest = "
      allowedNetworks: {egress: [10.0.0.0/9, 10.128.0.0/9]}
    cwnp: {egress: [{name: both, to: [{cidr: 10.0.0.0/8}]}]}
";
    let none: Vec<String> = Vec::new();
    assert_eq!(problems(rest), none, "together they contain it");
    let rest = "
      allowedNetworks: {egress: [x]}
    cwnp: {egress: [{name: all}]}
";
    let found = problems(rest);
    assert_eq!(found.len(), 2, "a wrong list allows nothing: {found:?}");
}

#[test]
fn a_rule_with_too_many_entries_is_refused() {
    let list = |third: u8| -> String {
        let nets = (0..=255)
            .step_by(2)
            .map(|last| format!("{{cidr: 10.0.{third}.{last}/32}}"));
        nets.collect::<Vec<_>>().join(", ")
    };
    let rest = format!(
        "    cwnp:\n      egress:\n      - {{name: x, from: [{}], to: [{}], ports: [{{port: 1}}, {{port: 3}}]}}\n",
        list(0),
        list(1)
    );
    let found = problems(&rest);
    assert!(found[0].contains("it needs 32768 entries"), "{found:?}");
}

#[test]
fn exceptions_that_need_too_many_prefixes_are_refused_alone() {
    for (blocks, exceptions, expected) in [
        (1, 256, "cwnp egress/x rule 0: to: it needs "),
        (2, 256, "cwnp egress/x rule 0: to: it needs "),
        (
            1,
            1024,
            "to[0].except: there are 1024 exceptions; use at most 256",
        ),
        (
            1,
            6000,
            "to[0].except: there are 6000 exceptions; use at most 256",
        ),
    ] {
        let holes =
            (0..exceptions).map(|hole| format!("'{:x}:{hole:x}::{hole:x}/128'", hole * 7 + 1));
        let block = format!(
            "{{cidr: '::/0', except: [{}]}}",
            holes.collect::<Vec<_>>().join(", ")
        );
        let rest = format!(
            "    cwnp:\n      egress:\n      - {{name: x, to: [{}]}}\n      - {{name: y}}\n",
            vec![block; blocks].join(", ")
        );
        let found = problems(&rest);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{found:?}");
    }
}
