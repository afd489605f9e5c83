//! A node.

use control_state::query::NodeState;
use control_state::{NodeContent, ProvisionState};
use proto_types::{ProjectId, Timestamp};
use serde_json::{Map, Value, json};

use super::node_info::{
    boot_mode, driver_info, driver_internal_info, instance_info, instance_uuid, maintenance_reason,
    properties, stored,
};
use super::{
    HARDWARE_TYPES, INTERFACE_KINDS, NodeMasks, has_node_field, interfaces, links, object_of,
    power_state, text_or_null, time, time_or_null,
};
use crate::access::SeenNode;
use crate::version::ApiVersion;

/// The parts of a node's JSON that the node itself does not have.
#[derive(Debug)]
pub(crate) struct NodeView<'a> {
    /// The microversion, which decides about fields.
    pub(crate) version: ApiVersion,
    /// Address of the facade without a slash at its end.
    pub(crate) base: &'a str,
    /// Fields that the caller does not see.
    pub(crate) masks: NodeMasks,
    /// `true` if the caller sees the address of the BMC, where its driver's fields are shown.
    pub(crate) is_bmc_shown: bool,
    /// Its provision state.
    pub(crate) state: NodeState,
    /// The power that an order leads to; `Null` if there is none.
    pub(crate) target_power_state: Value,
    /// Time of the last sign of life of the machine; zero means never.
    pub(crate) last_heard: Timestamp,
    /// Name of the control node that leads; empty if none is known.
    pub(crate) conductor: &'a str,
}

/// A node with all fields that its microversion has.
pub(crate) fn node(node: &SeenNode, shown: &NodeView<'_>) -> Value {
    let groups = [
        head(node),
        tenancy(node, shown),
        state(node, shown),
        flags(node),
        hardware_interfaces(stored(node)),
        information(node, shown),
        unused(),
        addresses(node, shown.base),
    ];
    let mut all = Map::new();
    for group in groups {
        if let Value::Object(fields) = group {
            all.extend(fields);
        }
    }
    shown.masks.apply(&mut all);
    all.retain(|name, _| has_node_field(shown.version, name));
    Value::Object(all)
}

/// A node as lists have it.
pub(crate) fn node_summary(node: &SeenNode, state: ProvisionState, base: &str) -> Value {
    json!({
        "uuid": node.id().to_string(),
        "name": stored(node).name,
        "instance_uuid": instance_uuid(node).map(|id| id.to_string()),
        "maintenance": maintenance_reason(node).is_some(),
        "power_state": power_state(&node.machine),
        "provision_state": state.as_str(),
        "links": links(&address(node, base)),
    })
}

fn address(node: &SeenNode, base: &str) -> String {
    format!("{base}/v1/nodes/{}", node.id())
}

fn head(node: &SeenNode) -> Value {
    let content = stored(node);
    let created_at = node.machine.meta.created_at;
    let record = node.record.as_ref();
    let changed = record.map_or(Timestamp::ZERO, |record| record.meta.updated_at);
    let changed = changed.max(node.machine.meta.updated_at);
    let updated_at = (changed > created_at).then(|| time(changed));
    let driver = match content.driver.as_str() {
        "" => HARDWARE_TYPES[0],
        driver => driver,
    };
    json!({
        "uuid": node.id().to_string(),
        "created_at": time(created_at),
        "updated_at": updated_at,
        "name": content.name,
        "description": text_or_null(&content.description),
        "driver": driver,
        "conductor_group": content.conductor_group,
        "chassis_uuid": content.chassis.map(|id| id.to_string()),
        "shard": text_or_null(&content.shard),
        "parent_node": content.parent.map(|id| id.to_string()),
    })
}

fn tenancy(node: &SeenNode, shown: &NodeView<'_>) -> Value {
    let text = |project: Option<ProjectId>| project.map(|project| project.to_string());
    let capability = &node.machine.capability;
    let class = capability.resource_class.as_ref();
    let traits: Vec<&str> = capability.traits.iter().map(|name| name.as_str()).collect();
    let held = node.machine.tenure.reserved_by;
    json!({
        "owner": text(node.owner()),
        "lessee": text(node.lessee()),
        "resource_class": class.map(|class| class.as_str()),
        "traits": traits,
        "instance_uuid": instance_uuid(node).map(|id| id.to_string()),
        "instance_name": text_or_null(&stored(node).instance_name),
        "allocation_uuid": held.map(|held| held.to_string()),
        "conductor": text_or_null(shown.conductor),
        "reservation": null,
    })
}

fn state(node: &SeenNode, shown: &NodeView<'_>) -> Value {
    let state = &shown.state;
    json!({
        "provision_state": state.state.as_str(),
        "target_provision_state": state.target.map(ProvisionState::as_str),
        "provision_updated_at": time_or_null(state.since),
        "last_error": text_or_null(&state.error),
        "power_state": power_state(&node.machine),
        "target_power_state": shown.target_power_state,
        "boot_mode": boot_mode(&node.machine),
        "secure_boot": null,
        "console_enabled": false,
        "fault": null,
        "health": null,
    })
}

fn flags(node: &SeenNode) -> Value {
    let content = stored(node);
    let reason = |reason: Option<&str>| reason.map_or(Value::Null, text_or_null);
    let maintenance = maintenance_reason(node);
    json!({
        "maintenance": maintenance.is_some(),
        "maintenance_reason": reason(maintenance),
        "protected": content.protected.is_some(),
        "protected_reason": reason(content.protected.as_deref()),
        "retired": content.retired.is_some(),
        "retired_reason": reason(content.retired.as_deref()),
        "automated_clean": content.automated_clean,
        "disable_power_off": content.disable_power_off,
    })
}

fn hardware_interfaces(content: &NodeContent) -> Value {
    let fields = INTERFACE_KINDS.iter().map(|kind| {
        let name = format!("{kind}_interface");
        let enabled = interfaces(kind).unwrap_or_default();
        let default = enabled.first().copied().unwrap_or_default();
        let set = content.interfaces.get(&name);
        let value = set.map_or(default, String::as_str);
        (name, Value::from(value))
    });
    Value::Object(fields.collect())
}

fn information(node: &SeenNode, shown: &NodeView<'_>) -> Value {
    let content = stored(node);
    json!({
        "properties": properties(node),
        "driver_info": driver_info(node, shown.is_bmc_shown),
        "driver_internal_info": driver_internal_info(&node.machine, shown.last_heard),
        "extra": object_of(&content.extra),
        "instance_info": instance_info(content),
        "network_data": object_of(&content.network_data),
    })
}

/// Fields of interfaces and steps that metalmesh does not have.
fn unused() -> Value {
    json!({
        "clean_step": {},
        "deploy_step": {},
        "service_step": {},
        "raid_config": {},
        "target_raid_config": {},
        "inspection_started_at": null,
        "inspection_finished_at": null,
    })
}

fn addresses(node: &SeenNode, base: &str) -> Value {
    let own = address(node, base);
    let below = |part: &str| links(&format!("{own}/{part}"));
    json!({
        "links": links(&own),
        "ports": below("ports"),
        "portgroups": below("portgroups"),
        "states": below("states"),
        "volume": below("volume"),
    })
}

#[cfg(test)]
mod tests {
    use control_state::NodeMaintenance;

    use super::*;
    use crate::view::NODE_FIELDS;

    const ID: &str = "1ab63b9e-66d7-4cd7-8618-dddd0f9f7881";
    const OWNER: &str = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";
    const LESSEE: &str = "f11853c7-fa9c-4db3-a477-c9d8e0dbbf13";

    fn machine() -> Value {
        json!({
            "id": ID,
            "meta": {"created_at": 1000, "updated_at": 1000, "generation": 1},
            "phase": "waiting",
            "since": 2000,
            "dirty": false,
            "bmc": {"address": "10.0.0.9", "power_state": "on"},
            "hammer_version": "1.0",
            "tenure": {"owner": OWNER, "lessee": LESSEE},
            "capability": {"resource_class": "rc1", "traits": ["CUSTOM_B", "CUSTOM_A"]},
        })
    }

    fn shown(version: u16, masks: NodeMasks) -> NodeView<'static> {
        NodeView {
            version: ApiVersion::of(version),
            base: "http://c",
            masks,
            is_bmc_shown: true,
            state: NodeState {
                state: ProvisionState::DeployFailed,
                target: Some(ProvisionState::Active),
                since: Timestamp::from_ms(3000),
                error: "no disk".to_owned(),
            },
            target_power_state: "power off".into(),
            last_heard: Timestamp::ZERO,
            conductor: "control-1",
        }
    }

    fn content() -> NodeContent {
        NodeContent {
            name: Some("kn1".to_owned()),
            interfaces: [("power_interface".to_owned(), "metalmesh".to_owned())].into(),
            maintenance: Some(NodeMaintenance {
                reason: String::new(),
                since: Timestamp::ZERO,
            }),
            ..NodeContent::default()
        }
    }

    #[test]
    fn a_node_has_the_fields_of_its_version() {
        let seen = SeenNode::of_json(machine(), Some(content()));
        let newest = node(&seen, &shown(115, NodeMasks::default()));
        let names: Vec<&str> = newest
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let addresses = ["links", "ports", "portgroups", "states", "volume"];
        for name in NODE_FIELDS.iter().chain(&addresses) {
            assert!(names.contains(name), "{name}");
        }
        assert_eq!(names.len(), NODE_FIELDS.len() + addresses.len());
        let oldest = node(&seen, &shown(80, NodeMasks::default()));
        assert_eq!(oldest.as_object().unwrap().len(), names.len() - 7);
        assert!(oldest.get("shard").is_none());
    }

    #[test]
    fn fields_come_from_the_machine_and_its_record() {
        let seen = SeenNode::of_json(machine(), Some(content()));
        let found = node(&seen, &shown(115, NodeMasks::default()));
        for (name, expected) in [
            ("uuid", json!(ID)),
            ("name", json!("kn1")),
            ("owner", json!(OWNER)),
            ("lessee", json!(LESSEE)),
            ("resource_class", json!("rc1")),
            ("traits", json!(["CUSTOM_A", "CUSTOM_B"])),
            ("provision_state", json!("deploy failed")),
            ("target_provision_state", json!("active")),
            ("last_error", json!("no disk")),
            ("power_state", json!("power on")),
            ("target_power_state", json!("power off")),
            ("maintenance", json!(true)),
            ("maintenance_reason", Value::Null),
            ("driver", json!("metalmesh")),
            ("power_interface", json!("metalmesh")),
            ("rescue_interface", json!("no-rescue")),
            ("driver_internal_info", json!({"agent_version": "1.0"})),
            ("created_at", json!("1970-01-01T00:00:01.000000+00:00")),
            ("conductor", json!("control-1")),
            ("description", Value::Null),
            ("extra", json!({})),
            (
                "links",
                json!([{"href": format!("http://c/v1/nodes/{ID}"), "rel": "self"}]),
            ),
        ] {
            assert_eq!(found[name], expected, "{name}");
        }
        let summary = node_summary(&seen, ProvisionState::Available, "http://c");
        assert_eq!(summary.as_object().unwrap().len(), 7);
        assert_eq!(summary["provision_state"], "available");
        let rule = |rule: &str| rule == "baremetal:node:get:driver_info";
        let masked = node(&seen, &shown(115, NodeMasks::of(rule)));
        assert!(
            masked["last_error"]
                .as_str()
                .unwrap()
                .starts_with("** Value Redacted")
        );
        assert_eq!(masked["driver_info"]["metalmesh_bmc_address"], "10.0.0.9");
        let without = NodeView {
            is_bmc_shown: false,
            ..shown(115, NodeMasks::default())
        };
        assert_eq!(node(&seen, &without)["driver_info"], json!({}));
    }
}
