//! Ports, port groups and virtual interfaces of nodes.

use proto_types::{MacAddr, NetworkId, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::node::entity::JsonFields;

/// Most ports of a node that clients describe; a change to more is refused.
pub const NODE_PORTS_MAX: usize = 64;
/// Most port groups of a node.
pub const NODE_GROUPS_MAX: usize = 16;
/// Most virtual interfaces of a node.
pub const NODE_VIFS_MAX: usize = 16;

/// Statements of Ironic's clients about a network card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodePort {
    /// Id that the client gave, or that outlives a change of the MAC address. `None` means the one
    /// that follows from the MAC address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// Name, unique among ports; empty means none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Free text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its port group. `None` means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Uuid>,
    /// Fields of the client: `extra`, `local_link_connection`, `physical_network`, `pxe_enabled`,
    /// `is_smartnic`, `vendor`, `category`, `available_for_dynamic_portgroup`.
    #[serde(skip_serializing_if = "JsonFields::is_empty")]
    pub fields: JsonFields,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of its last change; zero means never.
    pub updated_at: Timestamp,
}

/// A group of ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePortGroup {
    /// Its id.
    pub id: Uuid,
    /// Name, unique among port groups; empty means none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its MAC address. `None` means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<MacAddr>,
    /// Fields of the client: `extra`, `mode`, `properties`, `standalone_ports_supported`,
    /// `physical_network`, `category`, `dynamic_portgroup`.
    #[serde(default, skip_serializing_if = "JsonFields::is_empty")]
    pub fields: JsonFields,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of its last change; zero means never.
    #[serde(default)]
    pub updated_at: Timestamp,
}

/// A network that the next deployment is to be in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeVif {
    /// The network. `None` for an id that is no network of metalmesh: it is remembered and has no
    /// effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkId>,
    /// The card that it is on. `None` means that none was free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
}
