//! Shapes: hosts that are alike to every claim.

use std::collections::BTreeSet;

use proto_types::{PartitionId, PoolId, SizeId};

use crate::meta::Labels;
use crate::pool::entity::{DeployPolicy, HostTaint, PoolHost};

/// The part of a host that decides which claims it fits. Claims are held against shapes and not
/// against hosts: a hundred thousand hosts have few of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostShape {
    /// The pool. First, so that the shapes of a pool are neighbours in the index.
    pub(crate) pool: PoolId,
    /// Partition of the machine.
    pub(crate) partition: Option<PartitionId>,
    /// Size of the machine.
    pub(crate) size: Option<SizeId>,
    /// Failure domain.
    pub(crate) domain: String,
    /// Taints.
    pub(crate) taints: BTreeSet<HostTaint>,
    /// Labels, also those that are not published.
    pub(crate) labels: Labels,
    /// Policies that narrow those of the pool.
    pub(crate) only: Vec<DeployPolicy>,
}

impl HostShape {
    /// The shape of a host.
    pub(crate) fn of(host: &PoolHost) -> Self {
        Self {
            pool: host.pool.clone(),
            partition: host.seen.partition.clone(),
            size: host.seen.size.clone(),
            domain: host.domain.clone(),
            taints: host.taints.clone(),
            labels: host.meta.labels.clone(),
            only: host.only.clone(),
        }
    }

    /// The first shape that a pool could have.
    pub(crate) fn first_of(pool: PoolId) -> Self {
        Self {
            pool,
            partition: None,
            size: None,
            domain: String::new(),
            taints: BTreeSet::new(),
            labels: Labels::new(),
            only: Vec::new(),
        }
    }
}
