//! Tables of what the compiler makes.

use agents_firewall::admit::admit;
use agents_firewall::compile::{FORWARD, compile};
use agents_firewall::config::Config;
use agents_firewall::explain::{Question, explain};
use agents_firewall::model::{BaseChain, Expression, NftTable, Verdict};
use agents_firewall::rule::RuleSet;

pub(crate) const HEAD: &str = "
sources:
  static:
    firewall:
      networks:
      - {networkID: tenant, networkType: private, vrf: 42, prefixes: [10.0.0.0/8, 'fd00:a::/32']}
      - {networkID: internet, networkType: external, vrf: 104, nat: true}
";
pub(crate) const TAIL: &str = "
controllers:
  firewall: {source: static}
  cwnp: {source: static}
  service: {source: static}
";

fn rules(rest: &str) -> RuleSet {
    let config = Config::parse(&format!("{HEAD}{rest}{TAIL}")).unwrap();
    let admitted = admit(&config);
    assert_eq!(admitted.problems, vec![]);
    admitted.rules
}

fn assert_ends_with_drop(table: &NftTable) {
    let forward = &table.chains[FORWARD];
    assert_eq!(forward.base, Some(BaseChain::Forward));
    let last = &forward.rules.last().unwrap().expressions;
    assert_eq!(last.last(), Some(&Expression::Verdict(Verdict::Drop)));
    assert!(
        matches!(last.as_slice(), [Expression::Count(_), _]),
        "it matches every packet"
    );
}

#[test]
fn no_rules_are_a_table_that_drops() {
    let table = compile(&RuleSet::default());
    assert_ends_with_drop(&table);
    assert_eq!(table.chains.len(), 2);
}

#[test]
fn ten_thousand_permits_are_one_map_and_one_rule() {
    let mut rest = "    cwnp:\n      egress:\n".to_owned();
    for index in 0..10_000 {
        let (high, low) = (index / 250, index % 250);
        rest += &format!(
            "      - {{name: p{index}, to: [{{cidr: 203.0.{high}.{low}/32}}], ports: [{{port: 443}}]}}\n"
        );
    }
    let table = compile(&rules(&rest));
    assert_ends_with_drop(&table);
    assert_eq!(table.chains["tenant-egress"].rules.len(), 1);
    assert_eq!(table.sets["tenant-egress.4s0d32p16"].elements.len(), 10_000);
}

#[test]
fn an_operator_rule_of_another_kind_does_not_rename_layers() {
    let deny = "{name: deny, action: drop, to: [{cidr: 192.0.2.0/24}]}";
    let permit = "{name: permit, action: accept, from: [{cidr: 10.1.0.0/16}]}";
    let names = |list: &[&str]| -> Vec<String> {
        let table = compile(&rules(&format!("      rules: [{}]\n", list.join(", "))));
        table
            .sets
            .keys()
            .filter(|name| name.starts_with("operator"))
            .cloned()
            .collect()
    };
    assert_eq!(names(&[deny]), ["operator-drop-any-0.4s0d24"]);
    assert_eq!(
        names(&[permit, deny]),
        ["operator-accept-any-0.4s16d0", "operator-drop-any-0.4s0d24"]
    );
}

#[test]
fn explain_names_the_rule() {
    let rules = rules(
        "
      rules:
      - {name: no-smtp, action: drop, direction: egress, ports: [{protocol: TCP, port: 25}]}
    cwnp:
      egress:
      - {name: all, to: [{cidr: 0.0.0.0/0, except: [192.0.2.0/24]}]}
    service:
    - {name: web, loadBalancerIPs: [203.0.113.7], ports: [{port: 443}]}
",
    );
    for (from, to, port, expected) in [
        (
            "10.0.0.1",
            "198.51.100.1",
            25,
            "firewall rules/no-smtp rule 0 drops it",
        ),
        (
            "10.0.0.1",
            "198.51.100.1",
            26,
            "cwnp egress/all rule 0 accepts it",
        ),
        ("10.0.0.1", "192.0.2.1", 26, "no rule accepts it"),
        ("fd00:a::1", "2001:db8::1", 80, "no rule accepts it"),
        ("198.51.100.1", "10.0.0.1", 80, "no rule accepts it"),
    ] {
        let question = Question {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            protocol: 6,
            port,
            input: None,
            output: None,
        };
        assert_eq!(
            explain(&rules, &question).reason,
            expected,
            "{from} {to} {port}"
        );
    }
    let to_service = Question {
        from: "198.51.100.1".parse().unwrap(),
        to: "203.0.113.7".parse().unwrap(),
        protocol: 6,
        port: 443,
        input: None,
        output: Some("vrf42".to_owned()),
    };
    let answer = explain(&rules, &to_service);
    assert_eq!(answer.reason, "service default/web rule 0 accepts it");
    assert_eq!(answer.input, "vrf104");
}
