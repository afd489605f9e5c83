//! A port group as a client wants it.

use control_state::NodePortGroup;
use serde_json::{Map, Value};

use super::port_draft::parse_mac;
use super::written_fields::{PortFieldKind, written_fields};
use crate::access::SeenNode;
use crate::error::IronicError;
use crate::listing::selected;
use crate::patch::{ObjectReader, is_logical_name};
use crate::version::{ApiVersion, NEWEST};
use crate::view::portgroup;

/// The fields that a patch of a port group may touch.
pub(super) const GROUP_PATCHABLE: [&str; 9] = [
    "address",
    "category",
    "extra",
    "mode",
    "name",
    "node_uuid",
    "physical_network",
    "properties",
    "standalone_ports_supported",
];
/// The field beside them that the body of a new port group may have.
pub(super) const GROUP_CREATABLE: &str = "uuid";

/// Fields that are stored as JSON.
const STORED: [(&str, PortFieldKind); 6] = [
    ("category", PortFieldKind::Text(80)),
    ("extra", PortFieldKind::Object),
    ("mode", PortFieldKind::Text(64)),
    ("physical_network", PortFieldKind::Text(64)),
    ("properties", PortFieldKind::Object),
    ("standalone_ports_supported", PortFieldKind::Flag),
];

/// The object of a port group, which a patch is applied to.
pub(super) fn group_object(node: &SeenNode, group: &NodePortGroup) -> Value {
    let names = GROUP_PATCHABLE.map(str::to_owned);
    let shown = portgroup(node, group, ApiVersion::of(NEWEST), "");
    let mut object = selected(shown, Some(&names));
    if let Value::Object(fields) = &mut object {
        fields.remove("links");
    }
    object
}

/// An object of a port group without values.
pub(super) fn unset_group() -> Value {
    let names = GROUP_PATCHABLE.into_iter().chain([GROUP_CREATABLE]);
    let fields = names.map(|name| (name.to_owned(), Value::Null));
    Value::Object(fields.collect::<Map<String, Value>>())
}

/// The port group that an object stands for. `before` is the object before the change, and `group` what
/// was said about it: its id and its times stay.
///
/// # Errors
/// 400, which names the field and its rule.
pub(super) fn drafted_group(
    object: &Value,
    before: &Value,
    group: NodePortGroup,
) -> Result<NodePortGroup, IronicError> {
    let reader = ObjectReader::new(object);
    let name = reader.text("name")?.unwrap_or_default();
    if !name.is_empty() && !is_logical_name(name) {
        return Err(IronicError::invalid(format!(
            "Cannot give a portgroup the invalid name '{name}': it must have 1 to 255 characters out of \
             letters, digits, '-', '.', '_' and '~', and be no UUID"
        )));
    }
    if object.get("mode").is_none() {
        let text = "'mode' is a mandatory attribute and can not be removed";
        return Err(IronicError::invalid(text));
    }
    Ok(NodePortGroup {
        name: name.to_owned(),
        address: reader.text("address")?.map(parse_mac).transpose()?,
        fields: written_fields(&STORED, before, object, &group.fields)?,
        ..group
    })
}

#[cfg(test)]
mod tests {
    use proto_types::{MacAddr, Timestamp};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn group() -> NodePortGroup {
        NodePortGroup {
            id: Uuid::nil(),
            name: "pg1".to_owned(),
            address: None,
            fields: [("category".to_owned(), r#""c""#.to_owned())].into(),
            created_at: Timestamp::from_ms(1),
            updated_at: Timestamp::ZERO,
        }
    }

    fn changed(changes: &[(&str, Option<Value>)]) -> Result<NodePortGroup, IronicError> {
        let node = SeenNode::of_json(json!({}), None);
        let before = group_object(&node, &group());
        let mut object = before.clone();
        for (field, value) in changes {
            if let Some(value) = value {
                object[*field] = value.clone();
            } else if let Some(fields) = object.as_object_mut() {
                fields.remove(*field);
            }
        }
        drafted_group(&object, &before, group())
    }

    #[test]
    fn groups_change_field_by_field() {
        assert_eq!(changed(&[]).unwrap(), group());
        let changes = [
            ("mode", Some(json!("802.3ad"))),
            ("name", Some(Value::Null)),
            ("address", Some(json!("52:54:00:00:01:02"))),
            ("category", None),
        ];
        let expected = NodePortGroup {
            name: String::new(),
            address: Some(MacAddr([0x52, 0x54, 0, 0, 1, 2])),
            fields: [("mode".to_owned(), r#""802.3ad""#.to_owned())].into(),
            ..group()
        };
        assert_eq!(changed(&changes).unwrap(), expected);
    }

    #[test]
    fn malformed_groups_are_refused() {
        for (field, value) in [
            ("name", Some(json!("a b"))),
            ("address", Some(json!("x"))),
            ("mode", None),
            ("mode", Some(json!(""))),
            ("properties", Some(json!([]))),
            ("standalone_ports_supported", Some(json!("maybe"))),
        ] {
            let refused = changed(&[(field, value.clone())]);
            assert!(refused.is_err(), "{field} {value:?}");
        }
    }

    #[test]
    fn a_new_group_has_defaults() {
        let mut object = unset_group();
        object["name"] = json!("pg2");
        let drafted = drafted_group(&object, &unset_group(), group()).unwrap();
        assert_eq!(drafted.name, "pg2");
        assert_eq!(drafted.fields, group().fields);
    }
}
