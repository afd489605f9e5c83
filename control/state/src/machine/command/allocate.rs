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
    /// The network.
    pub network: NetworkId,
    /// Addresses that the project has already. Empty means a new one of each family.
    #[serde(default)]
    pub ips: Vec<IpAddr>,
}

/// A client's idempotency key: the same key and request get the same machine.
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
    /// Id of the new allocation.
    pub id: AllocationId,
    /// The project that gets the machine.
    pub project: ProjectId,
    /// Exactly this machine: one that the project owns or leases, or, for admins, one of the site,
    /// even if tainted. The API checks who may name one. `None` means the best one of `partition`
    /// and `size`.
    #[serde(default)]
    pub machine: Option<MachineId>,
    /// Display name.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Host name; `None` means `metal`.
    #[serde(default)]
    pub hostname: Option<String>,
    /// Partition; required without a machine, refused with one.
    #[serde(default)]
    pub partition: Option<PartitionId>,
    /// Size; required without a machine, refused with one.
    #[serde(default)]
    pub size: Option<SizeId>,
    /// Exact image, or `os-major[.minor]` for the newest supported patch.
    pub image: ImageId,
    /// Filesystem layout; `None` means the one whose constraints match, and a refusal if none does.
    #[serde(default)]
    pub layout: Option<LayoutId>,
    /// Keys that may log in.
    #[serde(default)]
    pub ssh_public_keys: Vec<String>,
    /// User data, base64.
    #[serde(default)]
    pub userdata: String,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// Networks, at least one.
    pub networks: Vec<WantedNetwork>,
    /// Placement labels: machines with equal ones are spread over racks.
    #[serde(default)]
    pub placement_labels: Labels,
    /// Name servers. Empty means those of the partition.
    #[serde(default)]
    pub dns_servers: Vec<IpAddr>,
    /// Time servers. Empty means those of the partition.
    #[serde(default)]
    pub ntp_servers: Vec<String>,
    /// Use of the machine.
    #[serde(default)]
    pub kind: AllocationType,
    /// Rules of a firewall at its start.
    #[serde(default)]
    pub firewall_rules: FirewallRules,
    /// Credentials of a firewall for the VPN, made for it alone.
    #[serde(default)]
    pub vpn: Option<VpnAccess>,
    /// Seed that chooses among equally good machines. Random, made by the proposer, so that all
    /// replicas choose the same machine.
    pub seed: u64,
    /// The client's idempotency key. `None` means that a repeated request is a new one.
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
