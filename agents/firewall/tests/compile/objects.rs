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
            "cwnp egress/x rule 0: toFQDNs: this version does not serve names",
        ),
        (
            "{name: x, from: [{cidr: 10.0.0.0/8}], to: [{cidr: 'fd00::/8'}]}",
            "cwnp egress/x rule 0: from: source, destination and protocol have no address family",
        ),
        (
            "{name: x, action: drop}",
            "cwnp egress/x rule 0: action: a policy of the tenant only",
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
