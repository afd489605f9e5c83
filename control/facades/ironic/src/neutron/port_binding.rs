//! The machine that a port is bound to: the card and the addresses that the port shows.

use control_state::{AllocationNetwork, NodeDocument, Tables};
use serde_json::Value;

use crate::access::{SeenNode, find_node};
use crate::view::{PortBinding, SubnetAddress, object_of, subnet_id};

/// The binding of a port. Addresses of a machine are shown only to the project that uses it.
pub(super) fn binding(tables: &Tables, port: &NodeDocument) -> PortBinding {
    let fields = object_of(&port.fields);
    let text = |name: &str| fields[name].as_str().unwrap_or_default();
    let node = find_node(tables, text("binding:host_id"));
    let installed = node
        .as_ref()
        .and_then(|node| installed(node, port, text("network_id")));
    PortBinding {
        mac: node.as_ref().and_then(|node| card(node, port)),
        addresses: match installed {
            Some(network) => addresses(network),
            None => wanted(&fields["fixed_ips"]),
        },
        is_active: installed.is_some(),
    }
}

/// The card that the node's owner or user attached the port to.
fn card(node: &SeenNode, port: &NodeDocument) -> Option<String> {
    let record = node.record.as_ref()?;
    let vif = record.content.vifs.get(&port.id.to_string())?;
    vif.mac.map(|mac| mac.to_string())
}

/// The port's network, as the machine is installed in it.
fn installed<'n>(
    node: &'n SeenNode,
    port: &NodeDocument,
    network: &str,
) -> Option<&'n AllocationNetwork> {
    let allocation = node.machine.allocation.as_ref()?;
    let is_own = port.owner.is_none_or(|owner| owner == allocation.project);
    if !is_own || allocation.claim.is_some() {
        return None;
    }
    let mut networks = allocation.networks.iter();
    networks.find(|found| found.network.as_str() == network)
}

fn addresses(network: &AllocationNetwork) -> Vec<SubnetAddress> {
    let ips = network.ips.iter();
    ips.filter_map(|ip| {
        let prefix = network.prefixes.iter().find(|prefix| prefix.contains(ip))?;
        Some(SubnetAddress {
            subnet: subnet_id(&network.network, prefix),
            ip: *ip,
        })
    })
    .collect()
}

/// The addresses that the next installation is to get.
fn wanted(stored: &Value) -> Vec<SubnetAddress> {
    let entries = stored.as_array().map(Vec::as_slice).unwrap_or_default();
    let addresses = entries.iter().filter_map(|entry| {
        Some(SubnetAddress {
            subnet: entry["subnet_id"].as_str()?.to_owned(),
            ip: entry["ip_address"].as_str()?.parse().ok()?,
        })
    });
    addresses.collect()
}
