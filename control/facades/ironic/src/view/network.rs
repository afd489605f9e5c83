//! Networks, subnets and ports, as the network API shows them.

use std::net::IpAddr;

use control_state::{Network, NetworkType, NodeDocument};
use proto_types::{IpNet, NetworkId};
use serde_json::{Value, json};

use super::{object_of, text_or_null, time};

/// Separates the parts of a subnet's id.
const SUBNET_SEPARATOR: char = '_';

/// The part of a port that its document does not have: the machine knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PortBinding {
    /// The card that it is on. `None` means none yet.
    pub(crate) mac: Option<String>,
    /// Its addresses, each with its subnet. Empty means none yet.
    pub(crate) addresses: Vec<SubnetAddress>,
    /// `true` if the machine is installed into the port's network.
    pub(crate) is_active: bool,
}

/// An address in a subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubnetAddress {
    /// Id of the subnet.
    pub(crate) subnet: String,
    /// The address.
    pub(crate) ip: IpAddr,
}

/// The id of the subnet that stands for a prefix of a network.
pub(crate) fn subnet_id(network: &NetworkId, prefix: &IpNet) -> String {
    let (address, length) = (prefix.addr(), prefix.prefix_len());
    format!("{network}{SUBNET_SEPARATOR}{address}{SUBNET_SEPARATOR}{length}")
}

/// The network and the prefix of a subnet's id. `None` if it is none.
pub(crate) fn subnet_of_id(id: &str) -> Option<(NetworkId, IpNet)> {
    let mut parts = id.rsplitn(3, SUBNET_SEPARATOR);
    let (length, address, network) = (parts.next()?, parts.next()?, parts.next()?);
    let prefix = IpNet::new(address.parse().ok()?, length.parse().ok()?).ok()?;
    Some((network.parse().ok()?, prefix))
}

/// A network. `mtu` is that of its partition.
pub(crate) fn network(network: &Network, mtu: u32) -> Value {
    let project = network.project.map(|project| project.to_string());
    let name = network.name.as_deref().unwrap_or(network.id.as_str());
    let subnets: Vec<String> = network
        .prefixes
        .iter()
        .map(|prefix| subnet_id(&network.id, prefix))
        .collect();
    json!({
        "id": network.id.as_str(),
        "name": name,
        "description": network.description.as_deref().unwrap_or_default(),
        "project_id": project,
        "tenant_id": project,
        "shared": project.is_none() || network.kind == NetworkType::ChildShared,
        "router:external": network.kind == NetworkType::External,
        "admin_state_up": true,
        "status": "ACTIVE",
        "mtu": mtu,
        "subnets": subnets,
        "provider:segmentation_id": network.vrf,
        "created_at": time(network.meta.created_at),
        "updated_at": time(network.meta.updated_at),
    })
}

/// A subnet: a prefix of a network. Machines have static addresses in it.
pub(crate) fn subnet(network: &Network, prefix: &IpNet, dns: &[IpAddr]) -> Value {
    let project = network.project.map(|project| project.to_string());
    let dns: Vec<String> = dns.iter().map(ToString::to_string).collect();
    json!({
        "id": subnet_id(&network.id, prefix),
        "name": prefix.to_string(),
        "description": "",
        "network_id": network.id.as_str(),
        "project_id": project,
        "tenant_id": project,
        "cidr": prefix.to_string(),
        "ip_version": if prefix.addr().is_ipv4() { 4 } else { 6 },
        "enable_dhcp": false,
        "gateway_ip": null,
        "dns_nameservers": dns,
        "host_routes": [],
        "allocation_pools": [],
        "ipv6_address_mode": null,
        "ipv6_ra_mode": null,
        "created_at": time(network.meta.created_at),
        "updated_at": time(network.meta.updated_at),
    })
}

/// A port.
pub(crate) fn network_port(document: &NodeDocument, binding: &PortBinding) -> Value {
    let fields = object_of(&document.fields);
    let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
    let project = document.owner.map(|project| project.to_string());
    let addresses = binding.addresses.iter();
    let addresses: Vec<Value> = addresses
        .map(|address| json!({"subnet_id": address.subnet, "ip_address": address.ip.to_string()}))
        .collect();
    json!({
        "id": document.id.to_string(),
        "name": text("name"),
        "description": text("description"),
        "network_id": text("network_id"),
        "project_id": project,
        "tenant_id": project,
        "mac_address": text_or_null(binding.mac.as_deref().unwrap_or_default()),
        "fixed_ips": addresses,
        "binding:host_id": text("binding:host_id"),
        "binding:vnic_type": "baremetal",
        "device_id": text("device_id"),
        "device_owner": text("device_owner"),
        "admin_state_up": true,
        "status": if binding.is_active { "ACTIVE" } else { "DOWN" },
        "revision_number": document.meta.generation,
        "created_at": time(document.meta.created_at),
        "updated_at": time(document.meta.updated_at),
    })
}

#[cfg(test)]
mod tests {
    use control_state::{DocumentKind, JsonFields, Meta};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn ids_of_subnets_come_back() {
        for (network, prefix) in [
            ("internet", "192.0.2.0/24"),
            ("a_b", "10.0.0.0/22"),
            ("0e21d58f-5de2-4956-85ff-33935ea1ca01", "2001:db8::/64"),
        ] {
            let (network, prefix): (NetworkId, IpNet) =
                (network.parse().unwrap(), prefix.parse().unwrap());
            let id = subnet_id(&network, &prefix);
            assert_eq!(subnet_of_id(&id), Some((network, prefix)), "{id}");
        }
        for malformed in ["", "internet", "internet_10.0.0.0", "internet_10.0.0.0_99"] {
            assert_eq!(subnet_of_id(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn a_port_shows_its_addresses() {
        let fields = [("network_id", "\"internet\""), ("name", "\"web\"")];
        let owned = fields.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let document = NodeDocument {
            id: Uuid::from_u128(7),
            meta: Meta::default(),
            kind: DocumentKind::NetworkPort,
            name: String::new(),
            owner: None,
            public: false,
            fields: JsonFields::from(owned),
        };
        let free = network_port(&document, &PortBinding::default());
        assert_eq!(free["network_id"], "internet");
        assert_eq!(free["name"], "web");
        assert_eq!(free["status"], "DOWN");
        assert!(free["mac_address"].is_null() && free["project_id"].is_null());
        let bound = PortBinding {
            mac: Some("02:00:00:00:00:01".to_owned()),
            addresses: vec![SubnetAddress {
                subnet: "internet_192.0.2.0_24".to_owned(),
                ip: IpAddr::from([192, 0, 2, 9]),
            }],
            is_active: true,
        };
        let shown = network_port(&document, &bound);
        assert_eq!(shown["fixed_ips"][0]["ip_address"], "192.0.2.9");
        assert_eq!(shown["mac_address"], "02:00:00:00:00:01");
        assert_eq!(shown["status"], "ACTIVE");
    }
}
