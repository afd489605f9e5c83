//! Networks.

use std::net::IpAddr;

use ipnet::IpNet;
use proto_types::{NetworkId, PartitionId, ProjectId};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::meta::Meta;
use crate::network::entity::{ChildLength, Family};

/// The highest VRF id of a network, and the highest VNI of a provisioning segment. VNIs above it are
/// those of the segments of bridged machines ([`bridged_segment`](crate::life::bridged_segment)).
pub const VRF_MAX: u32 = (1 << 23) - 1;

/// The type of a network.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
pub enum NetworkType {
    /// A network outside the data centre, such as the internet.
    External,
    /// The network of the tunnels between switches and firewalls.
    Underlay,
    /// A network that children of a partition get their prefixes from.
    Super,
    /// Like `Super`, with a namespace per project: each project can use the whole of it.
    SuperNamespaced,
    /// A project's own network.
    Child,
    /// A project's own network, in which other projects may have addresses.
    ChildShared,
}

impl NetworkType {
    /// The name that the wire uses.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
    /// `true` if child networks get their prefixes from it.
    pub const fn is_super(self) -> bool {
        matches!(self, Self::Super | Self::SuperNamespaced)
    }
    /// `true` if it got its prefixes from another network.
    pub const fn is_child(self) -> bool {
        matches!(self, Self::Child | Self::ChildShared)
    }
}

/// Translation of addresses on the way out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NatType {
    /// No translation.
    #[default]
    None,
    /// IPv4 is masqueraded.
    Ipv4Masquerade,
}

/// A network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// The key.
    pub id: NetworkId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Type of the network.
    pub kind: NetworkType,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Partition of the network. `None` means all partitions.
    #[serde(default)]
    pub partition: Option<PartitionId>,
    /// Project that owns the network. `None` means that all projects may use it.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// Project in whose namespace the prefixes are unique. `None` means the common namespace.
    #[serde(default)]
    pub namespace: Option<ProjectId>,
    /// Its prefixes, canonical.
    #[serde(default)]
    pub prefixes: Vec<IpNet>,
    /// Prefixes that are reached through the network.
    #[serde(default)]
    pub destination_prefixes: Vec<IpNet>,
    /// Of super networks: prefix length of a child that requests none.
    #[serde(default)]
    pub default_child_length: ChildLength,
    /// Of super networks: shortest prefix that a child may request.
    #[serde(default)]
    pub min_child_length: ChildLength,
    /// Address translation of outgoing traffic.
    #[serde(default)]
    pub nat: NatType,
    /// VRF id, and VNI of the segment. `None` means that the network has no VRF of its own.
    #[serde(default)]
    pub vrf: Option<u32>,
    /// The network that it got its prefixes from. `None` means that it is no child.
    #[serde(default)]
    pub parent: Option<NetworkId>,
    /// Prefixes that machines may announce beside their own.
    #[serde(default)]
    pub additional_announcable_cidrs: Vec<IpNet>,
}

impl Network {
    /// `true` if it has a prefix of this IP version.
    pub fn has_family(&self, family: Family) -> bool {
        self.prefixes
            .iter()
            .any(|net| Family::of_net(net) == family)
    }
    /// The prefix that holds this address.
    pub fn prefix_of(&self, ip: IpAddr) -> Option<&IpNet> {
        self.prefixes.iter().find(|net| net.contains(&ip))
    }
    /// The versions of IP that it has, IPv4 first.
    pub fn families(&self) -> impl Iterator<Item = Family> + '_ {
        [Family::V4, Family::V6]
            .into_iter()
            .filter(|family| self.has_family(*family))
    }
}
