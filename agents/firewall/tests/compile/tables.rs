//! Tables of what the compiler makes.

use agents_firewall::admit::admit;
use agents_firewall::compile::{FORWARD, compile};
use agents_firewall::config::Config;
use agents_firewall::explain::{Question, Resolved, explain};
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
    let hooks = table.chains.values().filter_map(|chain| chain.base);
    assert!(hooks.eq([BaseChain::Forward, BaseChain::Input]));
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
    let chain = layers(&table)[0].clone();
    assert!(chain.starts_with("tenant-egress."), "{chain}");
    assert_eq!(table.chains[&chain].rules.len(), 1);
    let map = format!("{chain}.4s0d32p16");
    assert_eq!(table.sets[&map].elements.len(), 10_000);
}

/// The chains of layers.
fn layers(table: &NftTable) -> Vec<String> {
    let all = table.chains.iter();
    let others = ["flow-", "fragment", "input-", "sources.", "spoofed"];
    let is_layer = |name: &str| !others.iter().any(|begin| name.starts_with(begin));
    all.filter(|(name, chain)| chain.base.is_none() && is_layer(name))
        .map(|(name, _)| name.clone())
        .collect()
}

#[test]
fn operator_rules_rename_every_layer_and_tenants_rename_none() {
    let deny = "      rules: [{name: deny, action: drop, to: [{cidr: 192.0.2.0/24}]}]\n";
    let tenant = |list: &str| format!("    cwnp: {{egress: [{list}]}}\n");
    let of = |rest: &str| layers(&compile(&rules(rest)));
    let before = of(&tenant("{name: a}"));
    assert_eq!(
        before,
        of(&tenant("{name: b}, {name: c, ports: [{port: 1}]}"))
    );
    let after = of(&format!("{deny}{}", tenant("{name: a}")));
    assert_eq!(after.len(), 2);
    assert!(!after.iter().any(|name| before.contains(name)), "{after:?}");
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
            explain(&rules, &question, &Resolved::new()).reason,
            expected,
            "{from} {to} {port}"
        );
    }
    // From another network than the source's.
    for (from, input, reason) in [
        (
            "10.0.0.1",
            "vrf104",
            "a packet with the source 10.0.0.1 does not come from the network internet (vrf104): \
             it belongs to the network tenant",
        ),
        (
            "198.51.100.1",
            "vrf42",
            "a packet with the source 198.51.100.1 does not come from the network tenant (vrf42)",
        ),
    ] {
        let question = Question {
            from: from.parse().unwrap(),
            to: "198.51.100.2".parse().unwrap(),
            protocol: 6,
            port: 26,
            input: Some(input.to_owned()),
            output: None,
        };
        let answer = explain(&rules, &question, &Resolved::new());
        assert_eq!((answer.accepted, answer.reason.as_str()), (false, reason));
    }
    let to_service = Question {
        from: "198.51.100.1".parse().unwrap(),
        to: "203.0.113.7".parse().unwrap(),
        protocol: 6,
        port: 443,
        input: None,
        output: Some("vrf42".to_owned()),
    };
    let answer = explain(&rules, &to_service, &Resolved::new());
    assert_eq!(answer.reason, "service default/web rule 0 accepts it");
    assert_eq!(answer.input, "vrf104");
}
