//! Objects and sets that need more than a firewall has are refused before the work is done.

use std::net::Ipv6Addr;

use proto_firewall::{
    AddressBlock, NamePattern, PortSpec, RuleContent, RuleOwner, RuleScope, RuleSpec, ServiceSpec,
    check, checked,
};

const SCOPE: RuleScope<'static> = RuleScope {
    owner: RuleOwner::Tenant,
    network: None,
};

/// Every IPv6 address but some scattered ones.
fn holes(count: u32) -> AddressBlock {
    let hole = |index: u32| {
        let address = Ipv6Addr::from(u128::from(index * 7 + 1) << 100 | u128::from(index));
        format!("{address}/128")
    };
    AddressBlock {
        cidr: "::/0".into(),
        except: (0..count).map(hole).collect(),
    }
}

fn hosts(count: u32, network: u32) -> Vec<AddressBlock> {
    let host = |index: u32| AddressBlock {
        cidr: format!("10.{network}.{}.{}/32", index / 128, index % 128 * 2),
        except: Vec::new(),
    };
    (0..count).map(host).collect()
}

fn egress(rules: Vec<RuleSpec>) -> RuleContent {
    RuleContent {
        egress_policies: rules,
        ..RuleContent::default()
    }
}

fn rule(index: usize, to: Vec<AddressBlock>) -> RuleSpec {
    RuleSpec {
        name: format!("r{index}"),
        to,
        ..RuleSpec::default()
    }
}

fn problems(content: &RuleContent) -> Vec<String> {
    check(content, SCOPE)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn exceptions_that_need_too_many_prefixes_are_refused() {
    for (blocks, exceptions, expected) in [
        (1, 20, ""),
        (1, 128, ""),
        (1, 256, "cwnp egress/r0: to: it needs 2"),
        (2, 256, "cwnp egress/r0: to: it needs 2"),
        (16, 256, "cwnp egress/r0: to: it needs 2"),
        (
            1,
            257,
            "to[0].except: there are 257 exceptions; use at most 256",
        ),
        (1, 6000, "to[0].except: there are 6000 exceptions"),
    ] {
        let to = vec![holes(exceptions); blocks];
        let found = problems(&egress(vec![rule(0, to)])).join("\n");
        assert!(found.contains(expected), "{blocks} {exceptions}: {found}");
        assert_eq!(found.is_empty(), expected.is_empty(), "{found}");
    }
}

#[test]
fn a_set_has_no_more_entries_than_its_owner() {
    // 128 × 128 entries each, the most that a rule may have.
    let full = |index| RuleSpec {
        from: hosts(128, 1),
        ..rule(index, hosts(128, 2))
    };
    let content = egress((0..59).map(full).collect());
    let (rules, wrong) = checked(&content, SCOPE);
    assert_eq!(
        (rules.len(), wrong.len()),
        (24, 35),
        "three quarters of a firewall"
    );
    let first = wrong[0].to_string();
    assert!(
        first.starts_with("cwnp egress/r24: ports: it needs 16384 entries"),
        "{first}"
    );
    let more = RuleSpec {
        from: hosts(129, 1),
        ..rule(0, hosts(128, 2))
    };
    assert!(problems(&egress(vec![more]))[0].contains("it needs 16512 entries"));
}

#[test]
fn objects_behind_a_set_that_is_too_large_are_not_read() {
    // Each side has every prefix that it may have, and the other family: no entry, but prefixes.
    let unpaired = |index| RuleSpec {
        from: hosts(16_384, 1),
        ..rule(index, vec![holes(1)])
    };
    let mut rules: Vec<RuleSpec> = (0..70).map(unpaired).collect();
    rules.push(rule(
        70,
        vec![AddressBlock {
            cidr: "wrong".into(),
            except: vec![],
        }],
    ));
    let found = problems(&egress(rules));
    let unread = found
        .iter()
        .filter(|text| text.contains("more than 1048576 prefixes"))
        .count();
    assert_eq!((found.len(), unread), (71, 7), "{:?}", found.last());
}

#[test]
fn names_of_all_policies_together_are_bounded() {
    let named = |index: usize| RuleSpec {
        to_fqdns: (0..64)
            .map(|name| NamePattern {
                match_name: Some(format!("N{name}.p{}.example.com.", index / 2)),
                match_pattern: None,
            })
            .collect(),
        ..rule(index, Vec::new())
    };
    assert_eq!(problems(&egress((0..12).map(named).collect())), [""; 0]);
    let found = problems(&egress((0..13).map(named).collect()));
    assert!(found[0].contains("r12: toFQDNs: all policies together have more than 384"));
}

#[test]
fn a_rule_without_an_entry_is_refused() {
    let content = egress(vec![RuleSpec {
        from: hosts(1, 1),
        ..rule(0, vec![holes(0)])
    }]);
    assert!(problems(&content)[0].contains("no address family in common"));
}

#[test]
fn services_have_addresses_that_clients_reach() {
    let network = ["10.128.0.0/22".parse().unwrap()];
    let of_network = RuleScope {
        network: Some(&network),
        ..SCOPE
    };
    for (address, scope, expected) in [
        ("203.0.113.7", SCOPE, ""),
        ("10.128.0.7", of_network, ""),
        (
            "203.0.113.7",
            of_network,
            "203.0.113.7/32 is outside of the network",
        ),
        ("127.0.0.1", SCOPE, "127.0.0.1 is no address of a service"),
        ("0.0.0.0", SCOPE, "is no address of a service"),
        ("255.255.255.255", SCOPE, "is no address of a service"),
        ("224.0.0.1", SCOPE, "is no address of a service"),
        ("::", SCOPE, "is no address of a service"),
        ("::1", SCOPE, "is no address of a service"),
        ("ff02::1", SCOPE, "is no address of a service"),
        ("::ffff:127.0.0.1", SCOPE, "is no address of a service"),
    ] {
        let content = RuleContent {
            load_balancers: vec![ServiceSpec {
                name: "shop".into(),
                load_balancer_ips: vec![address.into()],
                ports: vec![PortSpec {
                    port: Some(443),
                    ..PortSpec::default()
                }],
                ..ServiceSpec::default()
            }],
            ..RuleContent::default()
        };
        let found: Vec<String> = check(&content, scope)
            .iter()
            .map(ToString::to_string)
            .collect();
        let found = found.join("\n");
        assert!(found.contains(expected), "{address}: {found}");
        assert_eq!(found.is_empty(), expected.is_empty(), "{address}: {found}");
    }
}

#[test]
fn prefixes_have_one_reading() {
    for (text, expected) in [
        ("10.128.0.0/22", ""),
        ("fd00::/8", ""),
        ("010.128.0.0/22", "is not a prefix"),
        ("10.128.0.0/022", "is not a prefix"),
        ("10.128.0.0/+22", "is not a prefix"),
        ("10.128.0.0/33", "is not a prefix"),
        ("::ffff:010.1.1.1/128", "is not a prefix"),
        ("10.128.0.0", "is not a prefix"),
        ("0x0a.0.0.0/8", "is not a prefix"),
    ] {
        let to = AddressBlock {
            cidr: text.into(),
            except: Vec::new(),
        };
        let found = problems(&egress(vec![rule(0, vec![to])])).join("\n");
        assert!(found.contains(expected), "{text}: {found}");
        assert_eq!(found.is_empty(), expected.is_empty(), "{text}: {found}");
    }
}
