use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use super::error::ModelError;
use super::names::VrfName;
use super::numbers::{Mtu, Vlan};
use super::tunnel::Tunnel;

/// An L2 segment on this switch. Its key is its VNI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// VLAN inside this switch. `None` if the segment has a bridge of its own.
    pub vlan: Option<Vlan>,
    /// MTU inside the segment.
    pub mtu: Mtu,
    /// The way to the other switches.
    pub tunnel: Tunnel,
    /// Tunnel ends that broadcasts are sent to (head-end replication). Empty if EVPN finds them.
    pub remotes: BTreeSet<IpAddr>,
    /// The segment's gateway. `None` if the switch is no host in the segment.
    pub gateway: Option<Gateway>,
    /// `true` if every part exists, is up and has our settings. A desired segment always is.
    pub is_intact: bool,
}

/// The anycast gateway of a segment: the same addresses on every leaf, routed in a VRF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    vrf: VrfName,
    addresses: BTreeSet<IpNet>,
}

impl Segment {
    /// A segment with a bridge of its own, without remotes and gateway.
    #[must_use]
    pub fn new(mtu: Mtu) -> Self {
        Self {
            vlan: None,
            mtu,
            tunnel: Tunnel::Open,
            remotes: BTreeSet::new(),
            gateway: None,
            is_intact: true,
        }
    }
}

impl Gateway {
    /// Checks the addresses of a gateway; each has the length of its prefix.
    ///
    /// # Errors
    /// When there is none, or one is not a unicast address.
    pub fn new(
        vrf: VrfName,
        addresses: impl IntoIterator<Item = IpNet>,
    ) -> Result<Self, ModelError> {
        let addresses: BTreeSet<IpNet> = addresses.into_iter().collect();
        if addresses.is_empty() {
            return Err(ModelError::NoGateway);
        }
        for address in &addresses {
            unicast(address.addr())?;
        }
        Ok(Self { vrf, addresses })
    }

    /// The VRF that routes the segment. Never the default VRF, which reaches the underlay.
    #[must_use]
    pub fn vrf(&self) -> &VrfName {
        &self.vrf
    }

    /// The addresses with the lengths of their prefixes.
    #[must_use]
    pub fn addresses(&self) -> &BTreeSet<IpNet> {
        &self.addresses
    }
}

/// Checks that an address can be one of a host.
fn unicast(address: IpAddr) -> Result<IpAddr, ModelError> {
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    if address.is_unspecified() || address.is_multicast() || is_broadcast {
        return Err(ModelError::Address(address));
    }
    Ok(address)
}
