//! Numbers that have one owner at a time: cursors of their pools, and those that cool down.

use std::fmt;

use ipnet::IpNet;
use proto_types::{ProjectId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::network::entity::IpKey;

/// A number that `apply` gives out. The order keeps numbers of one kind together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolNumber {
    /// A VRF id, which is also the VNI of a tenant segment.
    Vrf(u32),
    /// An AS number.
    Asn(u32),
    /// An address.
    Ip(IpKey),
    /// A prefix of a child network.
    Prefix {
        /// Namespace in which it is unique.
        namespace: Option<ProjectId>,
        /// The prefix.
        net: IpNet,
    },
}

impl fmt::Display for PoolNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vrf(vrf) => write!(f, "vrf {vrf}"),
            Self::Asn(asn) => write!(f, "asn {asn}"),
            Self::Ip(key) => write!(f, "ip {key}"),
            Self::Prefix {
                namespace: Some(namespace),
                net,
            } => write!(f, "prefix {namespace}-{net}"),
            Self::Prefix { net, .. } => write!(f, "prefix {net}"),
        }
    }
}

/// A released number that nobody but its last owner gets before `until`: frames, routes and
/// neighbour entries of the last owner may still be under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoolingNumber {
    /// The key: the number.
    pub number: PoolNumber,
    /// The last owner; `None` for a number of the provider.
    pub project: Option<ProjectId>,
    /// Time of its release.
    pub released_at: Timestamp,
    /// End of the cooldown. From then on any project gets the number.
    pub until: Timestamp,
}

/// Position in a pool: the next search begins behind the number that was given out last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolCursor {
    /// The key: `vrf`, `asn`, `ip/<network>/v4`, `prefix/<network>/v6`, ...
    pub pool: String,
    /// The number that was given out last, decimal; of a prefix its last address.
    pub last: String,
}
