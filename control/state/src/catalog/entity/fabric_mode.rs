//! How the switches of a partition connect the ports of a tenant.

use strum::{EnumString, IntoStaticStr};

/// How the switches of a partition connect the ports of a tenant; the value of the label
/// [`FABRIC`](crate::meta::label::FABRIC).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, EnumString,
)]
#[strum(serialize_all = "kebab-case")]
pub enum FabricMode {
    /// L2 segments, replicated to the tunnel ends that control computes.
    #[default]
    Static,
    /// VRFs with BGP and EVPN, which finds the tunnel ends.
    Evpn,
}

impl FabricMode {
    /// The value of the label.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
