//! The fields of a node that its clients change.

use std::collections::BTreeMap;

use proto_types::{MacAddr, MachineId, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::node::entity::{NodePort, NodePortGroup, NodeStage, NodeVif};

/// Most bytes of the free texts and values of a node, together; a change to more is refused.
pub const NODE_BYTES_MAX: usize = 128 * 1024;

/// Values of free form by name; each value is the text of a JSON value.
pub type JsonFields = BTreeMap<String, String>;

/// A node in maintenance is on offer to nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeMaintenance {
    /// The reason for people; empty if none was given.
    #[serde(default)]
    pub reason: String,
    /// Time at which it began.
    pub since: Timestamp,
}

/// The fields of a node that its clients change. A change replaces all of them, and is locked by the
/// generation of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeContent {
    /// Name, unique among nodes. `None` means that it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Hardware type; empty means the default one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub driver: String,
    /// Interfaces by the name of their field, such as `power_interface`, where a client set one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interfaces: BTreeMap<String, String>,
    /// Free text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Additional fields of the client.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: JsonFields,
    /// Properties that the client adds to those of the hardware.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: JsonFields,
    /// Access to the BMC as the client wrote it. Secrets are not in it: the BMC's agent has them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub driver_info: JsonFields,
    /// The wish for the next deployment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub instance_info: JsonFields,
    /// Display name of the instance; empty means none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instance_name: String,
    /// Network configuration as the client wrote it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub network_data: JsonFields,
    /// The instance that a client set by hand. `None` means that of the node allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<Uuid>,
    /// The chassis. `None` means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chassis: Option<Uuid>,
    /// Group of conductors; empty is the default one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub conductor_group: String,
    /// Shard; empty means none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub shard: String,
    /// The node that it is a part of. `None` means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<MachineId>,
    /// The client's wish about cleaning; metalmesh wipes in any case. `None` means the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automated_clean: Option<bool>,
    /// The client's wish that the node is not powered off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disable_power_off: bool,
    /// The reason why the node is protected from undeploying. `None` means that it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected: Option<String>,
    /// The reason why the node is retired. `None` means that it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retired: Option<String>,
    /// `None` means that it is not in maintenance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<NodeMaintenance>,
    /// The boot device that a client set, `pxe`, `disk` or `bios`; empty means none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub boot_device: String,
    /// The provision state where the machine's phase does not say it. `None` means that the phase
    /// decides alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<NodeStage>,
    /// Statements of clients about its ports. NICs without an entry are ports with defaults.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<MacAddr, NodePort>,
    /// Its port groups, in the order of their ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<NodePortGroup>,
    /// Its virtual interfaces, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vifs: BTreeMap<String, NodeVif>,
}

impl NodeContent {
    /// `true` if the machine is on offer to nobody: neither for a size nor to node allocations.
    pub fn withholds(&self) -> bool {
        let stage = self.stage.as_ref();
        let is_staged = stage.is_some_and(|stage| stage.state.withholds());
        self.maintenance.is_some() || self.retired.is_some() || is_staged
    }

    /// The fields without those of an instance, which end with the use of the machine: the wish for its
    /// deployment, its networks, its protection, its boot device, and the stage of a node in use.
    pub(crate) fn without_instance(&self) -> Self {
        let stage = self.stage.as_ref();
        Self {
            instance_info: JsonFields::new(),
            instance_name: String::new(),
            instance: None,
            protected: None,
            boot_device: String::new(),
            stage: stage.filter(|stage| !stage.state.is_in_use()).cloned(),
            vifs: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// The fields of an instance alone: those that [`NodeContent::without_instance`] takes away.
    pub(crate) fn instance(&self) -> Self {
        let stage = self.stage.as_ref();
        Self {
            instance_info: self.instance_info.clone(),
            instance_name: self.instance_name.clone(),
            instance: self.instance,
            protected: self.protected.clone(),
            boot_device: self.boot_device.clone(),
            stage: stage.filter(|stage| stage.state.is_in_use()).cloned(),
            vifs: self.vifs.clone(),
            ..Self::default()
        }
    }

    /// Its fields of free form, each with its name.
    pub(crate) fn free_fields(&self) -> impl Iterator<Item = (&'static str, &JsonFields)> {
        let own = [
            ("interfaces", &self.interfaces),
            ("extra", &self.extra),
            ("properties", &self.properties),
            ("driver_info", &self.driver_info),
            ("instance_info", &self.instance_info),
            ("network_data", &self.network_data),
        ];
        let ports = self.ports.values().map(|port| ("ports", &port.fields));
        let groups = self.groups.iter().map(|group| ("groups", &group.fields));
        own.into_iter().chain(ports).chain(groups)
    }

    /// Bytes of its free texts and values.
    pub(crate) fn bytes(&self) -> usize {
        let fields = self.free_fields().map(|(_, fields)| fields_bytes(fields));
        let ports = self.ports.values();
        let texts = ports.map(|port| port.name.len() + port.description.len());
        self.description.len() + fields.sum::<usize>() + texts.sum::<usize>()
    }
}

/// Bytes of names and values.
pub(crate) fn fields_bytes(fields: &JsonFields) -> usize {
    let bytes = fields.iter().map(|(name, value)| name.len() + value.len());
    bytes.sum()
}
