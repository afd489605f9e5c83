//! The routes that a firewall may announce by EVPN, and the rules of its import.
//!
//! FRR 8.4.4 compares an EVPN route's VNI, targets, type, next hop and AS path. It does not compare
//! the prefix: a prefix list matches no EVPN route. The prefixes are compared by
//! [`audit`](crate::route_audit).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use agents_nos::Vni;
use agents_nos::model::{PolicyName, RouteMatch, RouteRule};
use proto_mesh::{FIREWALL_PREFIXES_MAX, NETWORK_PREFIXES_MAX, NetworkFilter, PortFilter};
use proto_types::IpNet;

/// Most tunnel ends of a firewall. Control gives it one.
const ENDS_MAX: usize = 4;

/// The prefixes that a firewall may announce in each of its VNIs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirewallRoutes(BTreeMap<Vni, PermittedPrefixes>);

/// The prefixes that a firewall may announce in one VNI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PermittedPrefixes {
    /// Permitted as they are.
    routes: BTreeSet<IpNet>,
    /// Permitted with everything in them.
    prefixes: BTreeSet<IpNet>,
}

impl FirewallRoutes {
    /// Reads the filter of a firewall's port. `None` if control does not know of networks: then the
    /// VNIs alone decide.
    ///
    /// # Errors
    /// When a network is none of the filter's VNIs or is there twice, when a prefix is not canonical
    /// or is a default route that stands for everything, and when there are too many.
    pub(crate) fn of(filter: &PortFilter) -> Result<Option<Self>, String> {
        if filter.networks.is_empty() {
            return Ok(None);
        }
        let mut out = Self::default();
        let mut count = 0;
        for network in &filter.networks {
            let vni = Vni::new(network.vni).map_err(|error| error.to_string())?;
            if !filter.vnis.contains(&network.vni) {
                return Err(format!("has prefixes of VNI {vni}, which is not its own"));
            }
            let permitted = PermittedPrefixes::of(network)?;
            count += permitted.routes.len() + permitted.prefixes.len();
            if count > FIREWALL_PREFIXES_MAX {
                let text = format!("has more than {FIREWALL_PREFIXES_MAX} prefixes for EVPN");
                return Err(text);
            }
            if out.0.insert(vni, permitted).is_some() {
                return Err(format!("has VNI {vni} twice"));
            }
        }
        Ok(Some(out))
    }

    /// `true` if the firewall may announce a prefix in a VNI.
    pub(crate) fn permits(&self, vni: Vni, prefix: &IpNet) -> bool {
        let permitted = self.0.get(&vni);
        permitted.is_some_and(|of| of.routes.contains(prefix) || is_within(&of.prefixes, prefix))
    }

    /// The rules for the EVPN routes of a VNI: IP prefixes alone, with the firewall's own AS path,
    /// over a tunnel to itself. They are the last resort, so that no prefix of another host is taken
    /// before the audit has seen it.
    fn rules(&self, vni: Vni, ends: &[Ipv4Addr], origins: &PolicyName) -> Vec<RouteRule> {
        let deny = |matches: &[RouteMatch]| RouteRule {
            permits: false,
            matches: matches.iter().cloned().collect(),
            is_last_resort: false,
            clears_communities: false,
        };
        let permitted = self.0.get(&vni);
        if permitted.is_none_or(|of| of.routes.is_empty() && of.prefixes.is_empty()) {
            return vec![deny(&[RouteMatch::Evpn(vni)])];
        }
        let rules = ends.iter().map(|end| {
            let matches = [
                RouteMatch::EvpnOnly(vni),
                RouteMatch::EvpnPrefix,
                RouteMatch::TunnelEnd(*end),
                RouteMatch::AsPath(origins.clone()),
            ];
            RouteRule {
                permits: true,
                matches: matches.into(),
                is_last_resort: true,
                clears_communities: false,
            }
        });
        rules.collect()
    }
}

impl PermittedPrefixes {
    fn of(network: &NetworkFilter) -> Result<Self, String> {
        if network.routes.len() + network.prefixes.len() > NETWORK_PREFIXES_MAX {
            let vni = network.vni;
            return Err(format!(
                "has more than {NETWORK_PREFIXES_MAX} prefixes in VNI {vni}"
            ));
        }
        let canonical = |text: &String| {
            let prefix = text.parse::<IpNet>().ok();
            let prefix = prefix.filter(|prefix| prefix.trunc().to_string() == *text);
            prefix.ok_or_else(|| format!("{text:?} is not a canonical prefix"))
        };
        let routes = network.routes.iter().map(canonical);
        let prefixes = network.prefixes.iter().map(|text| {
            let prefix = canonical(text)?;
            let is_everything = prefix.prefix_len() == 0;
            (!is_everything)
                .then_some(prefix)
                .ok_or_else(|| format!("has everything in {prefix} in VNI {}", network.vni))
        });
        Ok(Self {
            routes: routes.collect::<Result<_, _>>()?,
            prefixes: prefixes.collect::<Result<_, _>>()?,
        })
    }
}

/// `true` if a prefix is one of a set or a part of one.
fn is_within(prefixes: &BTreeSet<IpNet>, prefix: &IpNet) -> bool {
    let mut lengths = 0..=prefix.prefix_len();
    lengths.any(|length| {
        let around = IpNet::new(prefix.addr(), length);
        around.is_ok_and(|around| prefixes.contains(&around.trunc()))
    })
}

/// The rules for the EVPN routes that a firewall announces.
///
/// # Errors
/// The reason why its filter is none.
pub(crate) fn received(
    filter: &PortFilter,
    vnis: &BTreeSet<Vni>,
    tunnel_ends: &[IpNet],
    origins: &PolicyName,
) -> Result<Vec<RouteRule>, String> {
    let Some(routes) = FirewallRoutes::of(filter)? else {
        let of_vni = |vni: &Vni| RouteRule {
            permits: true,
            matches: [RouteMatch::EvpnOnly(*vni)].into(),
            is_last_resort: false,
            clears_communities: false,
        };
        return Ok(vnis.iter().map(of_vni).collect());
    };
    let ends = tunnel_ends.iter().filter_map(|end| match end.addr() {
        IpAddr::V4(address) => (end.prefix_len() == 32).then_some(address),
        IpAddr::V6(_) => None,
    });
    let ends: Vec<Ipv4Addr> = ends.collect();
    if ends.len() > ENDS_MAX {
        return Err(format!("has more than {ENDS_MAX} tunnel ends"));
    }
    let rules = vnis.iter().map(|vni| routes.rules(*vni, &ends, origins));
    Ok(rules.flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_route_stands_for_itself_and_a_prefix_for_all_in_it() {
        let texts = |prefixes: &[&str]| prefixes.iter().map(ToString::to_string).collect();
        let filter = PortFilter {
            vnis: vec![27, 28],
            networks: vec![NetworkFilter {
                vni: 27,
                routes: texts(&["0.0.0.0/0", "10.0.0.0/8"]),
                prefixes: texts(&["192.0.2.0/24", "2001:db8::/48"]),
            }],
            ..PortFilter::default()
        };
        let routes = FirewallRoutes::of(&filter).unwrap().unwrap();
        for (vni, prefix, permitted) in [
            (27, "0.0.0.0/0", true),
            (27, "::/0", false),
            (27, "10.0.0.0/8", true),
            (27, "10.0.0.0/9", false),
            (27, "10.0.0.0/7", false),
            (27, "10.1.2.3/32", false),
            (27, "192.0.2.0/24", true),
            (27, "192.0.2.9/32", true),
            (27, "192.0.2.0/23", false),
            (27, "192.0.3.0/24", false),
            (27, "2001:db8:0:7::/64", true),
            (27, "2001:db8:1::/64", false),
            (28, "192.0.2.9/32", false),
        ] {
            let found = routes.permits(Vni::new(vni).unwrap(), &prefix.parse().unwrap());
            assert_eq!(found, permitted, "{prefix} in {vni}");
        }
        let older = PortFilter {
            networks: Vec::new(),
            ..filter
        };
        assert_eq!(FirewallRoutes::of(&older), Ok(None));
    }
}
