use std::collections::BTreeSet;

use ipnet::IpNet;

use super::error::ModelError;
use super::names::PolicyName;

/// A prefix list of one address family: it permits what a rule matches and denies the rest.
///
/// Without rules it permits nothing. FRR reads a list without entries as "permit all", so that a
/// back-end ends each list with an entry that denies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixList {
    /// The permitted prefixes.
    pub rules: BTreeSet<PrefixRule>,
}

/// Name of a prefix list. Lists of the two families have separate names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrefixListId {
    /// `true` for a list of IPv6 prefixes.
    pub is_v6: bool,
    /// Name.
    pub name: PolicyName,
}

/// One permitted prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrefixRule {
    prefix: IpNet,
    le: u8,
}

impl PrefixRule {
    /// Permits a prefix, and more specific ones up to `le` bits. Host bits of the prefix are
    /// cleared.
    ///
    /// # Errors
    /// When `le` is shorter than the prefix or longer than an address.
    pub fn new(prefix: IpNet, le: u8) -> Result<Self, ModelError> {
        let prefix = prefix.trunc();
        if le < prefix.prefix_len() || le > prefix.max_prefix_len() {
            return Err(ModelError::Length { prefix, le });
        }
        Ok(Self { prefix, le })
    }

    /// The prefix without host bits.
    #[must_use]
    pub fn prefix(&self) -> IpNet {
        self.prefix
    }

    /// Longest permitted prefix, bits.
    #[must_use]
    pub fn le(&self) -> u8 {
        self.le
    }

    /// `true` for an IPv6 prefix.
    #[must_use]
    pub fn is_v6(&self) -> bool {
        matches!(self.prefix, IpNet::V6(_))
    }
}
