//! Commands about partitions.

use std::net::IpAddr;

use proto_types::PartitionId;
use serde::{Deserialize, Serialize};

use crate::catalog::entity::{BootConfiguration, Partition};
use crate::meta::{LabelsUpdate, Lock};

/// A whole entity; of its head only the labels count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreatePartition(pub Partition);

/// Deletes the one of this key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeletePartition(pub PartitionId);

/// See [`Op::UpdatePartition`](crate::Op::UpdatePartition). `None` keeps a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdatePartition {
    /// The partition to change.
    pub id: PartitionId,
    /// Optimistic lock: the update is refused if the object changed since the caller read it.
    pub lock: Lock,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Kernel, initramfs and command line of hammer.
    #[serde(default)]
    pub boot: Option<BootConfiguration>,
    /// All name servers of machines. `Some` of an empty list removes them.
    #[serde(default)]
    pub dns_servers: Option<Vec<IpAddr>>,
    /// All time servers of machines. `Some` of an empty list removes them.
    #[serde(default)]
    pub ntp_servers: Option<Vec<String>>,
    /// All addresses of management services. `Some` of an empty list removes them.
    #[serde(default)]
    pub mgmt_service_addresses: Option<Vec<String>>,
    /// Changes of the labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}
