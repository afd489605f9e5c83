//! Virtual interfaces of nodes: the networks that the next deployment is to be in.

use control_state::{DocumentKind, Network, NetworkType, NodeDocument, NodeVif, Tables};
use proto_types::{MacAddr, NetworkId, ProjectId};
use serde_json::json;
use uuid::Uuid;

use crate::access::{SeenNode, seen_node};
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::patch::ObjectReader;
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{NodeCard, cards, object_of, stored};

/// Longest id, bytes.
const ID_BYTES_MAX: usize = 255;
/// The field of a port of the network API with its network.
const NETWORK_ID: &str = "network_id";

/// A request to attach a virtual interface.
struct WantedVif<'a> {
    id: String,
    /// The port that it is to be on. `None` means any that is free.
    port: Option<Uuid>,
    /// The port group that it is to be on.
    group: Option<Uuid>,
    /// The node as the path names it.
    node: &'a SeenNode,
}

/// `GET /nodes/{node}/vifs`.
pub(super) fn list<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let node = call.node_for("baremetal:node:vif:list").await?;
        let ids = stored(&node).vifs.keys();
        let vifs: Vec<_> = ids.map(|id| json!({ "id": id })).collect();
        Ok(IronicAnswer::ok(json!({ "vifs": vifs })))
    })
}

/// `POST /nodes/{node}/vifs`.
pub(super) fn attach<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let command = call.read(|tables| {
            let node = node_for(call, tables, "baremetal:node:vif:attach")?;
            let wanted = WantedVif::parse(ObjectReader::new(call.body), &node)?;
            let vif = NodeVif {
                network: network_of(tables, call.caller.project(), &wanted.id)?,
                mac: wanted.card()?,
            };
            let mut content = node.content();
            content.vifs.insert(wanted.id, vif);
            Ok(call.node_change(&node, content))
        });
        call.propose(command.await?).await?;
        Ok(IronicAnswer::no_content())
    })
}

/// `DELETE /nodes/{node}/vifs/{vif}`.
pub(super) fn detach<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let command = call.read(|tables| {
            let node = node_for(call, tables, "baremetal:node:vif:detach")?;
            let id = canonical(call.parameter("vif"));
            let mut content = node.content();
            if content.vifs.remove(&id).is_none() {
                let node = node.id();
                return Err(IronicError::invalid(format!(
                    "Unable to detach VIF {id} from node {node} because it is not attached to it."
                )));
            }
            Ok(call.node_change(&node, content))
        });
        call.propose(command.await?).await?;
        Ok(IronicAnswer::no_content())
    })
}

fn node_for(call: &IronicCall<'_>, tables: &Tables, rule: &str) -> Result<SeenNode, IronicError> {
    let node = seen_node(tables, call.policy, call.caller, call.parameter("node"))?;
    call.require(rule, &node.target())?;
    Ok(node)
}

/// The text of an id under which it is stored: that of a UUID has dashes and lower case.
fn canonical(id: &str) -> String {
    Uuid::parse_str(id).map_or_else(|_| id.to_owned(), |id| id.to_string())
}

impl<'a> WantedVif<'a> {
    fn parse(reader: ObjectReader<'_>, node: &'a SeenNode) -> Result<Self, IronicError> {
        let id = reader.text("id")?.unwrap_or_default();
        if id.is_empty() || id.len() > ID_BYTES_MAX || id.chars().any(char::is_control) {
            let text = "id: must be that of a network, or of a port of the network API";
            return Err(IronicError::invalid(text));
        }
        let (port, group) = (reader.uuid("port_uuid")?, reader.uuid("portgroup_uuid")?);
        if port.is_some() && group.is_some() {
            let text = "Cannot specify both port_uuid and portgroup_uuid";
            return Err(IronicError::invalid(text));
        }
        let id = canonical(id);
        if stored(node).vifs.contains_key(&id) {
            let node = node.id();
            return Err(IronicError::conflict(format!(
                "Unable to attach VIF because VIF {id} is already attached to Ironic node {node}"
            )));
        }
        Ok(Self {
            id,
            port,
            group,
            node,
        })
    }

    /// The card that it comes on: one that is free, before others one that the machine boots over.
    /// `None` means that none is free, and the networks share a card.
    fn card(&self) -> Result<Option<MacAddr>, IronicError> {
        let is_chosen = |card: &NodeCard<'_>| match (self.port, self.group) {
            (Some(port), _) => card.id() == port,
            (None, Some(group)) => card.described().and_then(|port| port.group) == Some(group),
            (None, None) => true,
        };
        let chosen: Vec<NodeCard<'_>> = cards(self.node).filter(is_chosen).collect();
        if let Some(id) = self.port.or(self.group).filter(|_| chosen.is_empty()) {
            let text = format!("{id} is no port of the node, and no portgroup with ports");
            return Err(IronicError::invalid(text));
        }
        let free = chosen.into_iter().filter(|card| card.vif().is_none());
        let first = free.min_by_key(|card| (!card.boots(), card.mac));
        Ok(first.map(|card| card.mac))
    }
}

/// The network that an id stands for. `None` for one that is neither a network nor a port of the network
/// API, or that the project does not reach: it is remembered and has no effect, so that its existence is
/// not told.
///
/// # Errors
/// 400 for a network that machines are not put into.
fn network_of(
    tables: &Tables,
    project: Option<ProjectId>,
    id: &str,
) -> Result<Option<NetworkId>, IronicError> {
    let document = Uuid::parse_str(id).ok();
    let document = document.and_then(|id| tables.get::<NodeDocument>(&id));
    let port = document.filter(|document| document.kind == DocumentKind::NetworkPort);
    let network = match port {
        Some(port) if !is_own_port(port, project) => None,
        Some(port) => object_of(&port.fields)[NETWORK_ID]
            .as_str()
            .map(str::to_owned),
        None => Some(id.to_owned()),
    };
    let network = network.and_then(|network| network.parse::<NetworkId>().ok());
    let network = network.and_then(|network| tables.get::<Network>(&network));
    network.map_or(Ok(None), |network| usable(network, project))
}

fn is_own_port(port: &NodeDocument, project: Option<ProjectId>) -> bool {
    project.is_none_or(|project| port.owner == Some(project))
}

/// The id of a network that a project may put machines into. `None` if it does not reach it.
fn usable(network: &Network, project: Option<ProjectId>) -> Result<Option<NetworkId>, IronicError> {
    let is_reached = match (project, network.project) {
        (None, _) => true,
        (Some(project), Some(owner)) => project == owner,
        (Some(_), None) => network.kind != NetworkType::Underlay,
    };
    if !is_reached {
        return Ok(None);
    }
    match network.kind {
        NetworkType::Child | NetworkType::ChildShared | NetworkType::External => {
            Ok(Some(network.id.clone()))
        }
        NetworkType::Super | NetworkType::SuperNamespaced | NetworkType::Underlay => {
            let (id, kind) = (&network.id, network.kind.as_str());
            Err(IronicError::invalid(format!(
                "network {id} is of type {kind}, which machines are not put into: choose a child network \
                 or an external one"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use control_state::{NodeContent, NodePort};
    use serde_json::Value;

    use super::*;

    const GROUP: Uuid = Uuid::from_u128(1);
    const PORT: Uuid = Uuid::from_u128(2);

    fn mac(last: u8) -> MacAddr {
        MacAddr([0x52, 0x54, 0, 0, 1, last])
    }

    /// A node with three cards: the second boots, and the third is a described port of a group.
    fn node(attached: Option<u8>) -> SeenNode {
        let nic = |last: u8| json!({"name": "e", "mac": mac(last).to_string(), "boot": last == 2});
        let port = NodePort {
            id: Some(PORT),
            group: Some(GROUP),
            ..NodePort::default()
        };
        let vif = attached.map(|last| NodeVif {
            network: None,
            mac: Some(mac(last)),
        });
        let content = NodeContent {
            ports: [(mac(3), port)].into(),
            vifs: vif
                .map(|vif| ("taken".to_owned(), vif))
                .into_iter()
                .collect(),
            ..NodeContent::default()
        };
        let nics = [nic(1), nic(2), nic(3)];
        SeenNode::of_json(json!({"hardware": {"nics": nics}}), Some(content))
    }

    fn card(body: Value, attached: Option<u8>) -> Result<Option<u8>, u16> {
        let node = node(attached);
        let wanted = WantedVif::parse(ObjectReader::new(&body), &node);
        let card = wanted.and_then(|wanted| wanted.card());
        let last = card.map(|mac| mac.map(|MacAddr([.., last])| last));
        last.map_err(|error| error.status.as_u16())
    }

    #[test]
    fn a_virtual_interface_comes_on_a_free_card() {
        let group = GROUP.to_string();
        let port = PORT.to_string();
        let other = Uuid::nil().to_string();
        for (body, attached, expected) in [
            (json!({"id": "n"}), None, Ok(Some(2))),
            (json!({"id": "n"}), Some(2), Ok(Some(1))),
            (json!({"id": "n", "port_uuid": port}), None, Ok(Some(3))),
            (json!({"id": "n", "port_uuid": port}), Some(3), Ok(None)),
            (
                json!({"id": "n", "portgroup_uuid": group}),
                None,
                Ok(Some(3)),
            ),
            (json!({"id": "n", "port_uuid": other}), None, Err(400)),
            (
                json!({"id": "n", "port_uuid": port, "portgroup_uuid": group}),
                None,
                Err(400),
            ),
            (json!({"id": "taken"}), Some(1), Err(409)),
            (json!({"id": ""}), None, Err(400)),
            (json!({"id": "a\nb"}), None, Err(400)),
            (json!({}), None, Err(400)),
        ] {
            assert_eq!(
                card(body.clone(), attached),
                expected,
                "{body} {attached:?}"
            );
        }
    }

    fn network(kind: &str, project: Option<ProjectId>) -> Network {
        let network = json!({"id": "net", "meta": {}, "kind": kind, "project": project});
        serde_json::from_value(network).unwrap()
    }

    #[test]
    fn networks_that_a_project_reaches() {
        let id = |number| ProjectId::new(Uuid::from_u128(number));
        let net = || Ok(Some("net".parse::<NetworkId>().unwrap()));
        for (kind, owner, project, expected) in [
            ("child", Some(id(1)), Some(id(1)), net()),
            ("child", Some(id(1)), Some(id(2)), Ok(None)),
            ("child_shared", Some(id(1)), None, net()),
            ("external", None, Some(id(1)), net()),
            ("underlay", None, Some(id(1)), Ok(None)),
            ("underlay", None, None, Err(400)),
            ("super", None, Some(id(1)), Err(400)),
        ] {
            let found = usable(&network(kind, owner), project);
            let found = found.map_err(|error| error.status.as_u16());
            assert_eq!(found, expected, "{kind} {owner:?} {project:?}");
        }
    }

    #[test]
    fn ids_have_one_text() {
        let id = "0E21D58F5DE2495685FF33935EA1CA01";
        assert_eq!(canonical(id), "0e21d58f-5de2-4956-85ff-33935ea1ca01");
        assert_eq!(canonical("internet"), "internet");
    }
}
