//! Tests of a node as a client wants it.

use std::collections::BTreeMap;

use control_state::{NodeContent, NodeMaintenance};
use proto_types::Timestamp;
use serde_json::{Value, json};

use super::node_draft::{DraftBase, NodeDraft};
use super::node_object::{node_object, unset_object};
use crate::access::SeenNode;
use crate::secrets::MASK;

const OWNER: &str = "70e5e25a-2ca2-4cb1-8ae8-7d8739cee205";
const INSTANCE: &str = "0e21d58f-5de2-4956-85ff-33935ea1ca01";
const NOW: Timestamp = Timestamp::from_ms(7);

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = pairs
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    owned.collect()
}

/// A node with a value in every field.
fn content() -> NodeContent {
    NodeContent {
        name: Some("kn1".to_owned()),
        driver: "redfish".to_owned(),
        interfaces: texts(&[("power_interface", "metalmesh")]),
        description: "d".to_owned(),
        extra: texts(&[("a", "1")]),
        properties: texts(&[("capabilities", r#""boot_mode:uefi""#)]),
        driver_info: texts(&[("redfish_address", r#""10.0.0.1""#)]),
        instance_info: texts(&[("configdrive", r#""s3cret""#)]),
        instance_name: "i".to_owned(),
        network_data: texts(&[("links", "[]")]),
        instance: Some(INSTANCE.parse().unwrap()),
        chassis: Some(OWNER.parse().unwrap()),
        conductor_group: "g".to_owned(),
        shard: "s".to_owned(),
        automated_clean: Some(true),
        disable_power_off: true,
        protected: Some("p".to_owned()),
        retired: Some(String::new()),
        maintenance: Some(NodeMaintenance {
            reason: "m".to_owned(),
            since: Timestamp::from_ms(3),
        }),
        boot_device: "pxe".to_owned(),
        ..NodeContent::default()
    }
}

fn machine() -> Value {
    json!({
        "tenure": {"owner": OWNER},
        "capability": {"resource_class": "rc1"},
        "bmc": {"address": "10.0.0.9"},
        "hardware": {"memory": 1_u64 << 30},
    })
}

/// The draft of a node after changes of its object.
fn changed(changes: &[(&str, Value)]) -> Result<NodeDraft, String> {
    let node = SeenNode::of_json(machine(), Some(content()));
    let mut object = node_object(&node, true);
    for (field, value) in changes {
        object[*field] = value.clone();
    }
    let draft = NodeDraft::parse(&object, &DraftBase::of(&node), NOW);
    draft.map_err(|error| error.text)
}

#[test]
fn an_unchanged_object_is_the_node() {
    let draft = changed(&[]).unwrap();
    assert_eq!(draft.content, content());
    assert_eq!(draft.owner, Some(OWNER.parse().unwrap()));
    assert_eq!(draft.lessee, None);
    assert_eq!(draft.resource_class, Some("rc1".parse().unwrap()));
    assert!(draft.is_maintained);
    let untouched = SeenNode::of_json(json!({}), None);
    let object = node_object(&untouched, true);
    let draft = NodeDraft::parse(&object, &DraftBase::of(&untouched), NOW).unwrap();
    assert_eq!(draft.content, NodeContent::default());
}

#[test]
fn fields_change_the_content() {
    let before = content();
    let mask = format!("{MASK:?}");
    for (field, value, expected) in [
        (
            "name",
            Value::Null,
            NodeContent {
                name: None,
                ..before.clone()
            },
        ),
        (
            "extra",
            json!({"b": [1]}),
            NodeContent {
                extra: texts(&[("b", "[1]")]),
                ..before.clone()
            },
        ),
        (
            "driver_info",
            json!({"ipmi_password": "s3cret", "metalmesh_bmc_address": "10.0.0.9"}),
            NodeContent {
                driver_info: texts(&[("ipmi_password", mask.as_str())]),
                ..before.clone()
            },
        ),
        (
            "properties",
            json!({"memory_mb": 1024, "cpu_arch": "aarch64"}),
            NodeContent {
                properties: texts(&[("cpu_arch", r#""aarch64""#)]),
                ..before.clone()
            },
        ),
        (
            "conductor_group",
            json!("East"),
            NodeContent {
                conductor_group: "east".to_owned(),
                ..before.clone()
            },
        ),
        (
            "power_interface",
            Value::Null,
            NodeContent {
                interfaces: BTreeMap::new(),
                ..before.clone()
            },
        ),
        (
            "protected",
            json!("False"),
            NodeContent {
                protected: None,
                ..before.clone()
            },
        ),
        (
            "maintenance",
            json!(false),
            NodeContent {
                maintenance: None,
                ..before.clone()
            },
        ),
        (
            "instance_uuid",
            Value::Null,
            NodeContent {
                instance: None,
                ..before.clone()
            },
        ),
    ] {
        let draft = changed(&[(field, value)]).unwrap();
        assert_eq!(draft.content, expected, "{field}");
    }
}

#[test]
fn a_new_maintenance_begins_now() {
    let mut object = unset_object();
    object["maintenance"] = json!("true");
    let draft = NodeDraft::parse(&object, &DraftBase::new_node(), NOW).unwrap();
    let since = draft
        .content
        .maintenance
        .map(|maintenance| maintenance.since);
    assert_eq!(since, Some(NOW));
}

#[test]
fn malformed_fields_are_named() {
    for (field, value, part) in [
        ("name", json!("a b"), "invalid name 'a b'"),
        ("name", json!(OWNER), "invalid name"),
        ("name", json!("detail"), "is reserved"),
        ("driver", json!("fake-hardware"), "No valid host was found"),
        (
            "power_interface",
            json!("fake"),
            "Valid interfaces are metalmesh",
        ),
        (
            "rescue_interface",
            json!("agent"),
            "Valid interfaces are no-rescue",
        ),
        ("owner", json!("1234"), "owner: must be the id of a project"),
        ("lessee", json!(1234), "lessee: must be the id of a project"),
        ("resource_class", json!("-"), "resource class"),
        ("extra", json!([]), "extra: must be an object"),
        ("driver_info", json!("x"), "driver_info: must be an object"),
        ("protected", json!(1), "protected: must be a boolean"),
        (
            "retired",
            json!("maybe"),
            "retired: \"maybe\" is no boolean",
        ),
        ("instance_uuid", json!("x"), "instance_uuid: must be a UUID"),
        ("chassis_uuid", json!("x"), "chassis_uuid: must be a UUID"),
        ("description", json!({}), "description: must be a text"),
    ] {
        let refused = changed(&[(field, value)]).unwrap_err();
        assert!(refused.contains(part), "{field}: {refused}");
    }
    let reason = [
        ("protected", json!(false)),
        ("protected_reason", json!("other")),
    ];
    let refused = changed(&reason).unwrap_err();
    assert!(
        refused.contains("protected_reason: can be set only"),
        "{refused}"
    );
}
