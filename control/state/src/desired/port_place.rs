//! Places of ports.

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
