//! A port as a client wants it.

use control_state::{NodeContent, NodePort};
use proto_types::MacAddr;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::written_fields::{PortFieldKind, written_fields};
use crate::error::IronicError;
use crate::listing::selected;
use crate::patch::ObjectReader;
use crate::version::{ApiVersion, NEWEST};
use crate::view::{NodeCard, port};

/// Longest description, bytes, as in Ironic.
const DESCRIPTION_BYTES_MAX: usize = 255;
/// Longest name, bytes.
const NAME_BYTES_MAX: usize = 255;

/// The fields that a patch of a port may touch.
pub(super) const PORT_PATCHABLE: [&str; 13] = [
    "address",
    "available_for_dynamic_portgroup",
    "category",
    "description",
    "extra",
    "is_smartnic",
    "local_link_connection",
    "name",
    "node_uuid",
    "physical_network",
    "portgroup_uuid",
    "pxe_enabled",
    "vendor",
];
/// The fields beside them that the body of a new port may have.
pub(super) const PORT_CREATABLE: [&str; 2] = ["node_ident", "uuid"];

/// Fields that are stored as JSON.
const STORED: [(&str, PortFieldKind); 8] = [
    ("available_for_dynamic_portgroup", PortFieldKind::Flag),
    ("category", PortFieldKind::Text(80)),
    ("extra", PortFieldKind::Object),
    ("is_smartnic", PortFieldKind::Flag),
    ("local_link_connection", PortFieldKind::LocalLink),
    ("physical_network", PortFieldKind::Text(64)),
    ("pxe_enabled", PortFieldKind::Flag),
    ("vendor", PortFieldKind::Text(32)),
];

/// The port after a change.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PortDraft {
    /// Address of the card.
    pub(super) mac: MacAddr,
    /// Its description by clients. Its id and its times are those of before.
    pub(super) port: NodePort,
}

/// The object of a port, which a patch is applied to.
pub(super) fn port_object(card: NodeCard<'_>) -> Value {
    let names = PORT_PATCHABLE.map(str::to_owned);
    let mut object = selected(port(card, ApiVersion::of(NEWEST), ""), Some(&names));
    if let Value::Object(fields) = &mut object {
        fields.remove("links");
    }
    object
}

/// An object of a port without values.
pub(super) fn unset_port() -> Value {
    let names = PORT_PATCHABLE.iter().chain(&PORT_CREATABLE);
    let fields = names.map(|name| ((*name).to_owned(), Value::Null));
    Value::Object(fields.collect::<Map<String, Value>>())
}

impl PortDraft {
    /// The port that an object stands for. `before` is the object before the change, `port` what was
    /// said about it, and `content` the record of its node.
    ///
    /// # Errors
    /// 400, which names the field and its rule; 409 for a card of a group that does not boot by itself.
    pub(super) fn parse(
        object: &Value,
        before: &Value,
        port: NodePort,
        content: &NodeContent,
    ) -> Result<Self, IronicError> {
        let reader = ObjectReader::new(object);
        let group = reader.uuid("portgroup_uuid")?;
        let draft = Self {
            mac: parse_mac(reader.text("address")?.unwrap_or_default())?,
            port: NodePort {
                name: bounded(reader, "name", NAME_BYTES_MAX)?,
                description: bounded(reader, "description", DESCRIPTION_BYTES_MAX)?,
                group,
                fields: written_fields(&STORED, before, object, &port.fields)?,
                ..port
            },
        };
        if let Some(group) = group {
            draft.check_group(group, content)?;
        }
        Ok(draft)
    }

    fn check_group(&self, group: Uuid, content: &NodeContent) -> Result<(), IronicError> {
        let Some(found) = content.groups.iter().find(|found| found.id == group) else {
            let text = format!("Portgroup {group} could not be found among those of the node.");
            return Err(IronicError::invalid(text));
        };
        let is = |text: Option<&String>, value: &str| text.is_some_and(|text| text == value);
        let standalone = found.fields.get("standalone_ports_supported");
        let boots = self.port.fields.get("pxe_enabled");
        if is(standalone, "false") && is(boots, "true") {
            return Err(IronicError::conflict(format!(
                "Port group {group} doesn't support standalone ports. This port cannot be a member of \
                 that portgroup as the port's 'pxe_enabled' field was set to True."
            )));
        }
        Ok(())
    }
}

/// The MAC address that a text stands for.
///
/// # Errors
/// 400 for a text that is none.
pub(super) fn parse_mac(text: &str) -> Result<MacAddr, IronicError> {
    text.parse().map_err(|_| {
        let text = format!("Expected a MAC address but received {text}.");
        IronicError::invalid(text)
    })
}

/// A text of at most so many bytes; empty if it is unset.
///
/// # Errors
/// 400 for a longer one.
pub(super) fn bounded(
    reader: ObjectReader<'_>,
    name: &str,
    bytes_max: usize,
) -> Result<String, IronicError> {
    let text = reader.text(name)?.unwrap_or_default();
    if text.len() > bytes_max {
        let text = format!("{name}: must have at most {bytes_max} bytes");
        return Err(IronicError::invalid(text));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use control_state::NodePortGroup;
    use proto_types::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::access::SeenNode;

    const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0, 1, 1]);
    const GROUP: Uuid = Uuid::from_u128(1);

    fn content(standalone: &str) -> NodeContent {
        let fields = [(
            "standalone_ports_supported".to_owned(),
            standalone.to_owned(),
        )];
        NodeContent {
            groups: vec![NodePortGroup {
                id: GROUP,
                name: String::new(),
                address: None,
                fields: fields.into(),
                created_at: Timestamp::ZERO,
                updated_at: Timestamp::ZERO,
            }],
            ..NodeContent::default()
        }
    }

    /// The draft of the card of a machine after changes of its object.
    fn changed(changes: &[(&str, Value)], standalone: &str) -> Result<PortDraft, IronicError> {
        let nic = json!({"name": "e", "mac": MAC.to_string(), "vendor": "x"});
        let machine = json!({"hardware": {"nics": [nic]}});
        let content = content(standalone);
        let node = SeenNode::of_json(machine, Some(content.clone()));
        let before = port_object(NodeCard {
            node: &node,
            mac: MAC,
        });
        let mut object = before.clone();
        for (field, value) in changes {
            object[*field] = value.clone();
        }
        PortDraft::parse(&object, &before, NodePort::default(), &content)
    }

    #[test]
    fn a_card_that_is_not_changed_stays_undescribed() {
        let draft = changed(&[], "true").unwrap();
        assert_eq!(draft.mac, MAC);
        assert_eq!(draft.port, NodePort::default());
        for name in PORT_PATCHABLE {
            assert!(unset_port().get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn fields_change_the_description() {
        let changes = [
            ("name", json!("p")),
            ("description", json!("d")),
            ("portgroup_uuid", json!(GROUP.to_string())),
            ("vendor", json!("y")),
        ];
        let draft = changed(&changes, "true").unwrap();
        let expected = NodePort {
            name: "p".to_owned(),
            description: "d".to_owned(),
            group: Some(GROUP),
            fields: [("vendor".to_owned(), r#""y""#.to_owned())].into(),
            ..NodePort::default()
        };
        assert_eq!(draft.port, expected);
    }

    #[test]
    fn malformed_ports_are_refused() {
        let group = || ("portgroup_uuid", json!(GROUP.to_string()));
        for (changes, standalone, status) in [
            (vec![("address", Value::Null)], "true", 400),
            (vec![("address", json!("52-54-00-00-01-01"))], "true", 400),
            (vec![("description", json!("d".repeat(256)))], "true", 400),
            (
                vec![("portgroup_uuid", json!(Uuid::nil().to_string()))],
                "true",
                400,
            ),
            (vec![group(), ("pxe_enabled", json!(true))], "false", 409),
        ] {
            let refused = changed(&changes, standalone).unwrap_err();
            assert_eq!(refused.status.as_u16(), status, "{changes:?}: {refused:?}");
        }
        assert!(changed(&[group()], "false").is_ok());
    }
}
