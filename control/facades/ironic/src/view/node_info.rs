//! Parts of a node that follow from its machine, or from its machine and its record together.

use std::sync::LazyLock;

use control_state::{Availability, Cpu, Firmware, Machine, NodeContent};
use proto_types::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{object_of, time};
use crate::access::SeenNode;
use crate::secrets::{MASK, without_secrets};

/// The name under which clients see the address of the BMC.
const BMC_ADDRESS: &str = "metalmesh_bmc_address";
/// The field of `instance_info` with an address that may hold credentials.
const IMAGE_URL: &str = "image_url";
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The fields of a node that no client changed.
static UNCHANGED: LazyLock<NodeContent> = LazyLock::new(NodeContent::default);

/// The fields of clients.
pub(crate) fn stored(node: &SeenNode) -> &NodeContent {
    let record = node.record.as_ref();
    record.map_or(&*UNCHANGED, |record| &record.content)
}

/// The instance: the one that a client set, or that of the node allocation.
pub(crate) fn instance_uuid(node: &SeenNode) -> Option<Uuid> {
    let held = node.machine.tenure.reserved_by;
    let held = held.map(|held| held.uuid());
    stored(node).instance.or(held)
}

/// The reason of the maintenance, which may be empty. `None` means that there is none. An operator's
/// lock counts as one.
pub(crate) fn maintenance_reason(node: &SeenNode) -> Option<&str> {
    let own = stored(node).maintenance.as_ref();
    let own = own.map(|maintenance| maintenance.reason.as_str());
    let condition = &node.machine.condition;
    let locked = (condition.state == Availability::Locked).then_some(&*condition.description);
    own.or(locked)
}

/// The properties that the hardware has. Empty before it was registered.
pub(crate) fn hardware_properties(machine: &Machine) -> Map<String, Value> {
    let hardware = &machine.hardware;
    let mut properties = Map::new();
    let threads = |cpu: &Cpu| u64::from(cpu.threads.max(cpu.cores));
    let disks = hardware.disks.iter().filter(|disk| disk.is_fixed());
    let largest = disks.map(|disk| disk.size).max();
    let numbers = [
        ("cpus", Some(hardware.cpus.iter().map(threads).sum())),
        ("memory_mb", Some(hardware.memory / MIB)),
        // A gibibyte less, as Ironic leaves it for a configuration drive.
        (
            "local_gb",
            largest.map(|size| (size / GIB).saturating_sub(1)),
        ),
    ];
    for (name, number) in numbers {
        if let Some(number) = number.filter(|&number| number > 0) {
            properties.insert(name.to_owned(), number.into());
        }
    }
    if !properties.is_empty() {
        properties.insert("cpu_arch".to_owned(), "x86_64".into());
    }
    properties
}

/// The properties of the hardware, and over them those of clients.
pub(crate) fn properties(node: &SeenNode) -> Value {
    let mut all = hardware_properties(&node.machine);
    if let Value::Object(own) = object_of(&stored(node).properties) {
        all.extend(own);
    }
    Value::Object(all)
}

/// The access to the BMC as the agents found it out.
pub(crate) fn found_driver_info(machine: &Machine) -> Map<String, Value> {
    let bmc = machine.bmc.as_ref();
    let address = bmc.map(|bmc| bmc.address.as_str());
    let address = address.filter(|address| !address.is_empty());
    let field = address.map(|address| (BMC_ADDRESS.to_owned(), Value::from(address)));
    field.into_iter().collect()
}

/// The access to the BMC without secrets: what clients wrote, and what the agents found out. `is_found_shown`
/// is `false` for callers that do not use the machine: an owner has no part in the BMC of a leased one.
pub(crate) fn driver_info(node: &SeenNode, is_found_shown: bool) -> Value {
    let mut all = without_secrets(&object_of(&stored(node).driver_info));
    if let Value::Object(all) = &mut all
        && is_found_shown
    {
        all.extend(found_driver_info(&node.machine));
    }
    all
}

/// The wish for the next deployment without secrets.
pub(super) fn instance_info(content: &NodeContent) -> Value {
    let mut all = without_secrets(&object_of(&content.instance_info));
    if let Value::Object(all) = &mut all
        && let Some(address) = all.get_mut(IMAGE_URL)
    {
        *address = MASK.into();
    }
    all
}

/// The agents of the machine, by their own words.
pub(super) fn driver_internal_info(machine: &Machine, last_heard: Timestamp) -> Value {
    let mut all = Map::new();
    if !machine.hammer_version.is_empty() {
        let version = machine.hammer_version.as_str();
        all.insert("agent_version".to_owned(), version.into());
    }
    if last_heard > Timestamp::ZERO {
        all.insert("agent_last_heartbeat".to_owned(), time(last_heard));
    }
    Value::Object(all)
}

/// The boot mode of the firmware; `null` before it was reported.
pub(super) fn boot_mode(machine: &Machine) -> Value {
    match machine.hardware.firmware {
        Firmware::Unknown => Value::Null,
        Firmware::Bios => "bios".into(),
        Firmware::Uefi => "uefi".into(),
    }
}

#[cfg(test)]
mod tests {
    use control_state::{JsonFields, NodeMaintenance};
    use serde_json::json;

    use super::*;

    fn node(machine: Value, content: NodeContent) -> SeenNode {
        SeenNode::of_json(machine, Some(content))
    }

    fn fields(pairs: &[(&str, &str)]) -> JsonFields {
        let pairs = pairs.iter();
        let owned = pairs.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        owned.collect()
    }

    #[test]
    fn properties_are_those_of_the_hardware_and_of_clients() {
        let hardware = json!({ "hardware": {
            "memory": 8_u64 << 30,
            "cpus": [{"cores": 4, "threads": 8}, {"cores": 4}],
            "disks": [
                {"name": "/dev/sda", "size": 100_u64 << 30},
                {"name": "/dev/sdb", "size": 500_u64 << 30, "removable": true},
            ],
        }});
        let content = NodeContent {
            properties: fields(&[("local_gb", "50"), ("capabilities", r#""boot_mode:uefi""#)]),
            ..NodeContent::default()
        };
        for (machine, expected) in [
            (
                hardware,
                json!({
                    "cpus": 12, "memory_mb": 8192, "local_gb": 50, "cpu_arch": "x86_64",
                    "capabilities": "boot_mode:uefi",
                }),
            ),
            (
                json!({}),
                json!({"local_gb": 50, "capabilities": "boot_mode:uefi"}),
            ),
        ] {
            assert_eq!(properties(&node(machine, content.clone())), expected);
        }
    }

    #[test]
    fn no_secret_is_shown() {
        let content = NodeContent {
            driver_info: fields(&[
                ("redfish_address", r#""10.0.0.1""#),
                ("redfish_password", r#""s3cret""#),
            ]),
            instance_info: fields(&[
                ("image_source", r#""https://images/a""#),
                ("image_url", r#""https://images/a?signature=s3cret""#),
                ("configdrive", r#"{"user_data":"s3cret"}"#),
            ]),
            ..NodeContent::default()
        };
        let node = node(json!({"bmc": {"address": "10.0.0.9:623"}}), content);
        let expected = json!({
            "redfish_address": "10.0.0.1", "redfish_password": MASK,
            "metalmesh_bmc_address": "10.0.0.9:623",
        });
        assert_eq!(driver_info(&node, true), expected);
        let written = json!({"redfish_address": "10.0.0.1", "redfish_password": MASK});
        assert_eq!(driver_info(&node, false), written);
        let expected = json!({
            "image_source": "https://images/a", "image_url": MASK, "configdrive": MASK,
        });
        assert_eq!(instance_info(stored(&node)), expected);
    }

    #[test]
    fn maintenance_is_the_clients_or_the_operators() {
        let locked = json!({"condition": {"state": "locked", "description": "fan"}});
        let own = NodeContent {
            maintenance: Some(NodeMaintenance {
                reason: "disk".to_owned(),
                since: Timestamp::ZERO,
            }),
            ..NodeContent::default()
        };
        for (machine, content, expected) in [
            (json!({}), NodeContent::default(), None),
            (json!({}), own.clone(), Some("disk")),
            (locked.clone(), NodeContent::default(), Some("fan")),
            (locked, own, Some("disk")),
        ] {
            assert_eq!(maintenance_reason(&node(machine, content)), expected);
        }
    }
}
