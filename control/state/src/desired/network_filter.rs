use std::collections::BTreeSet;

use proto_types::IpNet;

/// The IP prefixes that a firewall may announce by EVPN in one of its networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkFilter {
    /// Permitted as they are: default routes, and prefixes around the network's own.
    pub routes: BTreeSet<IpNet>,
    /// Permitted with everything in them.
    pub prefixes: BTreeSet<IpNet>,
}
