//! The BGP section of the configuration.

use proto_types::IpNet;
use serde::Deserialize;

/// BGP of the switch.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BgpConfig {
    /// AS number of the switch.
    pub asn: u32,
    /// Ports towards spines ("swp31"). They are not registered, because no machine is connected to
    /// them.
    #[serde(default)]
    pub spines: Vec<String>,
    /// Prefixes that hold the tunnel ends of all leaves. A firewall is told of these only; empty
    /// means of none.
    #[serde(default)]
    pub underlay: Vec<IpNet>,
}

impl BgpConfig {
    /// The prefixes of the underlay of one IP version.
    pub(crate) fn of_version(&self, is_v6: bool) -> Vec<IpNet> {
        let prefixes = self.underlay.iter().copied();
        let of_version = prefixes.filter(|prefix| matches!(prefix, IpNet::V6(_)) == is_v6);
        of_version.collect()
    }
}
