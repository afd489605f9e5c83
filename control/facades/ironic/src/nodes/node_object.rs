//! A node as the object that a client changes.

use serde_json::{Map, Value, json};

use crate::access::SeenNode;
use crate::view::{
    INTERFACE_KINDS, driver_info, instance_uuid, maintenance_reason, object_of, properties, stored,
};

/// The fields that a client may change, but for those of interfaces.
const CHANGEABLE: [&str; 25] = [
    "automated_clean",
    "chassis_uuid",
    "conductor_group",
    "description",
    "disable_power_off",
    "driver",
    "driver_info",
    "extra",
    "instance_info",
    "instance_name",
    "instance_uuid",
    "lessee",
    "maintenance",
    "name",
    "network_data",
    "owner",
    "parent_node",
    "properties",
    "protected",
    "protected_reason",
    "resource_class",
    "retired",
    "retired_reason",
    "shard",
    "uuid",
];
/// The field that only the creation of a node sets.
const OF_CREATION: &str = "uuid";
/// The fields that the creation of a node does not set.
const OF_CHANGES: [&str; 2] = ["protected", "protected_reason"];

/// The fields that a patch of a node may touch.
pub(super) fn patchable() -> Vec<String> {
    fields(|name| name != OF_CREATION)
}

/// The fields that the body of a new node may have.
pub(super) fn creatable() -> Vec<String> {
    fields(|name| !OF_CHANGES.contains(&name))
}

fn fields(is_kept: impl Fn(&str) -> bool) -> Vec<String> {
    let own = CHANGEABLE.into_iter().filter(|name| is_kept(name));
    let own = own.map(str::to_owned);
    let interfaces = INTERFACE_KINDS
        .iter()
        .map(|kind| format!("{kind}_interface"));
    own.chain(interfaces).collect()
}

/// An object with all fields, none of them set.
pub(super) fn unset_object() -> Value {
    let names = fields(|_| true).into_iter();
    let object = names.map(|name| {
        let value = match name.as_str() {
            "driver_info" | "extra" | "instance_info" | "network_data" | "properties" => json!({}),
            _ => Value::Null,
        };
        (name, value)
    });
    Value::Object(object.collect::<Map<String, Value>>())
}

/// The object of a node, which a patch is applied to. Interfaces that no client chose are `null`.
/// `is_bmc_shown` is `false` for callers that do not see the address of the BMC: a patch that tests it would
/// tell them.
pub(super) fn node_object(node: &SeenNode, is_bmc_shown: bool) -> Value {
    let content = stored(node);
    let class = node.machine.capability.resource_class.as_ref();
    let mut object = unset_object();
    let groups = [
        json!({
            "automated_clean": content.automated_clean,
            "chassis_uuid": content.chassis.map(|id| id.to_string()),
            "conductor_group": content.conductor_group,
            "description": content.description,
            "disable_power_off": content.disable_power_off,
            "driver": content.driver,
            "driver_info": driver_info(node, is_bmc_shown),
            "extra": object_of(&content.extra),
            // With its secrets: the client changes a part, and the rest stays.
            "instance_info": object_of(&content.instance_info),
            "instance_name": content.instance_name,
            "instance_uuid": instance_uuid(node).map(|id| id.to_string()),
        }),
        json!({
            "lessee": node.lessee().map(|project| project.to_string()),
            "maintenance": maintenance_reason(node).is_some(),
            "name": content.name,
            "network_data": object_of(&content.network_data),
            "owner": node.owner().map(|project| project.to_string()),
            "parent_node": content.parent.map(|id| id.to_string()),
            "properties": properties(node),
            "protected": content.protected.is_some(),
            "protected_reason": content.protected,
            "resource_class": class.map(|class| class.as_str()),
            "retired": content.retired.is_some(),
            "retired_reason": content.retired,
            "shard": content.shard,
        }),
        json!(content.interfaces),
    ];
    for (name, value) in groups.into_iter().filter_map(into_fields).flatten() {
        // A stored interface of a kind that is no more would be a field that nobody can change.
        if let Some(place) = object.get_mut(&name) {
            *place = value;
        }
    }
    object
}

fn into_fields(object: Value) -> Option<Map<String, Value>> {
    match object {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_and_creations_have_their_own_fields() {
        for (name, is_patchable, is_creatable) in [
            ("extra", true, true),
            ("power_interface", true, true),
            ("protected", true, false),
            ("uuid", false, true),
            ("traits", false, false),
            ("provision_state", false, false),
        ] {
            let name = name.to_owned();
            assert_eq!(patchable().contains(&name), is_patchable, "{name}");
            assert_eq!(creatable().contains(&name), is_creatable, "{name}");
        }
        let object = node_object(&SeenNode::of_json(json!({}), None), true);
        for name in patchable() {
            assert!(object.get(&name).is_some(), "{name}");
        }
    }
}
