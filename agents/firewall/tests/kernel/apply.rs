//! Rules and packets.

use agents_firewall::explain::{Question, Resolved, explain};
use agents_firewall::model::{Expression, NftRule};

use crate::namespace::can_run;
use crate::site::{self, INSIDE, INSIDE6, OUTSIDE, OUTSIDE6, Site, answers_ping, arrives, udp};

const DNS: &str = "
    cwnp:
      egress:
      - {name: dns, to: [{cidr: 203.0.113.0/24}, {cidr: 'fd00:b::/64'}], ports: [{protocol: UDP, port: 53}]}
";

#[test]
fn a_rule_lets_its_packets_pass_and_no_others() {
    if !can_run() {
        return;
    }
    let site = Site::new("rule");
    let (client, client6) = (udp(&site.inside, INSIDE, 0), udp(&site.inside, INSIDE6, 0));
    let dns = udp(&site.outside, OUTSIDE, 53);
    let dns6 = udp(&site.outside, OUTSIDE6, 53);
    let other = udp(&site.outside, OUTSIDE, 54);
    assert!(!site.apply(DNS).is_empty());
    assert_eq!(site.apply(DNS), Vec::new(), "twice is once");
    assert!(arrives(&client, &dns));
    assert!(arrives(&client6, &dns6));
    assert!(!arrives(&client, &other));
    assert_eq!(site.counted("cwnp/egress/dns/0").packets, 2);
    assert_eq!(site.counted("dropped").packets, 1);
    let new_client = udp(&site.outside, OUTSIDE, 1000);
    assert!(!arrives(&new_client, &client), "nothing comes in");
}

#[test]
fn every_kind_of_rule_agrees_with_explain() {
    if !can_run() {
        return;
    }
    let site = Site::new("kinds");
    let rest = "
      rules:
      - {name: no-77, action: drop, ports: [{protocol: UDP, port: 77}]}
      - {name: seen, action: log, direction: egress, ports: [{protocol: UDP, port: 80, endPort: 81}]}
      - {name: ping, action: accept, ports: [{protocol: ICMP, icmpType: 8}, {protocol: ICMPv6, icmpType: 128}]}
    cwnp:
      egress:
      - {name: web, to: [{cidr: 203.0.113.0/24, except: [203.0.113.128/25]}], ports: [{protocol: UDP, port: 70, endPort: 90}], log: true}
      - {name: web6, to: [{cidr: 'fd00:b::/64'}], ports: [{protocol: UDP}]}
      ingress:
      - {name: back, from: [{cidr: 203.0.113.2/32}], ports: [{protocol: UDP, port: 99}]}
";
    site.apply(rest);
    let rules = site::rules(rest);
    for (is_egress, is_ipv4, port) in [
        (true, true, 70),
        (true, true, 77),
        (true, true, 80),
        (true, true, 90),
        (true, true, 91),
        (true, true, 69),
        (true, false, 5000),
        (true, false, 77),
        (false, true, 99),
        (false, true, 98),
        (false, false, 99),
    ] {
        let inside = if is_ipv4 { INSIDE } else { INSIDE6 };
        let outside = if is_ipv4 { OUTSIDE } else { OUTSIDE6 };
        let (from, to) = if is_egress {
            (inside, outside)
        } else {
            (outside, inside)
        };
        let (here, there) = if is_egress {
            (&site.inside, &site.outside)
        } else {
            (&site.outside, &site.inside)
        };
        // Ports of their own: an established flow would pass whatever the rules say.
        let passed = arrives(&udp(here, from, 0), &udp(there, to, port));
        let question = Question {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            protocol: 17,
            port,
            input: None,
            output: None,
        };
        let answer = explain(&rules, &question, &Resolved::new());
        assert_eq!(
            passed, answer.accepted,
            "{from} to {to} port {port}: {}",
            answer.reason
        );
    }
    for target in [OUTSIDE, OUTSIDE6] {
        assert!(answers_ping(&site.inside, target));
    }
    for (counter, packets) in [
        ("firewall/rules/no-77/0", 2),
        ("firewall/rules/seen/0", 1),
        ("firewall/rules/ping/0", 2),
        ("cwnp/egress/web/0", 3),
        ("cwnp/egress/web6/0", 1),
        ("cwnp/ingress/back/0", 1),
        ("dropped", 4),
    ] {
        assert_eq!(site.counted(counter).packets, packets, "{counter}");
    }
}

#[test]
fn a_change_keeps_counters_flows_and_the_other_entries() {
    if !can_run() {
        return;
    }
    let site = Site::new("delta");
    let rest = |extra: &str| {
        format!(
            "
    cwnp:
      egress:
      - {{name: dns, to: [{{cidr: 203.0.113.2/32}}], ports: [{{protocol: UDP, port: 53}}]}}
{extra}
"
        )
    };
    site.apply(&rest(""));
    let (client, dns) = (
        udp(&site.inside, INSIDE, 0),
        udp(&site.outside, OUTSIDE, 53),
    );
    assert!(arrives(&client, &dns));
    assert!(arrives(&dns, &client), "the answer");
    let more =
        "      - {name: ntp, to: [{cidr: 203.0.113.2/32}], ports: [{protocol: UDP, port: 123}]}";
    let changes = site.apply(&rest(more));
    let chain = site::chain(&rest(""), "tenant-egress");
    let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "add counter cwnp/egress/ntp/0",
            &format!("add 1 entries to {chain}.4s0d32p16, of cwnp/egress/ntp/0")
        ]
    );
    assert_eq!(
        site.counted("cwnp/egress/dns/0").packets,
        1,
        "it goes on counting"
    );
    // Without its rule the flow goes on, and a new one does not begin.
    site.apply("");
    assert!(arrives(&client, &dns));
    assert!(!arrives(&udp(&site.inside, INSIDE, 0), &dns));
    assert!(site.counted("established").packets >= 2);
}

#[test]
fn tables_of_others_stay() {
    if !can_run() {
        return;
    }
    let site = Site::new("other");
    site.router.output("nft add table inet other");
    site.router
        .output("nft add counter inet other mine { packets 7 bytes 700 ; }");
    site.apply(DNS);
    site.apply("");
    assert!(
        site.router
            .output("nft list table inet other")
            .contains("packets 7")
    );
}

#[test]
fn what_somebody_breaks_is_repaired() {
    if !can_run() {
        return;
    }
    let site = Site::new("drift");
    let chain = site::chain(DNS, "tenant-egress");
    site.apply(DNS);
    for damage in [
        "nft flush chain inet metalmesh-firewall forward",
        "nft flush ruleset",
        "nft insert rule inet metalmesh-firewall forward accept",
        "nft add rule inet metalmesh-firewall tenant-egress accept",
        "nft add element inet metalmesh-firewall tenant-egress.4s0d24p16 { 203.0.113.0 . udp . 54 : dropped }",
        "nft flush map inet metalmesh-firewall tenant-egress.4s0d24p16",
        "nft add chain inet metalmesh-firewall forward { policy accept ; }",
        "nft add chain inet metalmesh-firewall mine { type filter hook forward priority 0 ; }",
        "nft add table inet metalmesh-firewall { flags dormant ; }",
        "nft add set inet metalmesh-firewall mine { type ipv4_addr ; flags interval ; }",
        "nft add quota inet metalmesh-firewall mine { over 10 mbytes ; }",
        "nft add counter inet metalmesh-firewall mine",
        "nft delete table inet metalmesh-firewall",
    ] {
        site.router.output(&damage.replace("tenant-egress", &chain));
        assert!(!site.apply(DNS).is_empty(), "not seen: {damage}");
        assert_eq!(site.apply(DNS), Vec::new(), "not repaired: {damage}");
    }
    let (client, dns) = (
        udp(&site.inside, INSIDE, 0),
        udp(&site.outside, OUTSIDE, 53),
    );
    assert!(arrives(&client, &dns));
    assert!(!arrives(&client, &udp(&site.outside, OUTSIDE, 54)));
}

#[test]
fn counters_survive_what_others_add() {
    if !can_run() {
        return;
    }
    let site = Site::new("added");
    site.apply(DNS);
    let (client, dns) = (
        udp(&site.inside, INSIDE, 0),
        udp(&site.outside, OUTSIDE, 53),
    );
    assert!(arrives(&client, &dns));
    for addition in [
        "nft add set inet metalmesh-firewall mine { type ipv4_addr ; flags interval ; }",
        "nft insert rule inet metalmesh-firewall forward ip saddr { 10.0.0.2, 10.0.0.9 } accept",
        "nft add map inet metalmesh-firewall mine { type ipv4_addr : counter ; flags interval ; }",
        "nft add chain inet metalmesh-firewall mine { type filter hook forward priority 0 ; }",
    ] {
        site.router.output(addition);
        assert!(!site.apply(DNS).is_empty(), "not seen: {addition}");
        assert_eq!(site.apply(DNS), Vec::new(), "not repaired: {addition}");
        assert_eq!(site.counted("cwnp/egress/dns/0").packets, 1, "{addition}");
    }
}

#[test]
fn a_refused_transaction_changes_nothing() {
    if !can_run() {
        return;
    }
    let site = Site::new("refused");
    site.apply(DNS);
    let before = site.router.output("nft -s list ruleset");
    let mut bad = site::table("");
    let forward = bad.chains.get_mut("forward").unwrap();
    let missing = Expression::Count("missing".to_owned());
    forward.rules.insert(
        0,
        NftRule {
            expressions: vec![missing],
        },
    );
    let error = site.with_kernel(|kernel| kernel.apply(&bad).unwrap_err());
    let error = error.to_string();
    assert!(
        error.starts_with("cannot add a rule to chain forward"),
        "{error}"
    );
    assert_eq!(site.router.output("nft -s list ruleset"), before);
    assert_eq!(site.apply(DNS), Vec::new());
}
