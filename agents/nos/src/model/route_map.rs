use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::error::ModelError;
use super::names::PolicyName;
use super::prefix_list::PrefixListId;
use crate::vni::Vni;

/// A route map: the first rule that matches decides, and a route that none matches is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteMap {
    rules: BTreeMap<u16, RouteRule>,
}

/// One rule of a route map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRule {
    /// `true` permits the routes that match, `false` denies them.
    pub permits: bool,
    /// Conditions, all of which have to hold. Empty matches every route.
    pub matches: BTreeSet<RouteMatch>,
    /// `true` makes the routes the last resort: switches prefer any other path to the prefix.
    pub is_last_resort: bool,
    /// `true` takes all communities off the routes: ordinary, large and extended ones, such as route
    /// targets, by which switches import routes into VRFs.
    pub clears_communities: bool,
}

/// One condition of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteMatch {
    /// A prefix list permits the prefix. A list that grows is evaluated again, as it would not be
    /// if a neighbour named it directly. No EVPN route matches in a map with rules for them
    /// ([`RouteMatch::Evpn`]): the prefix in such a route is a tenant's.
    Prefix(PrefixListId),
    /// An as-path list permits the AS path.
    AsPath(PolicyName),
    /// The route is an EVPN route of this VNI.
    Evpn(Vni),
    /// The same, and every route target of the route is of this VNI. Switches import a route by its
    /// targets, which the sender chooses: with another one it would get into another VRF.
    EvpnOnly(Vni),
    /// The route is an EVPN route of an IP prefix (type 5).
    EvpnPrefix,
    /// The tunnel of the EVPN route ends at this address: it is the next hop.
    TunnelEnd(Ipv4Addr),
}

impl RouteMatch {
    /// `true` if only EVPN routes match.
    #[must_use]
    pub fn is_of_evpn(&self) -> bool {
        !matches!(self, Self::Prefix(_) | Self::AsPath(_))
    }
}

impl RouteMap {
    /// Numbers the rules in their order: 10, 20, …
    ///
    /// # Errors
    /// When there is no rule, or more than fit.
    pub fn new(rules: impl IntoIterator<Item = RouteRule>) -> Result<Self, ModelError> {
        let numbered = (1..=u16::MAX / 10).map(|n| n * 10).zip(rules);
        Self::numbered(numbered)
    }

    /// Takes the rules with their sequence numbers, as a switch shows them.
    ///
    /// # Errors
    /// When there is no rule.
    pub fn numbered(rules: impl IntoIterator<Item = (u16, RouteRule)>) -> Result<Self, ModelError> {
        let rules: BTreeMap<u16, RouteRule> = rules.into_iter().collect();
        if rules.is_empty() {
            return Err(ModelError::NoRule);
        }
        Ok(Self { rules })
    }

    /// The rules by sequence number.
    #[must_use]
    pub fn rules(&self) -> &BTreeMap<u16, RouteRule> {
        &self.rules
    }

    /// The conditions of all rules.
    pub fn matches(&self) -> impl Iterator<Item = &RouteMatch> {
        self.rules.values().flat_map(|rule| &rule.matches)
    }

    /// `true` if a rule denies routes that a later one may permit.
    #[must_use]
    pub fn withholds(&self) -> bool {
        self.rules.values().any(|rule| !rule.permits)
    }

    /// `true` if each rule that permits names a prefix list and an as-path list: the routes of a
    /// neighbour that passes are the neighbour's own, and none that it learned elsewhere.
    #[must_use]
    pub fn permits_own_routes_only(&self) -> bool {
        self.rules.values().filter(|rule| rule.permits).all(|rule| {
            let mut found = rule.matches.iter();
            let has_prefix = found.any(|m| matches!(m, RouteMatch::Prefix(_)));
            let mut found = rule.matches.iter();
            has_prefix && found.any(|m| matches!(m, RouteMatch::AsPath(_)))
        })
    }
}
