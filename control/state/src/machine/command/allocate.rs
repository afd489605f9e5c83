//! The command that gives a machine to a project.

use std::fmt;
use std::net::IpAddr;

use proto_types::{
    AllocationId, Digest, ImageId, LayoutId, MachineId, NetworkId, PartitionId, ProjectId, SizeId,
};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{AllocationType, FirewallRules, VpnAccess};
use crate::meta::Labels;

/// A network that an allocation asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedNetwork {
    /// Which.
    pub network: NetworkId,
    /// Addresses that the project has already; new ones of each version when empty.
    #[serde(default)]
    pub ips: Vec<IpAddr>,
}

/// A client's key: the same key and request give the same machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyRequest {
    /// The client's key.
    pub key: String,
    /// SHA-256 of the request as the client sent it.
    pub request: Digest,
}

/// See [`Op::AllocateMachine`](crate::Op::AllocateMachine).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct AllocateMachine {
    /// Id of the allocation, new each time.
    pub id: AllocationId,
    /// For whom.
    pub project: ProjectId,
    /// This machine and no other; tainted is fine then. Only for admins: the API checks.
    #[serde(default)]
    pub machine: Option<MachineId>,
    /// Shown name.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Host name; `metal` without one.
    #[serde(default)]
    pub hostname: Option<String>,
    /// Where; required without a machine.
    #[serde(default)]
    pub partition: Option<PartitionId>,
    /// What; required without a machine.
    #[serde(default)]
    pub size: Option<SizeId>,
    /// Exact image, or `os-major[.minor]` for the newest supported patch.
    pub image: ImageId,
    /// Layout; `None` means the one whose constraints match, without which it is refused.
    #[serde(default)]
    pub layout: Option<LayoutId>,
    /// Keys that may log in.
    #[serde(default)]
    pub ssh_public_keys: Vec<String>,
    /// Base64.
    #[serde(default)]
    pub userdata: String,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// At least one.
    pub networks: Vec<WantedNetwork>,
    /// Machines with equal ones are spread over racks.
    #[serde(default)]
    pub placement_labels: Labels,
    /// Those of the partition without.
    #[serde(default)]
    pub dns_servers: Vec<IpAddr>,
    /// Those of the partition without.
    #[serde(default)]
    pub ntp_servers: Vec<String>,
    /// What it is used as.
    #[serde(default)]
    pub kind: AllocationType,
    /// Of a firewall.
    #[serde(default)]
    pub firewall_rules: FirewallRules,
    /// Of a firewall: its way into the VPN, made for it alone.
    #[serde(default)]
    pub vpn: Option<VpnAccess>,
    /// Chooses among machines that are equally good; random, from the proposer.
    pub seed: u64,
    /// The client's key.
    #[serde(default)]
    pub idempotency: Option<IdempotencyRequest>,
}

impl fmt::Debug for AllocateMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocateMachine")
            .field("id", &self.id)
            .field("project", &self.project)
            .field("machine", &self.machine)
            .field("name", &self.name)
            .field("partition", &self.partition)
            .field("size", &self.size)
            .field("image", &self.image)
            .field("networks", &self.networks)
            .field("userdata", &"<redacted>")
            .finish_non_exhaustive()
    }
}
