//! Ids, names and addresses that two ends of a wire must agree on.
//!
//! Everything here is parsed once, at the edge, and trusted inside: a value of one of these types
//! satisfies its rule. The rules are those of the public contract (`metalstack.api.v2`).
//! Text is the only wire form: `Display` writes what `FromStr` reads, and serde uses both, except
//! for plain numbers (`Vni`, `Asn`, `Timestamp`).
//!
//! Invariants: no I/O, no clock, no policy. Order (`Ord`) is total and stable, so that the types
//! can be keys of the replicated state.

mod audit;
mod audit_hash;
mod digest;
mod ids;
mod mac;
mod names;
mod numbers;
mod time;

pub use audit::{AuditGaps, AuditLine, AuditPhase, RETENTION_METHOD};
pub use audit_hash::AuditHash;
pub use digest::{Digest, DigestAlgorithm};
pub use ids::{
    AllocationId, BootTicketId, ComponentId, IpId, JoinTicketId, MachineId, OrderId, ProjectId,
    ReservationId, TokenId,
};
pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};
pub use mac::MacAddr;
pub use names::{
    ImageId, LayoutId, NetworkId, PartitionId, SizeId, SwitchId, TenantId, is_description,
    is_hostname, is_name,
};
pub use numbers::{ASN_BASE, Asn, VNI_MAX, Vni};
pub use time::{SECOND_MS, Timestamp};

/// Why a text is not a value of the named type.
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
    /// How much of a bad value an error repeats, characters.
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
