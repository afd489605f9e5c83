//! A node as a client wants it: the fields of an object, checked one by one.

use control_state::{JsonFields, NodeContent, NodeMaintenance};
use proto_types::{ProjectId, ResourceClass, Timestamp};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::access::SeenNode;
use crate::error::IronicError;
use crate::patch::{ObjectReader, fields_of, is_logical_name};
use crate::secrets::without_secrets;
use crate::view::{
    HARDWARE_TYPES, INTERFACE_KINDS, found_driver_info, hardware_properties, instance_uuid,
    interfaces, maintenance_reason, stored,
};

/// Names that stand for parts of the API below `/nodes`.
const RESERVED_NAMES: [&str; 6] = [
    "detail",
    "maintenance",
    "management",
    "states",
    "validate",
    "vendor_passthru",
];

/// The node before the change.
pub(super) struct DraftBase {
    content: NodeContent,
    /// The instance that clients see.
    instance: Option<Uuid>,
    is_maintained: bool,
    /// Properties that the hardware has, which are not stored.
    hardware: Map<String, Value>,
    /// Access to the BMC that agents found out, which is not stored either.
    found: Map<String, Value>,
}

/// The node after the change.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodeDraft {
    /// The fields of its record. The parent is that of before.
    pub(super) content: NodeContent,
    /// The project that owns it.
    pub(super) owner: Option<ProjectId>,
    /// The project that uses it and does not own it.
    pub(super) lessee: Option<ProjectId>,
    /// Its resource class.
    pub(super) resource_class: Option<ResourceClass>,
    /// The instance that clients are to see.
    pub(super) instance: Option<Uuid>,
    /// `true` if it is to be in maintenance.
    pub(super) is_maintained: bool,
    /// The node that it is a part of, as the client named it. `None` means none.
    pub(super) parent: Option<String>,
}

impl DraftBase {
    /// A node that does not exist yet.
    pub(super) fn new_node() -> Self {
        Self {
            content: NodeContent::default(),
            instance: None,
            is_maintained: false,
            hardware: Map::new(),
            found: Map::new(),
        }
    }

    /// A node.
    pub(super) fn of(node: &SeenNode) -> Self {
        Self {
            content: stored(node).clone(),
            instance: instance_uuid(node),
            is_maintained: maintenance_reason(node).is_some(),
            hardware: hardware_properties(&node.machine),
            found: found_driver_info(&node.machine),
        }
    }
}

impl NodeDraft {
    /// The node that an object stands for.
    ///
    /// # Errors
    /// 400, which names the field and its rule.
    pub(super) fn parse(
        object: &Value,
        base: &DraftBase,
        now: Timestamp,
    ) -> Result<Self, IronicError> {
        let reader = ObjectReader::new(object);
        let instance = reader.uuid("instance_uuid")?;
        let is_maintained = reader.flag("maintenance")?.unwrap_or(false);
        let mut content = NodeContent {
            maintenance: maintenance(base, is_maintained, now),
            instance: if instance == base.instance {
                base.content.instance
            } else {
                instance
            },
            ..base.content.clone()
        };
        read_texts(reader, &mut content)?;
        read_objects(reader, base, &mut content)?;
        content.protected = reasoned(reader, "protected", base.content.protected.as_ref())?;
        content.retired = reasoned(reader, "retired", base.content.retired.as_ref())?;
        content.automated_clean = reader.flag("automated_clean")?;
        content.disable_power_off = reader.flag("disable_power_off")?.unwrap_or(false);
        content.chassis = reader.uuid("chassis_uuid")?;
        let parent = reader
            .text("parent_node")?
            .filter(|ident| !ident.is_empty());
        Ok(Self {
            content,
            owner: reader.project("owner")?,
            lessee: reader.project("lessee")?,
            resource_class: resource_class(reader)?,
            instance,
            is_maintained,
            parent: parent.map(str::to_owned),
        })
    }
}

/// A maintenance that goes on keeps its reason.
fn maintenance(base: &DraftBase, is_maintained: bool, now: Timestamp) -> Option<NodeMaintenance> {
    match (is_maintained, base.is_maintained) {
        (true, false) => Some(NodeMaintenance {
            reason: String::new(),
            since: now,
        }),
        (true, true) => base.content.maintenance.clone(),
        (false, _) => None,
    }
}

fn read_texts(reader: ObjectReader<'_>, content: &mut NodeContent) -> Result<(), IronicError> {
    let text = |name: &str| -> Result<String, IronicError> {
        Ok(reader.text(name)?.unwrap_or_default().to_owned())
    };
    content.name = reader.text("name")?.map(node_name).transpose()?;
    content.driver = text("driver")?;
    if !content.driver.is_empty() && !HARDWARE_TYPES.contains(&content.driver.as_str()) {
        let known = HARDWARE_TYPES.join(", ");
        let driver = &content.driver;
        return Err(IronicError::invalid(format!(
            "No valid host was found. Reason: No conductor service registered which supports driver \
             {driver}. Drivers are {known}."
        )));
    }
    content.description = text("description")?;
    content.instance_name = text("instance_name")?;
    // As in Ironic: groups differ by more than the case of their letters.
    content.conductor_group = text("conductor_group")?.to_ascii_lowercase();
    content.shard = text("shard")?;
    for kind in INTERFACE_KINDS {
        let field = format!("{kind}_interface");
        match reader.text(&field)? {
            None => content.interfaces.remove(&field),
            Some(name) => {
                check_interface(kind, name)?;
                content.interfaces.insert(field, name.to_owned())
            }
        };
    }
    Ok(())
}

fn node_name(name: &str) -> Result<String, IronicError> {
    if !is_logical_name(name) {
        return Err(IronicError::invalid(format!(
            "Cannot give a node the invalid name '{name}': it must have 1 to 255 characters out of \
             letters, digits, '-', '.', '_' and '~', and be no UUID"
        )));
    }
    if RESERVED_NAMES.contains(&name) {
        let reserved = RESERVED_NAMES.join(", ");
        return Err(IronicError::invalid(format!(
            "The word \"{name}\" is reserved and can not be used as a node name. Reserved words are: \
             {reserved}."
        )));
    }
    Ok(name.to_owned())
}

fn check_interface(kind: &str, name: &str) -> Result<(), IronicError> {
    let enabled = interfaces(kind).unwrap_or_default();
    if enabled.contains(&name) {
        return Ok(());
    }
    let enabled = enabled.join(", ");
    Err(IronicError::invalid(format!(
        "Could not find the following interface in the 'ironic.hardware.interfaces.{kind}' \
         entrypoint: {name}. Valid interfaces are {enabled}."
    )))
}

fn read_objects(
    reader: ObjectReader<'_>,
    base: &DraftBase,
    content: &mut NodeContent,
) -> Result<(), IronicError> {
    content.extra = reader.fields("extra")?;
    content.instance_info = reader.fields("instance_info")?;
    content.network_data = reader.fields("network_data")?;
    content.properties = own_fields("properties", reader.value("properties"), &base.hardware)?;
    // The agents of BMCs have the secrets.
    let driver_info = without_secrets(reader.value("driver_info"));
    content.driver_info = own_fields("driver_info", &driver_info, &base.found)?;
    Ok(())
}

/// The fields of an object but for those that the node has by itself.
fn own_fields(
    name: &str,
    object: &Value,
    derived: &Map<String, Value>,
) -> Result<JsonFields, IronicError> {
    let mut fields = fields_of(name, object)?;
    fields.retain(|field, _| {
        let derived = derived.get(field);
        derived.is_none() || derived != object.get(field)
    });
    Ok(fields)
}

/// A flag with the reason for it. `before` is the reason of the flag before the change.
fn reasoned(
    reader: ObjectReader<'_>,
    name: &str,
    before: Option<&String>,
) -> Result<Option<String>, IronicError> {
    let reason_name = format!("{name}_reason");
    let reason = reader.text(&reason_name)?.unwrap_or_default();
    if reader.flag(name)?.unwrap_or(false) {
        return Ok(Some(reason.to_owned()));
    }
    // The reason of before goes with its flag; another one would be lost without a word.
    if !reason.is_empty() && before.is_none_or(|before| before != reason) {
        let text = format!("{reason_name}: can be set only together with {name}");
        return Err(IronicError::invalid(text));
    }
    Ok(None)
}

fn resource_class(reader: ObjectReader<'_>) -> Result<Option<ResourceClass>, IronicError> {
    let text = reader.text("resource_class")?;
    let text = text.filter(|class| !class.is_empty());
    let class = text.map(str::parse::<ResourceClass>).transpose();
    class.map_err(|error| IronicError::invalid(error.to_string()))
}
