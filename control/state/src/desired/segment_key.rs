//! The key of a segment in the fabric.

use proto_types::{PartitionId, Vni};

/// A segment: VNIs are unique in a partition only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SegmentKey {
    pub(super) partition: PartitionId,
    pub(super) vni: Vni,
}
