use std::fmt;

/// One ability of a back-end beyond ports and segments with a bridge of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Ports that do not reach each other inside a segment.
    PrivatePorts,
    /// Segments whose tunnel is a private port.
    PrivateTunnels,
    /// Segments that end at the switch: without a tunnel to others.
    LocalSegments,
    /// Lists of tunnel ends that a segment's broadcasts are sent to.
    Remotes,
    /// Segments that are VLANs of one bridge.
    Vlans,
    /// Ports routed in the default VRF, and a loopback address of the agent's choice.
    Underlay,
    /// VRFs, with the ports and gateways in them.
    Vrfs,
    /// BGP, with its policies.
    Bgp,
    /// Rules for the packets that ports send to the switch and into the underlay.
    PacketFilter,
}

impl Capability {
    /// Every capability.
    pub const ALL: &[Self] = &[
        Self::PrivatePorts,
        Self::PrivateTunnels,
        Self::LocalSegments,
        Self::Remotes,
        Self::Vlans,
        Self::Underlay,
        Self::Vrfs,
        Self::Bgp,
        Self::PacketFilter,
    ];
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PrivatePorts => "private ports",
            Self::PrivateTunnels => "private tunnels",
            Self::LocalSegments => "segments without a tunnel",
            Self::Remotes => "lists of remote tunnel ends",
            Self::Vlans => "VLANs",
            Self::Underlay => "routed ports of the underlay",
            Self::Vrfs => "VRFs",
            Self::Bgp => "a BGP daemon",
            Self::PacketFilter => "filters of VXLAN packets by port",
        })
    }
}
