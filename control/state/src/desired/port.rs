//! The desired state of a port.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto_types::{Asn, IpNet, Vni};

use super::NetworkFilter;

/// The desired state of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortIntent {
    /// Name.
    pub name: String,
    /// Segment, or L3 VNI of the tenant's VRF; [`Vni::NONE`] isolates the port.
    pub vni: Vni,
    /// `true` if the port is administratively up.
    pub admin_up: bool,
    /// The kind of place that the VNI names.
    pub place: PortPlace,
    /// The routes that the machine at the port may announce. `None` means that it may announce
    /// nothing.
    pub filter: Option<PortFilter>,
}

/// The kind of place that a port is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PortPlace {
    /// In the bridge of a segment, or isolated.
    #[default]
    Segment,
    /// Routed in the VRF of a tenant.
    Routed,
    /// In the bridge of the segment of a VRF's bridged machines
    /// ([`bridged_segment`](crate::life::bridged_segment)).
    Bridged,
    /// Routed in the default VRF: the port of a firewall, which has tunnels of its own.
    Underlay,
}

/// The routes that the machine at a port may announce there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortFilter {
    /// AS number of the machine.
    pub asn: Asn,
    /// Permitted prefixes with everything in them, aggregated. Machines of a project share them.
    pub prefixes: Arc<BTreeSet<IpNet>>,
    /// VNIs whose EVPN routes are exchanged. Empty for servers.
    pub vnis: BTreeSet<u32>,
    /// IP prefixes that a firewall may announce by EVPN, for each of its VNIs. Empty for servers.
    pub networks: BTreeMap<u32, NetworkFilter>,
}
