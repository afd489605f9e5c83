//! The order of a list of nodes.

use control_state::query::node_state;
use proto_types::Timestamp;
use serde_json::Value;

use super::node_filter::driver_name;
use crate::access::SeenNode;
use crate::listing::SortValue;
use crate::view::{instance_uuid, maintenance_reason, power_state, stored};

/// The fields that nodes can be sorted by.
pub(super) const NODE_SORT_KEYS: [&str; 17] = [
    "chassis_uuid",
    "conductor_group",
    "created_at",
    "description",
    "driver",
    "instance_name",
    "instance_uuid",
    "lessee",
    "maintenance",
    "name",
    "owner",
    "power_state",
    "provision_state",
    "provision_updated_at",
    "resource_class",
    "retired",
    "shard",
];

/// The value of a node that a list is sorted by. Absent for other keys: the order of ids.
pub(super) fn sort_value(node: &SeenNode, key: &str, now: Timestamp) -> SortValue {
    let content = stored(node);
    let state = || node_state(&node.machine, node.record.as_deref(), now);
    let text = |id: Option<String>| SortValue::text(id.unwrap_or_default());
    match key {
        "chassis_uuid" => text(content.chassis.map(|id| id.to_string())),
        "conductor_group" => SortValue::text(&content.conductor_group),
        "created_at" => SortValue::Number(node.machine.meta.created_at.ms()),
        "description" => SortValue::text(&content.description),
        "driver" => SortValue::text(driver_name(node)),
        "instance_name" => SortValue::text(&content.instance_name),
        "instance_uuid" => text(instance_uuid(node).map(|id| id.to_string())),
        "lessee" => text(node.lessee().map(|project| project.to_string())),
        "maintenance" => SortValue::Number(maintenance_reason(node).is_some().into()),
        "name" => SortValue::text(content.name.as_deref().unwrap_or_default()),
        "owner" => text(node.owner().map(|project| project.to_string())),
        "power_state" => match power_state(&node.machine) {
            Value::String(state) => SortValue::text(state),
            _ => SortValue::Absent,
        },
        "provision_state" => SortValue::text(state().state.as_str()),
        "provision_updated_at" => SortValue::Number(state().since.ms()),
        "resource_class" => {
            let class = node.machine.capability.resource_class.as_ref();
            SortValue::text(class.map_or("", |class| class.as_str()))
        }
        "retired" => SortValue::Number(content.retired.is_some().into()),
        "shard" => SortValue::text(&content.shard),
        _ => SortValue::Absent,
    }
}

#[cfg(test)]
mod tests {
    use control_state::NodeContent;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_key_sorts_by_a_value() {
        let id = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";
        let machine = json!({
            "meta": {"created_at": 5},
            "tenure": {"owner": id},
            "bmc": {"power_state": "off"},
            "capability": {"resource_class": "rc1"},
        });
        let content = NodeContent {
            name: Some("kn1".to_owned()),
            retired: Some(String::new()),
            ..NodeContent::default()
        };
        let node = SeenNode::of_json(machine, Some(content));
        let text = |text: &str| SortValue::Text(text.to_owned());
        for (key, expected) in [
            ("name", text("kn1")),
            ("owner", text(id)),
            ("lessee", SortValue::Absent),
            ("driver", text("metalmesh")),
            ("power_state", text("power off")),
            ("resource_class", text("rc1")),
            ("created_at", SortValue::Number(5)),
            ("retired", SortValue::Number(1)),
            ("maintenance", SortValue::Number(0)),
            ("description", SortValue::Absent),
            ("uuid", SortValue::Absent),
        ] {
            assert_eq!(sort_value(&node, key, Timestamp::ZERO), expected, "{key}");
        }
        assert!(NODE_SORT_KEYS.is_sorted());
    }
}
