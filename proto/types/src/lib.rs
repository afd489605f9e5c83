//! Ids, names and addresses that both ends of a connection share.
//!
//! Values are parsed once, at the edge. The rules are those of the public contract
//! (`metalstack.api.v2`). Ids, names, addresses and digests travel as text; `Vni`, `Asn` and
//! `Timestamp` as numbers.
//!
//! Invariants:
//! - a value satisfies the rule of its type: parsing and deserialising check it;
//! - `FromStr` reads what `Display` writes, and serde uses both;
//! - no I/O, no clock and no policy;
//! - `Ord` of ids and names is total and stable, so they can be keys of the replicated state.

mod audit;
mod audit_hash;
mod capability;
mod digest;
mod ids;
mod mac;
mod names;
mod numbers;
mod time;

pub use audit::{AuditGaps, AuditLine, AuditPhase, RETENTION_METHOD};
pub use audit_hash::AuditHash;
pub use capability::{ResourceClass, TraitName};
pub use digest::{Digest, DigestAlgorithm};
pub use ids::{
    AllocationId, BootTicketId, ClaimId, ComponentId, IpId, JoinTicketId, LeaseId, MachineId,
    NodeAllocationId, OrderId, ProjectId, ReservationId, TokenId,
};
pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
pub use mac::MacAddr;
pub use names::{
    ImageId, LayoutId, NetworkId, PartitionId, PoolId, SizeId, SwitchId, TenantId, is_description,
    is_host_and_port, is_hostname, is_name,
};
pub use numbers::{ASN_BASE, Asn, VNI_MAX, Vni};
pub use time::{SECOND_MS, Timestamp};

/// The feature level of this release's programs: the highest whose commands they know. Every program
/// shows it, and control negotiates by it (`control-state`, where levels are listed).
pub const FEATURE_LEVEL: u32 = 2;

/// The reason why a text is not a value of a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?} {rule}")]
pub struct ParseError {
    /// The expected type: "machine id", "MAC address", ...
    pub what: &'static str,
    /// The given text, cut to [`ParseError::VALUE_MAX`] characters.
    pub value: String,
    /// The rule that it breaks: "must be a UUID".
    pub rule: &'static str,
}

impl ParseError {
    /// Longest part of a value that an error repeats, characters. The rest is cut.
    pub const VALUE_MAX: usize = 64;

    pub(crate) fn new(what: &'static str, value: &str, rule: &'static str) -> Self {
        Self {
            what,
            value: value.chars().take(Self::VALUE_MAX).collect(),
            rule,
        }
    }
}

/// Serde by `Display` and `FromStr`.
macro_rules! text_serde {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use text_serde;
