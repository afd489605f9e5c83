//! Allocations: the use of a machine by a project.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use proto_types::{AllocationId, Asn, ImageId, NetworkId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::catalog::entity::Layout;
use crate::machine::entity::{FirewallRules, Install};
use crate::meta::Labels;
use crate::network::entity::{NatType, NetworkType};

/// What a machine is used as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllocationType {
    /// Server.
    #[default]
    Machine,
    /// Firewall.
    Firewall,
}

/// A network of an allocation, as it was at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationNetwork {
    /// Which.
    pub network: NetworkId,
    /// Its type.
    pub kind: NetworkType,
    /// Its prefixes.
    #[serde(default)]
    pub prefixes: Vec<IpNet>,
    /// What is reached through it.
    #[serde(default)]
    pub destination_prefixes: Vec<IpNet>,
    /// The machine's addresses.
    #[serde(default)]
    pub ips: Vec<IpAddr>,
    /// Namespace of the network: part of the addresses' keys.
    #[serde(default)]
    pub namespace: Option<ProjectId>,
    /// Translation on the way out.
    #[serde(default)]
    pub nat: NatType,
    /// VRF and VNI; 0 for none.
    #[serde(default)]
    pub vrf: u32,
    /// The machine's AS number.
    pub asn: Asn,
    /// Whose network it is.
    #[serde(default)]
    pub project: Option<ProjectId>,
}

/// A machine's use by a project, from allocate until the switches report that its ports left the
/// tenant's segment.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// New each time.
    pub id: AllocationId,
    /// Since when.
    pub created_at: Timestamp,
    /// When its project changed it last; zero when it never did.
    #[serde(default)]
    pub updated_at: Timestamp,
    /// Counts the changes by its project, from 1.
    #[serde(default = "first")]
    pub generation: u64,
    /// Who asked for it.
    pub created_by: String,
    /// Whose it is.
    pub project: ProjectId,
    /// Shown name.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Host name of the installed system.
    pub hostname: String,
    /// What it is used as.
    #[serde(default)]
    pub kind: AllocationType,
    /// The image that the request resolved to.
    pub image: ImageId,
    /// Layout as it was at that time.
    pub layout: Layout,
    /// Its networks.
    pub networks: Vec<AllocationNetwork>,
    /// Its AS number, the same on all networks.
    pub asn: Asn,
    /// Keys that may log in.
    #[serde(default)]
    pub ssh_public_keys: Vec<String>,
    /// cloud-init or Ignition, base64 as the user gave it; may hold secrets.
    #[serde(default)]
    pub userdata: String,
    /// Labels of the user.
    #[serde(default)]
    pub labels: Labels,
    /// Machines with equal ones are spread over racks.
    #[serde(default)]
    pub placement_labels: Labels,
    /// Name servers.
    #[serde(default)]
    pub dns_servers: Vec<IpAddr>,
    /// Time servers.
    #[serde(default)]
    pub ntp_servers: Vec<String>,
    /// Of a firewall.
    #[serde(default)]
    pub firewall_rules: FirewallRules,
    /// How the installation goes.
    #[serde(default)]
    pub install: Install,
    /// Number of events of the machine from before it: its tenant is not shown them.
    #[serde(default, skip_serializing_if = "crate::machine::entity::is_zero")]
    pub events_before: u64,
}

const fn first() -> u64 {
    1
}

impl Allocation {
    /// When it was made or changed last.
    pub fn changed_at(&self) -> Timestamp {
        self.updated_at.max(self.created_at)
    }

    /// The VNI of the tenant's segment: VRF of the child network.
    pub fn tenant_vrf(&self) -> Option<u32> {
        self.networks
            .iter()
            .find(|n| n.kind.is_child() && n.vrf != 0)
            .map(|n| n.vrf)
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocation")
            .field("id", &self.id)
            .field("project", &self.project)
            .field("name", &self.name)
            .field("image", &self.image)
            .field("layout", &self.layout.id)
            .field("networks", &self.networks)
            .field("asn", &self.asn)
            .field("userdata", &"<redacted>")
            .field("install", &self.install)
            .finish_non_exhaustive()
    }
}
