//! Allocations: the use of a machine by a project.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use proto_types::{AllocationId, Asn, ImageId, NetworkId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::catalog::entity::{Layout, Networking};
use crate::machine::entity::{ClaimGrant, FirewallRules, Install, ReplacedFirewall};
use crate::meta::Labels;
use crate::network::entity::{NatType, NetworkType};

/// Use of a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllocationType {
    /// Server.
    #[default]
    Machine,
    /// Firewall.
    Firewall,
}

/// A network of an allocation, as it was at the time of the allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationNetwork {
    /// The network.
    pub network: NetworkId,
    /// Its type.
    pub kind: NetworkType,
    /// Its prefixes.
    #[serde(default)]
    pub prefixes: Vec<IpNet>,
    /// Prefixes reached through it.
    #[serde(default)]
    pub destination_prefixes: Vec<IpNet>,
    /// The machine's addresses.
    #[serde(default)]
    pub ips: Vec<IpAddr>,
    /// Namespace of the network: part of the addresses' keys.
    #[serde(default)]
    pub namespace: Option<ProjectId>,
    /// Address translation of outgoing traffic.
    #[serde(default)]
    pub nat: NatType,
    /// VRF and VNI; 0 means none.
    #[serde(default)]
    pub vrf: u32,
    /// The machine's AS number.
    pub asn: Asn,
    /// Project of the network; `None` means that it is shared by all.
    #[serde(default)]
    pub project: Option<ProjectId>,
}

/// A machine's use by a project, from allocate until the switches report that its ports left the
/// tenant's segment.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Id, new for each allocation.
    pub id: AllocationId,
    /// Time of the allocation.
    pub created_at: Timestamp,
    /// Last change by its project; zero means never.
    #[serde(default)]
    pub updated_at: Timestamp,
    /// Number of its version, from 1; each change by its project adds one.
    #[serde(default = "first")]
    pub generation: u64,
    /// The caller that asked for it.
    pub created_by: String,
    /// The project that has the machine.
    pub project: ProjectId,
    /// Display name.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Host name of the installed system.
    pub hostname: String,
    /// Use of the machine.
    #[serde(default)]
    pub kind: AllocationType,
    /// The image that the request resolved to.
    pub image: ImageId,
    /// Network of the installed system, as the labels of image and partition named it at the time
    /// of the allocation. Ports and installation follow it: a label of the image that changes later
    /// moves no port of a running machine.
    #[serde(default, skip_serializing_if = "Networking::is_static")]
    pub networking: Networking,
    /// Filesystem layout as it was at the time of the allocation.
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
    /// Placement labels: machines with equal ones are spread over racks.
    #[serde(default)]
    pub placement_labels: Labels,
    /// Name servers.
    #[serde(default)]
    pub dns_servers: Vec<IpAddr>,
    /// Time servers.
    #[serde(default)]
    pub ntp_servers: Vec<String>,
    /// Rules of a firewall at its start; empty for other machines.
    #[serde(default)]
    pub firewall_rules: FirewallRules,
    /// Progress of the installation.
    #[serde(default)]
    pub install: Install,
    /// Number of events that the machine had before; this tenant is not shown them.
    #[serde(default, skip_serializing_if = "crate::machine::entity::is_zero")]
    pub events_before: u64,
    /// `true` for a firewall whose SSH keys and user data are an administrator's. `false` for other machines,
    /// and for firewalls from a time when their project could give them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed_to_project: bool,
    /// The firewall that this one takes the place of. `None` means that it takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<ReplacedFirewall>,
    /// The claim that it serves. `None` means that its project asked for a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimGrant>,
}

/// Version of an allocation that was never changed.
const fn first() -> u64 {
    1
}

impl Allocation {
    /// Time of the last change, or of the allocation.
    pub fn changed_at(&self) -> Timestamp {
        self.updated_at.max(self.created_at)
    }

    /// Time that decides among healthy firewalls of a project, the oldest first: that of the
    /// allocation, or of the firewall whose place it took.
    pub fn senior_since(&self) -> Timestamp {
        let replaced = self.replaces.as_ref();
        let taken = replaced.filter(|replaced| replaced.taken_at.is_some());
        taken.map_or(self.created_at, |replaced| replaced.since)
    }

    /// `true` for a firewall that may have SSH keys or user data of its project.
    pub fn may_be_entered_by_project(&self) -> bool {
        let has_access = !self.ssh_public_keys.is_empty() || !self.userdata.is_empty();
        self.kind == AllocationType::Firewall && !self.closed_to_project && has_access
    }

    /// `true` if the installed system speaks BGP with its leaves in an EVPN partition.
    pub fn speaks_bgp(&self) -> bool {
        self.kind == AllocationType::Firewall || self.networking == Networking::Routed
    }

    /// VNI of the tenant's segment: the VRF of the child network. `None` means that it has none.
    pub fn tenant_vrf(&self) -> Option<u32> {
        self.networks
            .iter()
            .find(|network| network.kind.is_child() && network.vrf != 0)
            .map(|network| network.vrf)
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
            .field("networking", &self.networking)
            .field("networks", &self.networks)
            .field("asn", &self.asn)
            .field("userdata", &"<redacted>")
            .field("install", &self.install)
            .finish_non_exhaustive()
    }
}
