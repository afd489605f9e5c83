//! Keys and names in SONiC's databases.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::Vlan;
use crate::vni::Vni;

/// Tables of `CONFIG_DB` that the back-end reads, each with its separator.
pub(super) const TABLES: [&str; 14] = [
    "DEVICE_METADATA|",
    "INTERFACE|",
    "LOOPBACK_INTERFACE|",
    "METALMESH_SEGMENT|",
    "METALMESH_VRF|",
    "PORT|",
    "PORTCHANNEL_MEMBER|",
    "SAG|",
    "VLAN|",
    "VLAN_INTERFACE|",
    "VLAN_MEMBER|",
    "VRF|",
    "VXLAN_EVPN_NVO|",
    "VXLAN_TUNNEL",
];

/// Name of the tunnel, if the site has not made one.
pub(super) const TUNNEL: &str = "vtep";
/// Name of the EVPN overlay, if the site has not made one.
pub(super) const NVO: &str = "nvo";
/// The loopback that gets the address of the tunnels.
pub(super) const LOOPBACK: &str = "Loopback0";
/// MAC address of gateways, if the site has not set one: that of the other back-ends.
pub(super) const GATEWAY_MAC: &str = "00:00:5e:00:01:01";

/// The use of a map from VLAN to VNI. It is part of the map's name, which SONiC leaves to whoever
/// makes the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MapUse {
    /// A segment whose VLAN the back-end has chosen.
    Segment,
    /// A segment whose VLAN control has chosen.
    Vlan,
    /// The routes of a VRF.
    Vrf,
}

impl MapUse {
    fn prefix(self) -> &'static str {
        match self {
            Self::Segment => "mm_segment_",
            Self::Vlan => "mm_vlan_",
            Self::Vrf => "mm_vrf_",
        }
    }

    /// The name of a map.
    pub(super) fn name(self, vni: Vni) -> String {
        format!("{}{vni}", self.prefix())
    }

    /// The use of a map of this name and VNI. `None` if it is somebody else's.
    pub(super) fn of(name: &str, vni: Vni) -> Option<Self> {
        let all = [Self::Segment, Self::Vlan, Self::Vrf];
        all.into_iter().find(|of| of.name(vni) == name)
    }
}

/// `true` for an address in a key that SONiC's intfmgrd gives to the kernel and not to `APPL_DB`:
/// a link-local one of IPv4. Hosts find it by ARP, which the kernel answers.
pub(super) fn is_of_kernel(address: &str) -> bool {
    let address = address.parse::<IpNet>().map(|address| address.addr());
    matches!(address, Ok(IpAddr::V4(address)) if address.is_link_local())
}

/// The name of a VLAN.
pub(super) fn vlan_name(vlan: Vlan) -> String {
    format!("Vlan{vlan}")
}

/// The VLAN of a name. `None` if it is none, also with leading zeros.
pub(super) fn vlan_of(name: &str) -> Option<Vlan> {
    let vlan = Vlan::new(name.strip_prefix("Vlan")?.parse().ok()?).ok()?;
    (vlan_name(vlan) == name).then_some(vlan)
}
