//! The place of a port.

use crate::vni::Vni;

/// The place of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortPlace {
    /// In no segment.
    Isolated,
    /// In a segment.
    Segment(Vni),
    /// In a device that is not ours, with this name.
    Foreign(String),
}
