//! Fields that were written without what they are for: a template that had nothing to fill in.

use agents_firewall::admit::admit;
use agents_firewall::config::Config;

use crate::tables::{HEAD, TAIL};

/// The problems of a configuration.
fn problems(rest: &str) -> Vec<String> {
    let config = Config::parse(&format!("{HEAD}{rest}{TAIL}")).unwrap();
    let admitted = admit(&config);
    admitted.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_field_without_a_value_is_not_everything() {
    for (rest, expected) in [
        (
            "    cwnp:\n      egress:\n      - name: web\n        ports:\n        to:\n",
            "cwnp egress[0]: ports: it has no value; give it one",
        ),
        (
            "    cwnp: {egress: [{name: web, to: []}]}\n",
            "cwnp egress[0]: to: the list is empty; name what",
        ),
        (
            "    cwnp: {ingress: [{name: web, from: []}]}\n",
            "cwnp ingress[0]: from: the list is empty; name what",
        ),
        (
            "    cwnp: {egress: [{name: web, ports: [{protocol: UDP, port: }]}]}\n",
            "cwnp egress[0]: ports[0].port: it has no value",
        ),
        (
            "    cwnp: {egress: [{name: web, toFQDNs: []}]}\n",
            "cwnp egress[0]: toFQDNs: the list is empty",
        ),
        (
            "    cwnp: {policies: [{name: web, egress: [{to: }]}]}\n",
            "cwnp policies[0]: egress[0].to: it has no value",
        ),
        (
            "      rules: [{name: x, action: accept, from: []}]\n",
            "firewall rules[0]: from: the list is empty",
        ),
        (
            "      allowedNetworks:\n",
            "firewall allowedNetworks: the object: it has no value",
        ),
        (
            "      allowedNetworks: {egress: }\n",
            "firewall allowedNetworks: egress: it has no value",
        ),
        (
            "    service: [{name: x, loadBalancerIPs: [203.0.113.7], ports: [{port: 1}], \
             loadBalancerSourceRanges: []}]\n",
            "service [0]: loadBalancerSourceRanges: the list is empty",
        ),
    ] {
        let found = problems(rest);
        assert_eq!(found.len(), 1, "{rest}: {found:?}");
        assert!(found[0].starts_with(expected), "{rest}: {found:?}");
    }
}

/// A `ClusterwideNetworkPolicy` may have them, and means everything.
#[test]
fn a_policy_of_a_cluster_has_the_meaning_of_kubernetes() {
    let rest = "    cwnp: {policies: [{name: web, egress: [{to: [], ports: []}]}]}\n";
    assert_eq!(problems(rest), Vec::<String>::new());
}
