//! New port groups, changes of port groups, and their end.

use control_state::{JsonFields, NodeContent, NodePortGroup, SetNode, Tables};
use proto_types::{MachineId, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use super::group_draft::{
    GROUP_CREATABLE, GROUP_PATCHABLE, drafted_group, group_object, unset_group,
};
use super::port_lookup::{FoundGroup, group_for, node_of_new};
use crate::access::{SeenNode, find_node};
use crate::answer::IronicAnswer;
use crate::error::IronicError;
use crate::listing::check_names;
use crate::patch::{JsonPatch, ObjectReader};
use crate::request::IronicCall;
use crate::route::HandlerFuture;
use crate::view::{has_portgroup_field, portgroup, stored};

/// A change of a node's record by which a port group changes.
struct GroupChange {
    command: SetNode,
    group: Uuid,
}

/// `POST /portgroups`.
pub(super) fn create<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let new_id = Uuid::new_v4();
        let change = call.read(|tables| created(call, tables, new_id)).await?;
        let (machine, group) = (change.command.machine, change.group);
        call.propose(change.command).await?;
        let shown = call
            .read(|tables| shown(call, tables, machine, group))
            .await?;
        let address = call.link(&format!("/portgroups/{group}"));
        Ok(IronicAnswer::created(shown, address))
    })
}

/// `PATCH /portgroups/{portgroup}`.
pub(super) fn update<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let patch = JsonPatch::parse(call.body)?;
        let change = call.read(|tables| updated(call, tables, &patch)).await?;
        let (machine, group) = (change.command.machine, change.group);
        call.propose(change.command).await?;
        let shown = call
            .read(|tables| shown(call, tables, machine, group))
            .await?;
        Ok(IronicAnswer::ok(shown))
    })
}

/// `DELETE /portgroups/{portgroup}`.
pub(super) fn delete<'a>(call: &'a IronicCall<'a>) -> HandlerFuture<'a> {
    Box::pin(async move {
        let command = call.read(|tables| {
            let found = group_for(call, tables, "baremetal:portgroup:delete")?;
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
    id: Uuid,
) -> Result<Value, IronicError> {
    let absent = || IronicError::not_found("Portgroup", &id.to_string());
    let node = find_node(tables, &machine.to_string()).ok_or_else(absent)?;
    let mut groups = stored(&node).groups.iter();
    let group = groups.find(|group| group.id == id).ok_or_else(absent)?;
    Ok(portgroup(&node, group, call.version, call.base))
}

fn created(
    call: &IronicCall<'_>,
    tables: &Tables,
    new_id: Uuid,
) -> Result<GroupChange, IronicError> {
    let reader = ObjectReader::new(call.body);
    let ident = reader.text("node_uuid")?;
    let ident = ident.ok_or_else(|| IronicError::invalid("'node_uuid' is a required property"))?;
    let node = node_of_new(call, tables, "baremetal:portgroup:create", ident)?;
    let known: Vec<&str> = GROUP_PATCHABLE
        .into_iter()
        .chain([GROUP_CREATABLE])
        .collect();
    reader.check_known(&known)?;
    let mut object = unset_group();
    if let Value::Object(body) = call.body {
        let names = body.keys().map(String::as_str);
        check_names(names, call.version, has_portgroup_field)?;
        for (name, value) in body {
            object[name.as_str()] = value.clone();
        }
    }
    let new = NodePortGroup {
        id: reader.uuid("uuid")?.unwrap_or(new_id),
        name: String::new(),
        address: None,
        fields: JsonFields::new(),
        created_at: call.now(),
        updated_at: Timestamp::ZERO,
    };
    let group = drafted_group(&object, &unset_group(), new)?;
    let id = group.id;
    let mut content = node.content();
    if content.groups.iter().any(|known| known.id == id) {
        let text = format!("A portgroup with UUID {id} already exists.");
        return Err(IronicError::conflict(text));
    }
    content.groups.push(group);
    Ok(change(call, &node, content, id))
}

fn updated(
    call: &IronicCall<'_>,
    tables: &Tables,
    patch: &JsonPatch,
) -> Result<GroupChange, IronicError> {
    let found = group_for(call, tables, "baremetal:portgroup:update")?;
    patch.check_roots(&GROUP_PATCHABLE)?;
    check_names(patch.roots().into_iter(), call.version, has_portgroup_field)?;
    let before = group_object(&found.node, &found.group);
    let mut object = before.clone();
    patch.apply(&mut object)?;
    if before["node_uuid"] != object["node_uuid"] {
        let wanted = object["node_uuid"].as_str().unwrap_or_default();
        return Err(IronicError::invalid(format!(
            "Unable to apply the requested node_uuid '{wanted}'. Requested value was invalid: a \
             portgroup stays with its node: delete it, and create it at the other one"
        )));
    }
    let drafted = drafted_group(&object, &before, found.group.clone())?;
    Ok(change(
        call,
        &found.node,
        changed_content(&found, drafted, call.now()),
        found.group.id,
    ))
}

/// The record of the node with a port group as a client wants it.
fn changed_content(found: &FoundGroup, drafted: NodePortGroup, now: Timestamp) -> NodeContent {
    let mut content = found.node.content();
    if drafted == found.group {
        return content;
    }
    for group in &mut content.groups {
        if group.id == drafted.id {
            *group = NodePortGroup {
                updated_at: now,
                ..drafted.clone()
            };
        }
    }
    content
}

/// The record of the node without a port group.
fn deleted(found: &FoundGroup) -> Result<NodeContent, IronicError> {
    let id = found.group.id;
    let mut content = found.node.content();
    if content.ports.values().any(|port| port.group == Some(id)) {
        let text =
            format!("Cannot complete the requested action because portgroup {id} contains ports.");
        return Err(IronicError::invalid(text));
    }
    content.groups.retain(|group| group.id != id);
    Ok(content)
}

fn change(
    call: &IronicCall<'_>,
    node: &SeenNode,
    content: NodeContent,
    group: Uuid,
) -> GroupChange {
    GroupChange {
        command: call.node_change(node, content),
        group,
    }
}

#[cfg(test)]
mod tests {
    use control_state::NodePort;
    use proto_types::MacAddr;
    use serde_json::json;

    use super::*;

    const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0, 1, 1]);

    fn group(number: u128) -> NodePortGroup {
        NodePortGroup {
            id: Uuid::from_u128(number),
            name: String::new(),
            address: None,
            fields: JsonFields::new(),
            created_at: Timestamp::ZERO,
            updated_at: Timestamp::ZERO,
        }
    }

    /// The first of two groups; a port is in the second one.
    fn found(number: u128) -> FoundGroup {
        let port = NodePort {
            group: Some(Uuid::from_u128(2)),
            ..NodePort::default()
        };
        let content = NodeContent {
            groups: vec![group(1), group(2)],
            ports: [(MAC, port)].into(),
            ..NodeContent::default()
        };
        FoundGroup {
            node: SeenNode::of_json(json!({}), Some(content)),
            group: group(number),
        }
    }

    #[test]
    fn one_group_changes() {
        let now = Timestamp::from_ms(7);
        let unchanged = changed_content(&found(1), group(1), now);
        assert_eq!(unchanged, found(1).node.content());
        let named = NodePortGroup {
            name: "pg".to_owned(),
            ..group(1)
        };
        let changed = changed_content(&found(1), named, now);
        assert_eq!(changed.groups[0].name, "pg");
        assert_eq!(changed.groups[0].updated_at, now);
        assert_eq!(changed.groups[1], group(2));
    }

    #[test]
    fn groups_with_ports_stay() {
        let content = deleted(&found(1)).unwrap();
        assert_eq!(content.groups, [group(2)]);
        let refused = deleted(&found(2)).unwrap_err();
        assert!(refused.text.contains("contains ports"), "{refused:?}");
    }
}
