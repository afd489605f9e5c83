use super::numbers::Table;
use crate::vni::Vni;

/// A VRF of a tenant. Its key is its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vrf {
    /// VNI of the routes between switches (L3 VNI). `None` if the VRF stays on this switch.
    pub l3_vni: Option<Vni>,
    /// Routing table.
    pub table: Table,
    /// `true` if the table ends with an unreachable default, for IPv4 and IPv6. Without it a
    /// packet that no route of the tenant matches is looked up in the main table, and reaches the
    /// loopback of the leaf and the spines. A desired VRF always has it.
    pub has_unreachable_default: bool,
    /// `true` if every part of the VRF exists, is up and has our settings: the device and what
    /// carries its L3 VNI. A desired VRF always is.
    pub is_intact: bool,
}

impl Vrf {
    /// A VRF with an unreachable default.
    #[must_use]
    pub fn new(l3_vni: Vni, table: Table) -> Self {
        Self {
            l3_vni: Some(l3_vni),
            table,
            has_unreachable_default: true,
            is_intact: true,
        }
    }

    /// `true` if both are one device: tables and L3 VNIs of a device do not change.
    #[must_use]
    pub fn is_same_device(&self, other: &Self) -> bool {
        self.l3_vni == other.l3_vni && self.table == other.table
    }

    /// `true` if both cannot be on one switch: they have the same table or L3 VNI.
    #[must_use]
    pub fn clashes(&self, other: &Self) -> bool {
        let same_vni = self.l3_vni.is_some() && self.l3_vni == other.l3_vni;
        same_vni || self.table == other.table
    }
}
