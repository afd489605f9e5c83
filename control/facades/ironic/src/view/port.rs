//! A port.

use serde_json::{Value, json};

use super::newer_fields::has_field;
use super::{NodeCard, links, object_of, text_or_null, time, time_or_null};
use crate::version::ApiVersion;

/// Every field of a port that a request may name, in the order of names.
pub(crate) const PORT_FIELDS: [&str; 17] = [
    "address",
    "available_for_dynamic_portgroup",
    "category",
    "created_at",
    "description",
    "extra",
    "internal_info",
    "is_smartnic",
    "local_link_connection",
    "name",
    "node_uuid",
    "physical_network",
    "portgroup_uuid",
    "pxe_enabled",
    "updated_at",
    "uuid",
    "vendor",
];
/// The newer ones.
const NEWER: [(&str, u16); 5] = [
    ("available_for_dynamic_portgroup", 111),
    ("category", 101),
    ("description", 97),
    ("name", 88),
    ("vendor", 100),
];

/// `true` if ports have the field in this microversion, or in all of them.
pub(crate) fn has_port_field(version: ApiVersion, name: &str) -> bool {
    has_field(&NEWER, version, name)
}

/// A port with all fields that its microversion has.
pub(crate) fn port(card: NodeCard<'_>, version: ApiVersion, base: &str) -> Value {
    let mut all = hardware(card);
    if let Value::Object(all) = &mut all {
        if let Value::Object(described) = description(card, base) {
            all.extend(described);
        }
        all.retain(|name, _| has_port_field(version, name));
    }
    all
}

/// Fields that the card has, or that clients said about it.
fn hardware(card: NodeCard<'_>) -> Value {
    let said = card.described().map(|port| object_of(&port.fields));
    let field = |name: &str| said.as_ref().and_then(|said| said.get(name)).cloned();
    let empty = || json!({});
    let vendor = card
        .nic()
        .map_or(Value::Null, |nic| text_or_null(&nic.vendor));
    let is_available = field("available_for_dynamic_portgroup");
    json!({
        "extra": field("extra").unwrap_or_else(empty),
        "is_smartnic": field("is_smartnic").unwrap_or(Value::Bool(false)),
        "local_link_connection": field("local_link_connection").unwrap_or_else(empty),
        "physical_network": field("physical_network"),
        "pxe_enabled": card.boots(),
        "vendor": field("vendor").unwrap_or(vendor),
        "category": field("category"),
        "available_for_dynamic_portgroup": is_available.unwrap_or(Value::Bool(true)),
    })
}

fn description(card: NodeCard<'_>, base: &str) -> Value {
    let id = card.id();
    let described = card.described();
    let created_at = card.node.machine.meta.created_at;
    let vif = card.vif();
    let internal = vif.map_or_else(|| json!({}), |vif| json!({ "tenant_vif_port_id": vif }));
    let text = |text: Option<&str>| text.map_or(Value::Null, text_or_null);
    let group = described.and_then(|port| port.group);
    json!({
        "uuid": id.to_string(),
        "created_at": time(described.map_or(created_at, |port| port.created_at)),
        "updated_at": described.map_or(Value::Null, |port| time_or_null(port.updated_at)),
        "address": card.mac.to_string(),
        "internal_info": internal,
        "node_uuid": card.node.id().to_string(),
        "name": text(described.map(|port| port.name.as_str())),
        "description": text(described.map(|port| port.description.as_str())),
        "portgroup_uuid": group.map(|group| group.to_string()),
        "links": links(&format!("{base}/v1/ports/{id}")),
    })
}

#[cfg(test)]
mod tests {
    use control_state::{NodeContent, NodePort, NodeVif};
    use proto_types::{MacAddr, Timestamp};
    use uuid::Uuid;

    use super::*;
    use crate::access::SeenNode;

    const NODE: &str = "e1bb591f-4ea8-44fb-a82b-451f3847a868";
    const PORT: &str = "f96a4e3f-957f-4861-a4ad-ddb18bfa61f9";
    const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0, 1, 1]);

    fn described() -> NodeContent {
        let fields = [
            ("physical_network", r#""p1""#),
            ("local_link_connection", r#"{"port_id":"e1"}"#),
            ("pxe_enabled", "false"),
        ];
        let fields = fields.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let port = NodePort {
            id: Some(PORT.parse().unwrap()),
            name: "p".to_owned(),
            group: Some(Uuid::nil()),
            fields: fields.into(),
            created_at: Timestamp::from_ms(1000),
            ..NodePort::default()
        };
        let vif = NodeVif {
            network: None,
            mac: Some(MAC),
        };
        NodeContent {
            ports: [(MAC, port)].into(),
            vifs: [("net".to_owned(), vif)].into(),
            ..NodeContent::default()
        }
    }

    #[test]
    fn a_described_port_is_what_the_client_said() {
        let node = SeenNode::of_json(json!({ "id": NODE }), Some(described()));
        let card = NodeCard {
            node: &node,
            mac: MAC,
        };
        let expected = json!({
            "uuid": PORT,
            "created_at": "1970-01-01T00:00:01.000000+00:00",
            "updated_at": null,
            "address": "52:54:00:00:01:01",
            "extra": {},
            "internal_info": {"tenant_vif_port_id": "net"},
            "is_smartnic": false,
            "local_link_connection": {"port_id": "e1"},
            "physical_network": "p1",
            "pxe_enabled": false,
            "node_uuid": NODE,
            "name": "p",
            "description": null,
            "vendor": null,
            "category": null,
            "available_for_dynamic_portgroup": true,
            "links": [{"href": format!("http://c/v1/ports/{PORT}"), "rel": "self"}],
            "portgroup_uuid": Uuid::nil().to_string(),
        });
        assert_eq!(port(card, ApiVersion::of(115), "http://c"), expected);
        assert_eq!(expected.as_object().unwrap().len(), PORT_FIELDS.len() + 1);
        let oldest = port(card, ApiVersion::of(80), "http://c");
        assert_eq!(
            oldest.as_object().unwrap().len(),
            PORT_FIELDS.len() + 1 - NEWER.len()
        );
    }

    #[test]
    fn a_card_of_the_hardware_is_a_port() {
        let nic =
            |mac: &str, boot: bool| json!({"name": "e", "mac": mac, "vendor": "x", "boot": boot});
        let machine = json!({"hardware": {"nics": [
            nic("52:54:00:00:01:01", true),
            nic("52:54:00:00:01:02", false),
        ]}});
        let node = SeenNode::of_json(machine, None);
        for (last, boots) in [(1, true), (2, false)] {
            let mac = MacAddr([0x52, 0x54, 0, 0, 1, last]);
            let found = port(
                NodeCard { node: &node, mac },
                ApiVersion::of(115),
                "http://c",
            );
            assert_eq!(found["pxe_enabled"], boots, "{mac}");
            assert_eq!(found["vendor"], "x");
            assert_eq!(found["internal_info"], json!({}));
            assert_eq!(found["name"], Value::Null);
        }
    }

    #[test]
    fn fields_are_sorted_and_newer_ones_are_among_them() {
        assert!(PORT_FIELDS.is_sorted());
        for (name, since) in NEWER {
            assert!(PORT_FIELDS.contains(&name), "{name}");
            assert!(has_port_field(ApiVersion::of(since), name), "{name}");
            assert!(!has_port_field(ApiVersion::of(since - 1), name), "{name}");
        }
    }
}
