//! A port group.

use control_state::NodePortGroup;
use serde_json::{Value, json};

use super::newer_fields::has_field;
use super::{links, object_of, text_or_null, time, time_or_null};
use crate::access::SeenNode;
use crate::version::ApiVersion;

/// Every field of a port group that a request may name, in the order of names.
pub(crate) const PORTGROUP_FIELDS: [&str; 14] = [
    "address",
    "category",
    "created_at",
    "dynamic_portgroup",
    "extra",
    "internal_info",
    "mode",
    "name",
    "node_uuid",
    "physical_network",
    "properties",
    "standalone_ports_supported",
    "updated_at",
    "uuid",
];
/// The newer ones.
const NEWER: [(&str, u16); 3] = [
    ("category", 103),
    ("dynamic_portgroup", 111),
    ("physical_network", 102),
];
/// The mode of a group for which no client chose one.
const DEFAULT_MODE: &str = "active-backup";

/// `true` if port groups have the field in this microversion, or in all of them.
pub(crate) fn has_portgroup_field(version: ApiVersion, name: &str) -> bool {
    has_field(&NEWER, version, name)
}

/// A port group with all fields that its microversion has.
pub(crate) fn portgroup(
    node: &SeenNode,
    group: &NodePortGroup,
    version: ApiVersion,
    base: &str,
) -> Value {
    let said = object_of(&group.fields);
    let field = |name: &str| said.get(name).cloned();
    let empty = || json!({});
    let own = format!("{base}/v1/portgroups/{}", group.id);
    let standalone = field("standalone_ports_supported").unwrap_or(Value::Bool(true));
    let mut all = json!({
        "uuid": group.id.to_string(),
        "created_at": time(group.created_at),
        "updated_at": time_or_null(group.updated_at),
        "address": group.address.map(|mac| mac.to_string()),
        "extra": field("extra").unwrap_or_else(empty),
        "internal_info": {},
        "mode": field("mode").unwrap_or_else(|| DEFAULT_MODE.into()),
        "name": text_or_null(&group.name),
        "properties": field("properties").unwrap_or_else(empty),
        "standalone_ports_supported": standalone,
        "node_uuid": node.id().to_string(),
        "physical_network": field("physical_network"),
        "category": field("category"),
        "dynamic_portgroup": field("dynamic_portgroup").unwrap_or(Value::Bool(false)),
        "links": links(&own),
        "ports": links(&format!("{own}/ports")),
    });
    if let Value::Object(all) = &mut all {
        all.retain(|name, _| has_portgroup_field(version, name));
    }
    all
}

#[cfg(test)]
mod tests {
    use proto_types::{MacAddr, Timestamp};

    use super::*;

    const NODE: &str = "e1bb591f-4ea8-44fb-a82b-451f3847a868";
    const GROUP: &str = "f8615be2-fae7-4c2e-887c-3f41685c99c7";

    #[test]
    fn a_group_has_the_fields_of_its_version() {
        let node = SeenNode::of_json(json!({ "id": NODE }), None);
        let group = NodePortGroup {
            id: GROUP.parse().unwrap(),
            name: "pg1".to_owned(),
            address: Some(MacAddr([0x52, 0x54, 0, 0, 1, 2])),
            fields: [("mode".to_owned(), r#""802.3ad""#.to_owned())].into(),
            created_at: Timestamp::from_ms(1000),
            updated_at: Timestamp::ZERO,
        };
        let expected = json!({
            "uuid": GROUP,
            "created_at": "1970-01-01T00:00:01.000000+00:00",
            "updated_at": null,
            "address": "52:54:00:00:01:02",
            "extra": {},
            "internal_info": {},
            "mode": "802.3ad",
            "name": "pg1",
            "properties": {},
            "standalone_ports_supported": true,
            "node_uuid": NODE,
            "physical_network": null,
            "category": null,
            "dynamic_portgroup": false,
            "links": [{"href": format!("http://c/v1/portgroups/{GROUP}"), "rel": "self"}],
            "ports": [{"href": format!("http://c/v1/portgroups/{GROUP}/ports"), "rel": "self"}],
        });
        let newest = portgroup(&node, &group, ApiVersion::of(115), "http://c");
        assert_eq!(newest, expected);
        let oldest = portgroup(&node, &group, ApiVersion::of(80), "http://c");
        assert_eq!(oldest.as_object().unwrap().len(), 16 - NEWER.len());
        assert!(PORTGROUP_FIELDS.is_sorted());
        for (name, since) in NEWER {
            assert!(PORTGROUP_FIELDS.contains(&name), "{name}");
            assert!(has_portgroup_field(ApiVersion::of(since), name), "{name}");
        }
    }
}
