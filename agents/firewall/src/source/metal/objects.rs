//! Control's desired state as the objects of a source.

use proto_firewall::RuleContent;
use proto_mesh::{FirewallDesired, FirewallNetwork, FirewallRuleSet};
use serde::Serialize;
use serde_norway::Value;

use crate::routes::RouteDistance;
use crate::source::SourceObjects;

/// The reason why a desired state cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[error("the rules {set} cannot be read: {source}")]
pub struct ContentError {
    /// The set.
    set: String,
    source: serde_json::Error,
}

/// The objects of a desired state: networks, then the sets in control's order, the operator's first.
///
/// # Errors
/// A set does not decode. Nothing of the state is used then: what is left of an operator's rules
/// could let more pass than they do.
pub fn objects(desired: &FirewallDesired) -> Result<SourceObjects, ContentError> {
    let mut objects = SourceObjects {
        distance: RouteDistance::ordered(desired.asn, desired.distance),
        ..SourceObjects::default()
    };
    for network in &desired.networks {
        objects.firewall.networks.extend(network_object(network));
    }
    if !desired.name_servers.is_empty() {
        objects.firewall.dns_server_address = value(&desired.name_servers);
    }
    // Self-update verifies it with the keys of this host: control has none.
    if let Some(release) = &desired.release {
        objects.firewall.controller_version = Some(release.version.clone());
        objects.firewall.controller_url = Some(release.url.clone());
        objects.firewall.controller_digest = Some(release.head_digest.clone());
    }
    for set in &desired.sets {
        add(&mut objects, set)?;
    }
    Ok(objects)
}

fn network_object(network: &FirewallNetwork) -> Option<Value> {
    let kind = match network.r#type.as_str() {
        "child" | "child-shared" => "private",
        "external" => "external",
        // No rule is for the underlay, and other types have no packets of tenants.
        _ => return None,
    };
    let mut object = serde_json::json!({
        "networkID": network.network,
        "networkType": kind,
        "prefixes": network.prefixes,
        "nat": network.masquerade,
    });
    if network.vrf != 0 {
        object["vrf"] = network.vrf.into();
    } else {
        // It has no interface: there is nothing to close.
        object["interfaces"] = serde_json::json!([]);
    }
    // Absent from an older control, and for a network in which nobody else has addresses.
    if let Some(addresses) = network.addresses.as_ref().filter(|_| kind == "external") {
        object["addresses"] = addresses.prefixes.clone().into();
    }
    value(&object)
}

fn add(objects: &mut SourceObjects, set: &FirewallRuleSet) -> Result<(), ContentError> {
    let content: RuleContent =
        serde_json::from_slice(&set.content).map_err(|source| ContentError {
            set: set.id.clone(),
            source,
        })?;
    let firewall = &mut objects.firewall;
    firewall.rules.extend(values(&content.operator_rules));
    firewall.rate_limits.extend(values(&content.rate_limits));
    firewall
        .egress_rules
        .extend(values(&content.egress_addresses));
    firewall.log_accepted_connections |= content.log_accepted;
    if !content.allowed_networks.is_empty() {
        firewall.allowed_networks = value(&content.allowed_networks);
    }
    objects.cwnp.egress.extend(values(&content.egress_policies));
    objects
        .cwnp
        .ingress
        .extend(values(&content.ingress_policies));
    objects.service.extend(values(&content.load_balancers));
    Ok(())
}

fn values<T: Serialize>(list: &[T]) -> impl Iterator<Item = Value> {
    list.iter().filter_map(value)
}

/// Texts, numbers and lists of them always are values.
fn value<T: Serialize>(object: &T) -> Option<Value> {
    serde_norway::to_value(object).ok()
}

#[cfg(test)]
mod tests {
    use ipnet::IpNet;
    use proto_mesh::{FirewallAddresses, FirewallRelease};

    use super::*;
    use crate::admit::admit_objects;
    use crate::source::ControllerObjects;

    fn set(id: &str, content: &str) -> FirewallRuleSet {
        FirewallRuleSet {
            id: id.to_owned(),
            revision: 1,
            content: content.as_bytes().to_vec(),
        }
    }

    fn network(id: &str, kind: &str, vrf: u32, prefix: &str) -> FirewallNetwork {
        FirewallNetwork {
            network: id.to_owned(),
            r#type: kind.to_owned(),
            vrf,
            prefixes: vec![prefix.to_owned()],
            masquerade: false,
            addresses: None,
        }
    }

    fn desired(sets: Vec<FirewallRuleSet>) -> FirewallDesired {
        FirewallDesired {
            networks: vec![
                network("tenant", "child", 42, "10.0.0.0/8"),
                network("internet", "external", 104, "203.0.113.0/24"),
                network("underlay", "underlay", 0, "192.0.2.0/24"),
            ],
            sets,
            asn: 65_000,
            distance: 1,
            ..FirewallDesired::default()
        }
    }

    #[test]
    fn every_list_arrives_and_is_admitted() {
        let operator = r#"{
            "operator_rules": [{"name": "no-smtp", "action": "drop", "ports": [{"port": 25}]}],
            "rate_limits": [{"networkID": "internet", "rate": 100}],
            "allowed_networks": {"egress": ["0.0.0.0/0", "::/0"]}, "log_accepted": true}"#;
        let tenant = r#"{
            "egress_policies": [{"name": "web", "to": [{"cidr": "0.0.0.0/0"}],
                "ports": [{"port": 80, "endPort": 81}]}],
            "ingress_policies": [{"name": "ping", "ports": [{"protocol": "ICMP", "icmpType": 8}]}],
            "load_balancers": [{"name": "shop", "loadBalancerIPs": ["203.0.113.7"],
                "ports": [{"port": 443}]}],
            "egress_addresses": [{"networkID": "internet", "ips": ["203.0.113.50"]}]}"#;
        let state = desired(vec![set("operator", operator), set("tenant", tenant)]);
        let objects = objects(&state).unwrap();
        assert_eq!(objects.distance, RouteDistance::ordered(65_000, 1));
        let admitted = admit_objects(&ControllerObjects {
            firewall: &objects.firewall,
            cwnp: Some(&objects.cwnp),
            service: &objects.service,
        });
        assert_eq!(admitted.problems, []);
        assert_eq!(admitted.rules.networks.len(), 2);
        assert_eq!(admitted.rules.operator.len(), 1);
        assert_eq!(admitted.rules.tenant.len(), 3);
        assert!(admitted.rules.tenant.iter().all(|rule| rule.log));
        assert_eq!(admitted.rules.rate_limits.len(), 1);
        let addresses = &admitted.rules.networks[1].nat_addresses;
        assert_eq!(addresses.len(), 1);
    }

    #[test]
    fn policies_with_names_need_a_name_server() {
        let names = r#"{"egress_policies": [{"name": "api",
            "toFQDNs": [{"matchName": "api.example.com"}], "ports": [{"port": 443}]}]}"#;
        for (servers, wanted) in [
            (vec![], 0),
            (vec!["192.0.2.53"], 1),
            (vec!["2001:db8::53", "192.0.2.53"], 1),
        ] {
            let state = FirewallDesired {
                name_servers: servers.iter().map(ToString::to_string).collect(),
                ..desired(vec![set("tenant", names)])
            };
            let objects = objects(&state).unwrap();
            let admitted = admit_objects(&ControllerObjects {
                firewall: &objects.firewall,
                cwnp: Some(&objects.cwnp),
                service: &objects.service,
            });
            assert_eq!(admitted.rules.tenant.len(), wanted, "{servers:?}");
            let resolver = admitted.rules.needed_resolver();
            let asked = resolver.map_or(0, |resolver| resolver.servers.len());
            assert_eq!(asked, servers.len());
            for problem in admitted.problems.iter().map(ToString::to_string) {
                assert!(servers.is_empty(), "{problem}");
                assert!(
                    problem.contains("dns_servers of its partition"),
                    "{problem}"
                );
            }
        }
    }

    #[test]
    fn the_release_of_control_is_what_self_update_wants() {
        use agents_update::WantedRelease;

        use crate::update::RELEASE_FIELDS;
        let digest = format!("sha256:{}", "ab".repeat(32));
        let state = FirewallDesired {
            release: Some(FirewallRelease {
                version: "1.3.0".to_owned(),
                url: "https://releases.example.com/x".to_owned(),
                head_digest: digest.clone(),
            }),
            ..desired(Vec::new())
        };
        let wanted = |state: &FirewallDesired| {
            let spec = objects(state).unwrap().firewall;
            WantedRelease::parse(
                &RELEASE_FIELDS,
                spec.controller_version.as_deref(),
                spec.controller_url.as_deref(),
                spec.controller_digest.as_deref(),
            )
        };
        let found = wanted(&state).unwrap().unwrap();
        assert_eq!(found.version.to_string(), "1.3.0");
        assert_eq!(found.url, "https://releases.example.com/x");
        assert_eq!(found.head_digest.unwrap().to_string(), digest);
        assert_eq!(wanted(&desired(Vec::new())), Ok(None));
    }

    #[test]
    fn a_set_that_does_not_decode_is_no_partial_state() {
        let state = desired(vec![set("firewall/x/operator", "{"), set("tenant", "{}")]);
        let error = objects(&state).unwrap_err().to_string();
        assert!(error.contains("firewall/x/operator"), "{error}");
    }

    #[test]
    fn a_network_without_a_vrf_is_refused_alone() {
        let mut state = desired(vec![set(
            "tenant",
            r#"{"egress_policies": [{"name": "all"}]}"#,
        )]);
        state
            .networks
            .push(network("lost", "child", 0, "10.9.0.0/16"));
        let objects = objects(&state).unwrap();
        let admitted = admit_objects(&ControllerObjects {
            firewall: &objects.firewall,
            cwnp: Some(&objects.cwnp),
            service: &objects.service,
        });
        let problems: Vec<String> = admitted.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("no interface"), "{problems:?}");
        assert_eq!(admitted.rules.networks.len(), 2);
        assert_eq!(admitted.rules.tenant.len(), 1);
    }

    #[test]
    fn a_network_of_others_comes_with_the_addresses_of_the_project() {
        for (sent, wanted) in [
            (None, None),
            (Some(vec![]), Some(vec![])),
            (
                Some(vec!["203.0.113.8/31"]),
                Some(vec!["203.0.113.8/31".parse::<IpNet>().unwrap()]),
            ),
        ] {
            let mut state = desired(Vec::new());
            for network in &mut state.networks {
                network.addresses = sent.clone().map(|own| FirewallAddresses {
                    prefixes: own.into_iter().map(str::to_owned).collect(),
                });
            }
            let objects = objects(&state).unwrap();
            let admitted = admit_objects(&ControllerObjects {
                firewall: &objects.firewall,
                cwnp: Some(&objects.cwnp),
                service: &objects.service,
            });
            assert_eq!(admitted.problems, []);
            let networks = &admitted.rules.networks;
            assert_eq!(networks[0].addresses, None, "a private network");
            assert_eq!(networks[1].addresses, wanted);
        }
    }
}
