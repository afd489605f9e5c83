//! Fuzzes the contents of firewall rules: what tenants write into control, and what the agent reads
//! of it.

use agents_firewall::admit::admit_objects;
use agents_firewall::source::ControllerObjects;
use agents_firewall::source::metal::objects;
use bolero::check;
use proto_firewall::{RuleContent, RuleOwner, RuleScope, check as violations, checked};
use proto_mesh::{FirewallDesired, FirewallRuleSet};

/// Words of contents, so that random bytes make some that are nearly right.
const WORDS: &[&str] = &[
    "\"egress_policies\":[{",
    "\"operator_rules\":[{",
    "\"load_balancers\":[{",
    "\"name\":\"a\",",
    "\"name\":\"A b\",",
    "\"from\":[{\"cidr\":\"10.0.0.0/8\"}],",
    "\"to\":[{\"cidr\":\"fd00::/8\",\"except\":[\"fd00::/9\"]}],",
    "\"toFQDNs\":[{\"matchPattern\":\"*.a\"}],",
    "\"ports\":[{\"port\":80,\"endPort\":70000}],",
    "\"action\":\"drop\",",
    "\"direction\":\"any\"",
    "}],",
    "}]",
];

fn assert_sound(text: &[u8]) {
    let desired = FirewallDesired {
        sets: vec![FirewallRuleSet {
            content: text.to_vec(),
            ..FirewallRuleSet::default()
        }],
        ..FirewallDesired::default()
    };
    let read = objects(&desired);
    let Ok(content) = serde_json::from_slice::<RuleContent>(text) else {
        assert!(read.is_err());
        return;
    };
    assert!(read.is_ok());
    let network = ["10.0.0.0/16".parse().ok()];
    let network: Vec<_> = network.into_iter().flatten().collect();
    for owner in [RuleOwner::Operator, RuleOwner::Tenant] {
        for network in [None, Some(network.as_slice())] {
            let scope = RuleScope { owner, network };
            let wrong = violations(&content, scope);
            let (rules, refused) = checked(&content, scope);
            assert!(refused.len() <= wrong.len());
            assert!(rules.len() + refused.len() <= content.objects());
            assert!(wrong.iter().all(|violation| !violation.object.is_empty()));
        }
    }
}

#[test]
fn fuzz_firewall_rule_content() {
    check!().for_each(|bytes: &[u8]| {
        assert_sound(bytes);
        let words = bytes
            .iter()
            .map(|byte| WORDS[usize::from(*byte) % WORDS.len()]);
        let text: String = words.collect();
        assert_sound(format!("{{{text}}}").as_bytes());
    });
}

/// Whatever control names as servers, the agent asks hosts, or nobody.
#[test]
fn fuzz_firewall_name_servers() {
    check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let desired = FirewallDesired {
            name_servers: text.split(',').map(str::to_owned).collect(),
            ..FirewallDesired::default()
        };
        let read = objects(&desired).unwrap();
        let admitted = admit_objects(&ControllerObjects {
            firewall: &read.firewall,
            cwnp: Some(&read.cwnp),
            service: &read.service,
        });
        match admitted.rules.resolver {
            None => assert!(!admitted.problems.is_empty()),
            Some(resolver) => {
                assert_eq!(resolver.servers.len(), desired.name_servers.len());
                let mut servers = resolver.servers.iter().map(|server| server.ip());
                assert!(servers.all(|ip| !ip.is_unspecified() && !ip.is_multicast()));
            }
        }
    });
}
