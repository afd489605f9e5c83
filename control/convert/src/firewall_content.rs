//! Contents of sets of firewall rules, both ways.

use proto_firewall as stored;
use proto_public::metalmesh::admin::v1 as wire;

/// A content from the wire. Nothing of it can be malformed: its texts are checked as rules.
pub(crate) fn from_content(content: wire::FirewallRuleContent) -> stored::RuleContent {
    let firewall = content.firewall.unwrap_or_default();
    let cwnp = content.cwnp.unwrap_or_default();
    let allowed = firewall.allowed_networks.unwrap_or_default();
    let limits = firewall.rate_limits.into_iter();
    let egress = firewall.egress_rules.into_iter();
    stored::RuleContent {
        operator_rules: firewall.rules.into_iter().map(from_rule).collect(),
        egress_policies: cwnp.egress.into_iter().map(from_rule).collect(),
        ingress_policies: cwnp.ingress.into_iter().map(from_rule).collect(),
        load_balancers: content.service.into_iter().map(from_service).collect(),
        rate_limits: limits
            .map(|limit| stored::RateLimit {
                network_id: limit.network_id,
                rate: limit.rate,
            })
            .collect(),
        egress_addresses: egress
            .map(|rule| stored::EgressAddresses {
                network_id: rule.network_id,
                ips: rule.ips,
            })
            .collect(),
        allowed_networks: stored::AllowedNetworks {
            egress_prefixes: allowed.egress,
            ingress_prefixes: allowed.ingress,
        },
        log_accepted: firewall.log_accepted_connections,
    }
}

fn from_rule(rule: wire::FirewallRule) -> stored::RuleSpec {
    let blocks = |blocks: Vec<wire::FirewallAddresses>| {
        let blocks = blocks.into_iter();
        let blocks = blocks.map(|block| stored::AddressBlock {
            cidr: block.cidr,
            except: block.except,
        });
        blocks.collect()
    };
    let names = rule.to_fqdns.into_iter();
    stored::RuleSpec {
        name: rule.name,
        description: rule.description,
        action: rule.action,
        direction: rule.direction,
        from: blocks(rule.from),
        to: blocks(rule.to),
        to_fqdns: names
            .map(|name| stored::NamePattern {
                match_name: name.match_name,
                match_pattern: name.match_pattern,
            })
            .collect(),
        ports: rule.ports.into_iter().map(from_ports).collect(),
        log: rule.log,
    }
}

fn from_ports(ports: wire::FirewallPorts) -> stored::PortSpec {
    stored::PortSpec {
        protocol: ports.protocol,
        port: ports.port,
        end_port: ports.end_port,
        icmp_type: ports.icmp_type,
    }
}

fn from_service(service: wire::FirewallServiceRule) -> stored::ServiceSpec {
    stored::ServiceSpec {
        name: service.name,
        namespace: service.namespace,
        kind: service.r#type,
        load_balancer_ips: service.load_balancer_ips,
        load_balancer_source_ranges: service.load_balancer_source_ranges,
        ports: service.ports.into_iter().map(from_ports).collect(),
    }
}

/// A content for the wire.
pub(crate) fn content(content: &stored::RuleContent) -> wire::FirewallRuleContent {
    let rules = |list: &[stored::RuleSpec]| list.iter().map(rule).collect();
    let allowed = &content.allowed_networks;
    let limits = content.rate_limits.iter();
    let egress = content.egress_addresses.iter();
    wire::FirewallRuleContent {
        firewall: Some(wire::FirewallRulePart {
            rate_limits: limits
                .map(|limit| wire::FirewallRateLimit {
                    network_id: limit.network_id.clone(),
                    rate: limit.rate,
                })
                .collect(),
            egress_rules: egress
                .map(|rule| wire::FirewallEgressRule {
                    network_id: rule.network_id.clone(),
                    ips: rule.ips.clone(),
                })
                .collect(),
            allowed_networks: (!allowed.is_empty()).then(|| wire::FirewallAllowedNetworks {
                egress: allowed.egress_prefixes.clone(),
                ingress: allowed.ingress_prefixes.clone(),
            }),
            log_accepted_connections: content.log_accepted,
            rules: rules(&content.operator_rules),
        }),
        cwnp: Some(wire::FirewallPolicyPart {
            egress: rules(&content.egress_policies),
            ingress: rules(&content.ingress_policies),
        }),
        service: content.load_balancers.iter().map(service).collect(),
    }
}

fn rule(rule: &stored::RuleSpec) -> wire::FirewallRule {
    let blocks = |blocks: &[stored::AddressBlock]| {
        let blocks = blocks.iter();
        let blocks = blocks.map(|block| wire::FirewallAddresses {
            cidr: block.cidr.clone(),
            except: block.except.clone(),
        });
        blocks.collect()
    };
    let names = rule.to_fqdns.iter();
    wire::FirewallRule {
        name: rule.name.clone(),
        description: rule.description.clone(),
        action: rule.action.clone(),
        direction: rule.direction.clone(),
        from: blocks(&rule.from),
        to: blocks(&rule.to),
        to_fqdns: names
            .map(|name| wire::FirewallNames {
                match_name: name.match_name.clone(),
                match_pattern: name.match_pattern.clone(),
            })
            .collect(),
        ports: rule.ports.iter().map(ports).collect(),
        log: rule.log,
    }
}

fn ports(ports: &stored::PortSpec) -> wire::FirewallPorts {
    wire::FirewallPorts {
        protocol: ports.protocol.clone(),
        port: ports.port,
        end_port: ports.end_port,
        icmp_type: ports.icmp_type,
    }
}

fn service(service: &stored::ServiceSpec) -> wire::FirewallServiceRule {
    wire::FirewallServiceRule {
        name: service.name.clone(),
        namespace: service.namespace.clone(),
        r#type: service.kind.clone(),
        load_balancer_ips: service.load_balancer_ips.clone(),
        load_balancer_source_ranges: service.load_balancer_source_ranges.clone(),
        ports: service.ports.iter().map(ports).collect(),
    }
}
