use std::net::IpAddr;

use base_outbound::is_public;
use ipnet::IpNet;

/// Which addresses a release may be fetched from. Whoever names the URL would otherwise reach the
/// services of the host and of the operator's networks with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressRule {
    /// Local addresses that the operator allows.
    local: Vec<IpNet>,
}

impl AddressRule {
    /// The rule with these exceptions.
    #[must_use]
    pub fn new(local: Vec<IpNet>) -> Self {
        Self { local }
    }

    /// `true` if a release may be fetched from the address.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        is_public(address) || self.local.iter().any(|prefix| prefix.contains(&address))
    }
}
