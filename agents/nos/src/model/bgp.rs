use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use proto_types::Asn;

use super::error::ModelError;
use super::names::{PortName, VrfName};
use super::neighbour::BgpNeighbour;

/// BGP of a switch: one AS number in all VRFs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bgp {
    asn: Asn,
    router_id: Ipv4Addr,
    /// `true` if instances, neighbours and policies have our settings also where this model does
    /// not name them (timers, announcements). Otherwise the BGP daemon is configured again. A
    /// desired BGP always is.
    pub is_intact: bool,
    /// `true` if routes are announced as the last resort (RFC 8326): traffic goes over the other
    /// switch.
    pub is_draining: bool,
    /// Neighbours in the default VRF: spines and firewalls.
    pub underlay: BgpNeighbours,
    /// Neighbours by VRF. A VRF with a key here has a BGP instance, which announces its routes into
    /// EVPN, also without a neighbour.
    pub vrfs: BTreeMap<VrfName, BgpNeighbours>,
}

/// Neighbours of one BGP instance by port: whoever is on it, by its link-local address (BGP
/// unnumbered). There are none by address: routed ports have no addresses to reach them from.
pub type BgpNeighbours = BTreeMap<PortName, BgpNeighbour>;

impl Bgp {
    /// BGP without neighbours.
    ///
    /// # Errors
    /// When the AS number is reserved or the router id unspecified.
    pub fn new(asn: Asn, router_id: Ipv4Addr) -> Result<Self, ModelError> {
        if router_id.is_unspecified() {
            return Err(ModelError::RouterId);
        }
        Ok(Self {
            asn: checked_asn(asn)?,
            router_id,
            is_intact: true,
            is_draining: false,
            underlay: BTreeMap::new(),
            vrfs: BTreeMap::new(),
        })
    }

    /// The same BGP, intact, without neighbours and VRFs.
    #[must_use]
    pub(crate) fn without_neighbours(&self) -> Self {
        Self {
            underlay: BTreeMap::new(),
            vrfs: BTreeMap::new(),
            is_intact: true,
            ..*self
        }
    }

    /// AS number of the switch.
    #[must_use]
    pub fn asn(&self) -> Asn {
        self.asn
    }

    /// Router id: the loopback's address.
    #[must_use]
    pub fn router_id(&self) -> Ipv4Addr {
        self.router_id
    }

    /// Sets the router id of another one.
    pub(crate) fn take_router_id(&mut self, other: &Self) {
        self.router_id = other.router_id;
    }

    /// The neighbours of an instance; `None` means the default VRF. No result means no instance.
    #[must_use]
    pub fn neighbours(&self, vrf: Option<&VrfName>) -> Option<&BgpNeighbours> {
        match vrf {
            None => Some(&self.underlay),
            Some(vrf) => self.vrfs.get(vrf),
        }
    }

    /// The neighbours of an instance, to change them.
    pub fn neighbours_mut(&mut self, vrf: Option<&VrfName>) -> Option<&mut BgpNeighbours> {
        match vrf {
            None => Some(&mut self.underlay),
            Some(vrf) => self.vrfs.get_mut(vrf),
        }
    }

    /// All instances; `None` is the default VRF.
    pub fn instances(&self) -> impl Iterator<Item = (Option<&VrfName>, &BgpNeighbours)> {
        let vrfs = self.vrfs.iter().map(|(vrf, of)| (Some(vrf), of));
        std::iter::once((None, &self.underlay)).chain(vrfs)
    }
}

/// Checks that an AS number is not reserved (RFC 7607, RFC 6793, RFC 7300).
pub(super) fn checked_asn(asn: Asn) -> Result<Asn, ModelError> {
    match asn.0 {
        0 | 23456 | 65535 | u32::MAX => Err(ModelError::Asn(asn.0)),
        _ => Ok(asn),
    }
}
