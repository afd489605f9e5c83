use std::collections::BTreeSet;
use std::net::SocketAddr;

use ipnet::IpNet;

use crate::model::PortName;

/// The site's part of the packet filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterConfig {
    /// Ports to the site's own switches. What comes from there is not limited, and no control frame
    /// of bridges goes out there.
    pub uplinks: BTreeSet<PortName>,
    /// Prefixes of the underlay, in which firewalls may ping.
    pub underlay: BTreeSet<IpNet>,
    /// Listeners that firewalls may talk to through the underlay, by UDP and TCP.
    pub services: BTreeSet<SocketAddr>,
    /// Prefixes of hosts whose TCP connections firewalls may answer through the underlay.
    pub clients: BTreeSet<IpNet>,
}

/// The prefixes of a version that a set of nftables can have: neither overlapping nor everything.
pub(super) fn merged(prefixes: &BTreeSet<IpNet>, is_v6: bool) -> Vec<IpNet> {
    let of_version = prefixes.iter().map(IpNet::trunc);
    let of_version = of_version.filter(|prefix| matches!(prefix, IpNet::V6(_)) == is_v6);
    let mut out = IpNet::aggregate(&of_version.collect());
    out.retain(|prefix| prefix.prefix_len() > 0);
    out
}

impl FilterConfig {
    /// The services of a version.
    pub(super) fn services(&self, is_v6: bool) -> Vec<SocketAddr> {
        let all = self.services.iter().copied();
        all.filter(|service| service.is_ipv6() == is_v6).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::merged;

    #[test]
    fn prefixes_are_merged_and_never_everything() {
        let of = |texts: &[&str], is_v6| {
            let prefixes = texts.iter().map(|text| text.parse().unwrap());
            let merged = merged(&prefixes.collect(), is_v6);
            let texts: Vec<String> = merged.iter().map(ToString::to_string).collect();
            texts.join(" ")
        };
        let mixed = ["10.0.0.9/24", "10.0.0.1/32", "2001:db8::/48"];
        assert_eq!(of(&mixed, false), "10.0.0.0/24");
        assert_eq!(of(&mixed, true), "2001:db8::/48");
        assert_eq!(of(&["0.0.0.0/1", "128.0.0.0/1"], false), "");
    }
}
