//! The last order of a switch.

use std::collections::BTreeMap;

use proto_types::Vni;

/// The port configuration last sent to a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SwitchOrder {
    pub(crate) term: u64,
    /// Revision at which this configuration was first sent.
    pub(crate) generation: u64,
    /// Segment of each port, and `true` if the port is switched on.
    pub(crate) ports: BTreeMap<String, (Vni, bool)>,
}
