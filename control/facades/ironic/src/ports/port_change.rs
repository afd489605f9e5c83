//! New ports, changes of ports, and their end.

use control_state::{NodeContent, NodePort, SetNode, Tables};
use proto_types::{MacAddr, MachineId, Timestamp};
use serde_json::Value;

use super::port_draft::{PORT_CREATABLE, PORT_PATCHABLE, PortDraft, port_object, unset_port};
use super::port_lookup::{FoundPort, machines_of_card, node_of_new, port_for};
use crate::access::{SeenNode, find_node};
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::check_names;
use crate::patch::{JsonPatch, ObjectReader};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::version::ApiVersion;
use crate::view::{NodeCard, has_port_field, port, stored};

/// The field with the node as an id or a name, and the microversion that introduced it.
const NODE_IDENT: (&str, u16) = ("node_ident", 94);

/// A change of a node's record by which a port changes.
struct PortChange {
    command: SetNode,
    /// Address of the port after the change.
    mac: MacAddr,
}

/// `POST /ports`.
pub(super) fn create<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let change = call.read(|tables| created(call, tables)).await?;
        let (machine, mac) = (change.command.machine, change.mac);
        call.propose(change.command).await?;
        let shown = call
            .read(|tables| shown(call, tables, machine, mac))
            .await?;
        let id = shown["uuid"].as_str().unwrap_or_default();
        let address = call.link(&format!("/ports/{id}"));
        Ok(IronicAnswer::created(shown, address))
    })
}

/// `PATCH /ports/{port}`.
pub(super) fn update<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let patch = JsonPatch::parse(call.body)?;
        let change = call.read(|tables| updated(call, tables, &patch)).await?;
        let (machine, mac) = (change.command.machine, change.mac);
        call.propose(change.command).await?;
        let shown = call
            .read(|tables| shown(call, tables, machine, mac))
            .await?;
        Ok(IronicAnswer::ok(shown))
    })
}

/// `DELETE /ports/{port}`.
pub(super) fn delete<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let command = call.read(|tables| {
            let found = port_for(call, tables, "baremetal:port:delete")?;
            Ok(call.node_change(&found.node, deleted(&found)?))
        });
        call.propose(command.await?).await?;
        Ok(IronicAnswer::no_content())
    })
}

fn shown(
    call: &IronicCall<'_>,
    tables: &Tables,
    machine: MachineId,
    mac: MacAddr,
) -> Result<Value, IronicError> {
    let node = find_node(tables, &machine.to_string());
    let node = node.ok_or_else(|| IronicError::not_found("Port", &mac.to_string()))?;
    let card = NodeCard { node: &node, mac };
    Ok(port(card, call.version, call.base))
}

fn created(call: &IronicCall<'_>, tables: &Tables) -> Result<PortChange, IronicError> {
    let reader = ObjectReader::new(call.body);
    let node = node_of_new(call, tables, "baremetal:port:create", node_ident(reader)?)?;
    let known: Vec<&str> = PORT_PATCHABLE
        .iter()
        .chain(&PORT_CREATABLE)
        .copied()
        .collect();
    reader.check_known(&known)?;
    check_names(body_names(call.body), call.version, has_new_field)?;
    let new = NodePort {
        id: reader.uuid("uuid")?,
        created_at: call.now(),
        ..NodePort::default()
    };
    let draft = PortDraft::parse(call.body, &unset_port(), new, stored(&node))?;
    check_is_free(tables, draft.mac)?;
    let mut content = node.content();
    content.ports.insert(draft.mac, draft.port);
    Ok(change(call, &node, content, draft.mac))
}

fn has_new_field(version: ApiVersion, name: &str) -> bool {
    let (node_ident, since) = NODE_IDENT;
    match name == node_ident {
        true => version.has(since),
        false => has_port_field(version, name),
    }
}

fn body_names(body: &Value) -> impl Iterator<Item = &str> {
    let fields = body.as_object();
    fields
        .into_iter()
        .flat_map(|fields| fields.keys())
        .map(String::as_str)
}

/// The node that a new port names.
fn node_ident(reader: ObjectReader<'_>) -> Result<&str, IronicError> {
    match (reader.text("node_uuid")?, reader.text(NODE_IDENT.0)?) {
        (Some(ident), None) | (None, Some(ident)) => Ok(ident),
        _ => {
            let text = "exactly one of node_uuid and node_ident must name the node of the port";
            Err(IronicError::invalid(text))
        }
    }
}

fn updated(
    call: &IronicCall<'_>,
    tables: &Tables,
    patch: &JsonPatch,
) -> Result<PortChange, IronicError> {
    let found = port_for(call, tables, "baremetal:port:update")?;
    patch.check_roots(&PORT_PATCHABLE)?;
    check_names(patch.roots().into_iter(), call.version, has_port_field)?;
    let before = port_object(found.card());
    let mut object = before.clone();
    patch.apply(&mut object)?;
    check_stays(&before, &object)?;
    let said = found.card().described().cloned();
    let said = said.unwrap_or_else(|| NodePort {
        created_at: found.node.machine.meta.created_at,
        ..NodePort::default()
    });
    let draft = PortDraft::parse(&object, &before, said.clone(), stored(&found.node))?;
    let mac = draft.mac;
    if mac != found.mac {
        check_is_free(tables, mac)?;
    }
    let content = changed_content(&found, &said, draft, call.now())?;
    Ok(change(call, &found.node, content, mac))
}

/// Refuses another node for a port. Whether the node exists makes no difference.
fn check_stays(before: &Value, after: &Value) -> Result<(), IronicError> {
    if before["node_uuid"] == after["node_uuid"] {
        return Ok(());
    }
    let wanted = after["node_uuid"].as_str().unwrap_or_default();
    Err(IronicError::invalid(format!(
        "Unable to apply the requested node_uuid '{wanted}'. Requested value was invalid: a port stays \
         with its node: delete it, and create it at the other one"
    )))
}

/// The record of the node with a port as a client wants it. `said` is what was said about it before.
fn changed_content(
    found: &FoundPort,
    said: &NodePort,
    draft: PortDraft,
    now: Timestamp,
) -> Result<NodeContent, IronicError> {
    let mut content = found.node.content();
    let PortDraft { mac, mut port } = draft;
    // A card that nobody changed stays undescribed.
    if port == *said && mac == found.mac {
        return Ok(content);
    }
    port.updated_at = now;
    if mac != found.mac {
        if found.card().is_present() {
            let mac = found.mac;
            let text =
                format!("address: the port is the card {mac} of the machine, which keeps it");
            return Err(IronicError::conflict(text));
        }
        // The id would follow from the new address otherwise.
        port.id = Some(found.card().id());
        content.ports.remove(&found.mac);
        for vif in content.vifs.values_mut() {
            if vif.mac == Some(found.mac) {
                vif.mac = Some(mac);
            }
        }
    }
    content.ports.insert(mac, port);
    Ok(content)
}

/// The record of the node without a port.
fn deleted(found: &FoundPort) -> Result<NodeContent, IronicError> {
    let (mac, card) = (found.mac, found.card());
    if let Some(vif) = card.vif() {
        let text = format!("port {mac}: the virtual interface {vif} is on it: detach it first");
        return Err(IronicError::conflict(text));
    }
    let mut content = found.node.content();
    if content.ports.remove(&mac).is_none() {
        let text = format!("port {mac} is a card of the machine, and goes with the card");
        return Err(IronicError::conflict(text));
    }
    Ok(content)
}

/// Refuses an address that a port has already.
fn check_is_free(tables: &Tables, mac: MacAddr) -> Result<(), IronicError> {
    if machines_of_card(tables, mac).is_empty() {
        return Ok(());
    }
    let text = format!("A port with MAC address {mac} already exists.");
    Err(IronicError::conflict(text))
}

fn change(
    call: &IronicCall<'_>,
    node: &SeenNode,
    content: NodeContent,
    mac: MacAddr,
) -> PortChange {
    PortChange {
        command: call.node_change(node, content),
        mac,
    }
}

#[cfg(test)]
mod tests {
    use control_state::NodeVif;
    use http::StatusCode;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    const CARD: MacAddr = MacAddr([0x52, 0x54, 0, 0, 1, 1]);
    const DESCRIBED: MacAddr = MacAddr([0x52, 0x54, 0, 0, 1, 2]);
    const OTHER: MacAddr = MacAddr([0x52, 0x54, 0, 0, 1, 3]);
    const NOW: Timestamp = Timestamp::from_ms(7);

    /// A port of a node with a card, a described port, and a virtual interface on the latter.
    fn found(mac: MacAddr) -> FoundPort {
        let nic = json!({"name": "e", "mac": CARD.to_string()});
        let vif = NodeVif {
            network: None,
            mac: Some(DESCRIBED),
        };
        let content = NodeContent {
            ports: [(DESCRIBED, NodePort::default())].into(),
            vifs: [("v".to_owned(), vif)].into(),
            ..NodeContent::default()
        };
        let node = SeenNode::of_json(json!({"hardware": {"nics": [nic]}}), Some(content));
        FoundPort { node, mac }
    }

    fn draft(mac: MacAddr, name: &str) -> PortDraft {
        PortDraft {
            mac,
            port: NodePort {
                name: name.to_owned(),
                ..NodePort::default()
            },
        }
    }

    fn changed(found: &FoundPort, draft: PortDraft) -> Result<NodeContent, IronicError> {
        changed_content(found, &NodePort::default(), draft, NOW)
    }

    #[test]
    fn a_changed_port_keeps_its_place() {
        let unchanged = changed(&found(DESCRIBED), draft(DESCRIBED, "")).unwrap();
        assert_eq!(unchanged, found(DESCRIBED).node.content());
        let card = changed(&found(CARD), draft(CARD, "")).unwrap();
        assert_eq!(card, found(CARD).node.content());
        let named = changed(&found(CARD), draft(CARD, "p")).unwrap();
        assert_eq!(named.ports.len(), 2);
        assert_eq!(named.ports[&CARD].name, "p");
        assert_eq!(named.ports[&CARD].id, None);
        assert_eq!(named.ports[&CARD].updated_at, NOW);
    }

    #[test]
    fn a_port_with_another_address_keeps_its_id() {
        let before = found(DESCRIBED);
        let moved = changed(&before, draft(OTHER, "")).unwrap();
        assert_eq!(moved.ports.keys().copied().collect::<Vec<_>>(), [OTHER]);
        assert_eq!(moved.ports[&OTHER].id, Some(before.card().id()));
        assert_eq!(moved.vifs["v"].mac, Some(OTHER));
        let card = changed(&found(CARD), draft(OTHER, "")).unwrap_err();
        assert_eq!(card.status, StatusCode::CONFLICT);
    }

    #[test]
    fn ports_of_the_hardware_and_in_use_are_not_deleted() {
        let card = deleted(&found(CARD)).unwrap_err();
        assert!(card.text.contains("goes with the card"), "{card:?}");
        let in_use = deleted(&found(DESCRIBED)).unwrap_err();
        assert!(in_use.text.contains("detach it first"), "{in_use:?}");
        let mut free = found(DESCRIBED);
        free.node = SeenNode::of_json(
            json!({}),
            Some(NodeContent {
                ports: [(DESCRIBED, NodePort::default())].into(),
                ..NodeContent::default()
            }),
        );
        assert!(deleted(&free).unwrap().ports.is_empty());
    }

    #[test]
    fn a_port_stays_with_its_node() {
        let id = Uuid::nil().to_string();
        let of = |node: &str| json!({ "node_uuid": node });
        assert!(check_stays(&of(&id), &of(&id)).is_ok());
        let refused = check_stays(&of(&id), &of("other")).unwrap_err();
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert!(check_stays(&of(&id), &json!({})).is_err());
    }
}
