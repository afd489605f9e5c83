//! The networks of a deployment.

use std::net::IpAddr;
use std::sync::Arc;

use control_state::{DocumentKind, Network, NodeDocument, NodeVif, Tables, WantedNetwork};
use proto_types::{PartitionId, ProjectId};
use uuid::Uuid;

use crate::access::SeenNode;
use crate::error::IronicError;
use crate::view::{object_of, stored};

/// The networks of the node's virtual interfaces; without any, the project's only network of its own
/// that reaches the machine's partition.
///
/// # Errors
/// 400 if there is none, or more than one.
pub(super) fn wanted_networks(
    tables: &Tables,
    node: &SeenNode,
    project: ProjectId,
) -> Result<Vec<WantedNetwork>, IronicError> {
    let mut wanted: Vec<WantedNetwork> = Vec::new();
    for (id, vif) in &stored(node).vifs {
        let Some(network) = &vif.network else {
            continue;
        };
        let ips = addresses(tables, id, vif, project);
        // Two interfaces in one network are one network of the machine.
        match wanted.iter_mut().find(|known| known.network == *network) {
            Some(known) => known.ips.extend(ips),
            None => wanted.push(WantedNetwork {
                network: network.clone(),
                ips,
            }),
        }
    }
    if !wanted.is_empty() {
        return Ok(wanted);
    }
    let partition = node.machine.partition.as_ref();
    let own = own_networks(tables.all::<Network>(), project, partition);
    let only = only_network(&own, node, project)?;
    Ok(vec![WantedNetwork {
        network: only.id.clone(),
        ips: Vec::new(),
    }])
}

/// The addresses that the port behind an interface asks for: those that its project has already.
fn addresses(tables: &Tables, id: &str, vif: &NodeVif, project: ProjectId) -> Vec<IpAddr> {
    let document = Uuid::parse_str(id).ok();
    let document = document.and_then(|id| tables.get::<NodeDocument>(&id));
    let port = document.filter(|document| {
        let is_port = document.kind == DocumentKind::NetworkPort;
        is_port && document.owner.is_none_or(|owner| owner == project)
    });
    let network = vif.network.as_ref().map(|network| network.as_str());
    port.map_or_else(Vec::new, |port| fixed_addresses(port, network))
}

/// The addresses of a port of the network API, if it is still in the network of the interface.
fn fixed_addresses(port: &NodeDocument, network: Option<&str>) -> Vec<IpAddr> {
    let fields = object_of(&port.fields);
    if fields["network_id"].as_str() != network {
        return Vec::new();
    }
    let fixed = fields["fixed_ips"].as_array();
    let texts = fixed
        .into_iter()
        .flatten()
        .filter_map(|address| address["ip_address"].as_str());
    texts.filter_map(|text| text.parse().ok()).collect()
}

/// The networks of a project that machines of a partition may be in.
fn own_networks<'a>(
    networks: impl Iterator<Item = &'a Arc<Network>>,
    project: ProjectId,
    partition: Option<&PartitionId>,
) -> Vec<&'a Network> {
    let own = networks.filter(|network| {
        let is_here = network.partition.is_none() || network.partition.as_ref() == partition;
        network.kind.is_child() && network.project == Some(project) && is_here
    });
    own.map(|network| &**network).collect()
}

fn only_network<'a>(
    own: &[&'a Network],
    node: &SeenNode,
    project: ProjectId,
) -> Result<&'a Network, IronicError> {
    let id = node.id();
    match own {
        [only] => Ok(*only),
        [] => Err(IronicError::invalid(format!(
            "Node {id} has no virtual interface, and project {project} has no network that reaches it: \
             create one (metalmesh network create), or attach one (baremetal node vif attach {id} \
             NETWORK)"
        ))),
        several => {
            let count = several.len();
            Err(IronicError::invalid(format!(
                "Node {id} has no virtual interface, and project {project} has {count} networks: attach \
                 the one that is meant (baremetal node vif attach {id} NETWORK)"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use control_state::{JsonFields, Meta, NodeContent};
    use serde_json::json;

    use super::*;

    const PROJECT: &str = "00000000-0000-0000-0000-00000000000a";
    const OTHER: &str = "00000000-0000-0000-0000-00000000000b";

    fn project() -> ProjectId {
        PROJECT.parse().unwrap()
    }

    fn network(id: &str, kind: &str, owner: &str, partition: Option<&str>) -> Arc<Network> {
        let fields = json!({
            "id": id, "meta": {}, "kind": kind, "project": owner, "partition": partition,
        });
        Arc::new(serde_json::from_value(fields).unwrap())
    }

    #[test]
    fn networks_of_a_project_that_reach_a_machine() {
        let networks = [
            network("own-here", "child", PROJECT, Some("p1")),
            network("own-shared", "child_shared", PROJECT, None),
            network("own-there", "child", PROJECT, Some("p2")),
            network("own-super", "super", PROJECT, Some("p1")),
            network("other", "child", OTHER, Some("p1")),
        ];
        let partition: PartitionId = "p1".parse().unwrap();
        let own = own_networks(networks.iter(), project(), Some(&partition));
        let ids: Vec<&str> = own.iter().map(|network| network.id.as_str()).collect();
        assert_eq!(ids, ["own-here", "own-shared"]);
        let node = SeenNode::of_json(json!({}), None);
        for (count, expected) in [
            (0, Err("has no network that reaches it")),
            (1, Ok("own-here")),
            (2, Err("has 2 networks")),
        ] {
            match (only_network(&own[..count], &node, project()), expected) {
                (Ok(only), Ok(expected)) => assert_eq!(only.id.as_str(), expected),
                (Err(refused), Err(part)) => assert!(refused.text.contains(part)),
                (found, _) => panic!("{count}: {found:?}"),
            }
        }
    }

    #[test]
    fn interfaces_name_the_networks() {
        let vif = |network: Option<&str>| NodeVif {
            network: network.map(|network| network.parse().unwrap()),
            mac: None,
        };
        let content = NodeContent {
            vifs: [
                ("a".to_owned(), vif(Some("blue"))),
                ("b".to_owned(), vif(None)),
                ("c".to_owned(), vif(Some("blue"))),
                ("d".to_owned(), vif(Some("internet"))),
            ]
            .into(),
            ..NodeContent::default()
        };
        let node = SeenNode::of_json(json!({}), Some(content));
        let wanted = wanted_networks(&Tables::new(), &node, project()).unwrap();
        let ids: Vec<&str> = wanted
            .iter()
            .map(|wanted| wanted.network.as_str())
            .collect();
        assert_eq!(ids, ["blue", "internet"]);
        let plain = SeenNode::of_json(json!({}), None);
        assert!(wanted_networks(&Tables::new(), &plain, project()).is_err());
    }

    #[test]
    fn ports_of_the_network_api_have_addresses() {
        let fields = [
            ("network_id", "\"blue\""),
            (
                "fixed_ips",
                "[{\"subnet_id\":\"s\",\"ip_address\":\"10.0.0.5\"},{\"ip_address\":\"x\"}]",
            ),
        ];
        let owned = fields.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let port = NodeDocument {
            id: Uuid::from_u128(1),
            meta: Meta::default(),
            kind: DocumentKind::NetworkPort,
            name: String::new(),
            owner: None,
            public: false,
            fields: JsonFields::from(owned),
        };
        let expected: IpAddr = "10.0.0.5".parse().unwrap();
        assert_eq!(fixed_addresses(&port, Some("blue")), [expected]);
        assert_eq!(fixed_addresses(&port, Some("red")), Vec::<IpAddr>::new());
        assert_eq!(fixed_addresses(&port, None), Vec::<IpAddr>::new());
    }
}
