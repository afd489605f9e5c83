//! Allocations of machines for the wire, and firewall rules in both directions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_gate::refusal::invalid;
use control_state::{self as state, Tables};
use proto_public::api::v2;
use tonic::Status;

use super::enums::{allocation_type, from_protocol, nat_type, network_type, protocol};
use super::machine_history::Viewer;
use super::{catalog, labels, layout, parse_all, time};

/// An allocation for the wire. A tenant sees no access of others to its firewall.
pub fn allocation(
    tables: &Tables,
    allocation: &state::Allocation,
    viewer: Viewer,
) -> v2::MachineAllocation {
    let access = FirewallAccess::of(allocation, viewer);
    let image = tables.get::<state::Image>(&allocation.image).map_or_else(
        || v2::Image {
            id: allocation.image.to_string(),
            meta: Some(v2::Meta::default()),
            ..Default::default()
        },
        |image| catalog::image(image),
    );
    v2::MachineAllocation {
        uuid: allocation.id.to_string(),
        meta: Some(v2::Meta {
            labels: Some(labels(&allocation.labels)),
            created_at: time(allocation.created_at),
            updated_at: time(allocation.changed_at()),
            generation: allocation.generation,
            deletion_task_id: None,
        }),
        name: allocation.name.clone(),
        description: allocation.description.clone(),
        created_by: allocation.created_by.clone(),
        project: allocation.project.to_string(),
        image: Some(image),
        filesystem_layout: Some(layout::layout(&allocation.layout)),
        networks: allocation.networks.iter().map(network).collect(),
        hostname: allocation.hostname.clone(),
        ssh_public_keys: access.ssh_public_keys,
        userdata: access.userdata,
        allocation_type: allocation_type(allocation.kind),
        firewall_rules: firewall_rules(allocation),
        dns_servers: catalog::dns(&allocation.dns_servers),
        ntp_servers: catalog::ntp(&allocation.ntp_servers),
        vpn: vpn(tables, allocation),
        placement_labels: Some(labels(&allocation.placement_labels)),
    }
}

/// The fields of an allocation that give access to the system, as its viewer sees them.
struct FirewallAccess {
    ssh_public_keys: Vec<String>,
    userdata: String,
}

impl FirewallAccess {
    /// Everything, except of a firewall: a tenant sees nothing of it; an administrator sees the user
    /// data that another one gave, or else the files that control makes.
    fn of(allocation: &state::Allocation, viewer: Viewer) -> Self {
        let is_firewall = allocation.kind == state::AllocationType::Firewall;
        if is_firewall && viewer == Viewer::Tenant {
            return Self {
                ssh_public_keys: Vec::new(),
                userdata: String::new(),
            };
        }
        let userdata = match is_firewall && allocation.userdata.is_empty() {
            true => made_userdata(allocation),
            false => allocation.userdata.clone(),
        };
        Self {
            ssh_public_keys: allocation.ssh_public_keys.clone(),
            userdata,
        }
    }
}

/// The files that control makes for a firewall, each after its path. Base64, as all user data.
fn made_userdata(allocation: &state::Allocation) -> String {
    let made = state::life::userdata_contents(allocation);
    let texts = made
        .iter()
        .map(|made| format!("# {}\n{}", made.path, made.content));
    STANDARD.encode(texts.collect::<String>())
}

/// Access to a firewall over the VPN. The key is left out: only the order of the machine itself has it.
fn vpn(tables: &Tables, allocation: &state::Allocation) -> Option<v2::MachineVpn> {
    let member = tables.get::<state::VpnMember>(&allocation.id)?;
    Some(v2::MachineVpn {
        control_plane_address: member.access.address.clone(),
        auth_key: String::new(),
        connected: member.connected,
        ips: member.ips.iter().map(ToString::to_string).collect(),
    })
}

fn network(network: &state::AllocationNetwork) -> v2::MachineNetwork {
    let texts = |nets: &[ipnet::IpNet]| nets.iter().map(ToString::to_string).collect();
    v2::MachineNetwork {
        network: network.network.to_string(),
        prefixes: texts(&network.prefixes),
        destination_prefixes: texts(&network.destination_prefixes),
        ips: network.ips.iter().map(ToString::to_string).collect(),
        network_type: network_type(network.kind),
        nat_type: nat_type(network.nat),
        vrf: network.vrf.into(),
        asn: network.asn.0,
        project: network.project.map(|project| project.to_string()),
    }
}

fn firewall_rules(allocation: &state::Allocation) -> Option<v2::FirewallRules> {
    if allocation.kind != state::AllocationType::Firewall {
        return None;
    }
    let texts = |nets: &[ipnet::IpNet]| nets.iter().map(ToString::to_string).collect();
    let egress = |rule: &state::FirewallRule| v2::FirewallEgressRule {
        protocol: protocol(rule.protocol),
        ports: rule.ports.clone(),
        to: texts(&rule.to),
        comment: rule.comment.clone(),
    };
    let ingress = |rule: &state::FirewallRule| v2::FirewallIngressRule {
        protocol: protocol(rule.protocol),
        ports: rule.ports.clone(),
        to: texts(&rule.to),
        from: texts(&rule.from),
        comment: rule.comment.clone(),
    };
    Some(v2::FirewallRules {
        egress: allocation
            .firewall_rules
            .egress
            .iter()
            .map(egress)
            .collect(),
        ingress: allocation
            .firewall_rules
            .ingress
            .iter()
            .map(ingress)
            .collect(),
    })
}

/// Firewall rules from the wire.
///
/// # Errors
/// `invalid_argument` for an unspecified protocol or a malformed prefix.
pub fn from_firewall_rules(rules: v2::FirewallRules) -> Result<state::FirewallRules, Status> {
    let proto = |number| {
        from_protocol(number).ok_or_else(|| invalid("firewall_rules.protocol", "is unspecified"))
    };
    let egress = |rule: v2::FirewallEgressRule| {
        Ok(state::FirewallRule {
            protocol: proto(rule.protocol)?,
            ports: rule.ports,
            to: parse_all("firewall_rules.egress.to", &rule.to)?,
            from: Vec::new(),
            comment: rule.comment,
        })
    };
    let ingress = |rule: v2::FirewallIngressRule| {
        Ok(state::FirewallRule {
            protocol: proto(rule.protocol)?,
            ports: rule.ports,
            to: parse_all("firewall_rules.ingress.to", &rule.to)?,
            from: parse_all("firewall_rules.ingress.from", &rule.from)?,
            comment: rule.comment,
        })
    };
    Ok(state::FirewallRules {
        egress: rules
            .egress
            .into_iter()
            .map(egress)
            .collect::<Result<_, Status>>()?,
        ingress: rules
            .ingress
            .into_iter()
            .map(ingress)
            .collect::<Result<_, Status>>()?,
    })
}
