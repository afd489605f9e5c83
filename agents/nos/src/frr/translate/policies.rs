//! Policies in both directions.

use std::collections::BTreeMap;

use proto_types::Asn;

use super::{LOOPBACK_MAP, RoutingError, RuleFault};
use crate::frr::model::{
    Action, AsPathKey, AsPathRegex, AsPathRule, CommunityKey, CommunityKind, CommunityRegex,
    CommunityRule, FrrConfig, ObjectName, PrefixEntry, PrefixListKey, PrefixRule, RouteMapEntry,
    RouteMapKey,
};
use crate::model::{
    self, AsPathList, Policies, PolicyName, PrefixListId, RouteMap, RouteMatch, RouteRule,
};
use crate::vni::Vni;

/// End of the names of route-maps that are for EVPN routes alone.
const EVPN_SUFFIX: &str = "-evpn";

/// Adds policies to a configuration.
pub(super) fn to_frr(policies: &Policies, config: &mut FrrConfig) -> Result<(), RoutingError> {
    for (id, list) in &policies.prefix_lists {
        let key = PrefixListKey {
            ipv6: id.is_v6,
            list: object(&id.name)?,
        };
        for rule in &list.rules {
            let (prefix, le) = (rule.prefix(), rule.le());
            let rule = PrefixRule::range(prefix, prefix.prefix_len(), le);
            let list = key.list.clone();
            // A prefix of the other family has been refused where the rule was added.
            config
                .prefixes
                .extend(rule.map(|rule| PrefixEntry { list, rule }));
        }
        config.closed.insert(key);
    }
    for (name, list) in &policies.as_path_lists {
        for origin in list.origins() {
            let key = AsPathKey {
                list: object(name)?,
                // The number of an origin does not depend on the others: one more moves none.
                sequence: origin.0,
            };
            let regex = origin_regex(*origin).ok_or(RoutingError::Asn(origin.0))?;
            let action = Action::Permit;
            config.as_paths.insert(key, AsPathRule { action, regex });
        }
    }
    for (name, map) in &policies.route_maps {
        config.route_maps.extend(entries(name, map)?);
        for found in map.matches() {
            if let RouteMatch::EvpnOnly(vni) = found {
                let (key, rule) = vni_alone(*vni);
                config.communities.insert(key, rule);
            }
        }
    }
    Ok(())
}

/// Checks that FRR can have a policy of a name.
///
/// # Errors
/// When it is not one of ours, or one that is not for models.
pub(crate) fn check_name(name: &PolicyName) -> Result<(), RoutingError> {
    object(name).map(drop)
}

/// Checks that FRR can have a route map.
///
/// # Errors
/// The first part of it that FRR cannot have.
pub(crate) fn check_route_map(name: &PolicyName, map: &RouteMap) -> Result<(), RoutingError> {
    entries(name, map).map(drop)
}

/// The entries of FRR's route-maps that a map is.
fn entries(
    name: &PolicyName,
    map: &RouteMap,
) -> Result<Vec<(RouteMapKey, RouteMapEntry)>, RoutingError> {
    let mut entries = Vec::new();
    for (sequence, rule) in map.rules() {
        let refused = |fault| RoutingError::Rule {
            map: name.clone(),
            sequence: *sequence,
            fault,
        };
        if let Some(fault) = fault(*sequence, rule) {
            return Err(refused(fault));
        }
        let entry = entry(rule)?;
        for map in maps_of(name, map, rule)? {
            let key = RouteMapKey {
                map,
                sequence: *sequence,
            };
            entries.push((key, entry.clone()));
        }
    }
    if map.rules().values().all(is_of_evpn) {
        return Err(RoutingError::EvpnAlone(name.clone()));
    }
    Ok(entries)
}

/// The reason why a rule would be another one in FRR. `None` if it would not.
fn fault(sequence: u16, rule: &RouteRule) -> Option<RuleFault> {
    let count = |is_of_kind: fn(&RouteMatch) -> bool| {
        let found = rule.matches.iter();
        found.filter(|found| is_of_kind(found)).count()
    };
    let counts = [
        count(|found| matches!(found, RouteMatch::Prefix(id) if !id.is_v6)),
        count(|found| matches!(found, RouteMatch::Prefix(id) if id.is_v6)),
        count(|found| matches!(found, RouteMatch::AsPath(_))),
        count(|found| matches!(found, RouteMatch::Evpn(_) | RouteMatch::EvpnOnly(_))),
        count(|found| matches!(found, RouteMatch::TunnelEnd(_))),
    ];
    let [v4, v6, ..] = counts;
    if sequence == 0 {
        Some(RuleFault::Number)
    } else if counts.iter().any(|count| *count > 1) {
        Some(RuleFault::Repeated)
    } else {
        (is_of_evpn(rule) && v4 + v6 > 0).then_some(RuleFault::Mixed)
    }
}

/// FRR's route-maps that a rule is in.
///
/// A map with rules for EVPN routes is two in FRR: from 8.5 on, FRR's prefix lists match EVPN routes
/// by the prefix in them, so that a tenant's addresses would pass a rule for the underlay's.
fn maps_of(
    name: &PolicyName,
    map: &RouteMap,
    rule: &RouteRule,
) -> Result<Vec<ObjectName>, RoutingError> {
    let of_all = object(name)?;
    if !has_evpn_rule(map) {
        return Ok(vec![of_all]);
    }
    let of_evpn = evpn_object(name)?;
    Ok(match rule.matches.is_empty() {
        true => vec![of_all, of_evpn],
        false if is_of_evpn(rule) => vec![of_evpn],
        false => vec![of_all],
    })
}

/// `true` if FRR has the rules for EVPN routes in a map of their own.
pub(super) fn has_evpn_rule(map: &RouteMap) -> bool {
    map.rules().values().any(is_of_evpn)
}

fn is_of_evpn(rule: &RouteRule) -> bool {
    rule.matches.iter().any(RouteMatch::is_of_evpn)
}

/// Reads the policies of a configuration. What the model cannot say is left out.
pub(super) fn from_frr(config: &FrrConfig) -> Policies {
    let mut policies = Policies::default();
    let lists = &mut policies.prefix_lists;
    for key in &config.closed {
        lists.entry(list_id(key)).or_default();
    }
    for entry in &config.prefixes {
        let list = lists.entry(list_id(&entry.key())).or_default();
        list.rules.extend(rule(&entry.rule));
    }
    let mut origins: BTreeMap<PolicyName, Vec<Asn>> = BTreeMap::new();
    for (key, rule) in &config.as_paths {
        if let Some(origin) = origin(rule) {
            origins.entry(policy(&key.list)).or_default().push(origin);
        }
    }
    let as_paths = origins.into_iter();
    policies.as_path_lists = as_paths
        .filter_map(|(name, origins)| Some((name, AsPathList::new(origins).ok()?)))
        .collect();
    let mut maps: BTreeMap<PolicyName, Vec<(u16, RouteRule)>> = BTreeMap::new();
    for (key, entry) in &config.route_maps {
        if key.map.as_str() != LOOPBACK_MAP {
            let rules = maps.entry(map_policy(&key.map)).or_default();
            rules.push((key.sequence, route_rule(entry)));
        }
    }
    let maps = maps.into_iter();
    policies.route_maps = maps
        .filter_map(|(name, rules)| Some((name, RouteMap::numbered(rules).ok()?)))
        .collect();
    policies
}

/// The name of a policy of ours.
pub(super) fn object(name: &PolicyName) -> Result<ObjectName, RoutingError> {
    let object = ObjectName::new(name.as_ref()).ok();
    let object = object.filter(|object| object.as_str() != LOOPBACK_MAP);
    let object = object.filter(|object| !object.as_str().ends_with(EVPN_SUFFIX));
    object.ok_or_else(|| RoutingError::Name(name.clone()))
}

/// The name of the part of a route map that is for EVPN routes.
pub(super) fn evpn_object(name: &PolicyName) -> Result<ObjectName, RoutingError> {
    let of_all = object(name)?;
    let of_evpn = ObjectName::new(&format!("{of_all}{EVPN_SUFFIX}"));
    of_evpn.map_err(|_| RoutingError::LongName(name.clone()))
}

/// The name of the route map that an object of FRR is a part of.
#[expect(
    clippy::expect_used,
    reason = "a part of a policy's name, which is not empty"
)]
pub(super) fn map_policy(name: &ObjectName) -> PolicyName {
    let text = name.as_str();
    let whole = text.strip_suffix(EVPN_SUFFIX).unwrap_or(text);
    PolicyName::new(whole).expect("a name of ours is a policy's")
}

/// The name of an object of FRR. Each is a policy's: FRR's names are the narrower ones.
#[expect(clippy::expect_used, reason = "63 of fewer characters than a policy's")]
pub(super) fn policy(name: &ObjectName) -> PolicyName {
    PolicyName::new(name.as_str()).expect("a name of ours is a policy's")
}

fn list_id(key: &PrefixListKey) -> PrefixListId {
    PrefixListId {
        is_v6: key.ipv6,
        name: policy(&key.list),
    }
}

fn rule(rule: &PrefixRule) -> Option<model::PrefixRule> {
    let prefix = rule.prefix();
    let le = rule.longest_from(prefix.prefix_len())?;
    model::PrefixRule::new(prefix, le).ok()
}

/// The paths that consist of one AS number, once or several times.
fn origin_regex(origin: Asn) -> Option<AsPathRegex> {
    AsPathRegex::new(&format!("^{origin}(_{origin})*$")).ok()
}

fn origin(rule: &AsPathRule) -> Option<Asn> {
    let text = rule.regex.to_string();
    let (number, _) = text.strip_prefix('^')?.split_once('(')?;
    let origin = Asn(number.parse().ok()?);
    let is_ours =
        rule.action == Action::Permit && origin_regex(origin).as_ref() == Some(&rule.regex);
    is_ours.then_some(origin)
}

/// The list of extended communities that permits route targets of one VNI only, whatever AS number
/// they have. Beside them a route has its encapsulation (ET), moves of a MAC address (MM) and the
/// router's MAC address (Rmac); FRR shows them in this order, and the encapsulation before or after
/// the targets. Routes with other communities are refused, and those without the encapsulation VXLAN
/// (8) alone: FRR does not compare the VNI of such a route.
#[expect(clippy::expect_used, reason = "a number in a text that fits")]
fn vni_alone(vni: Vni) -> (CommunityKey, CommunityRule) {
    let target = format!("(RT:[0-9.]+:{vni}_)");
    let regex = format!("^{target}*(ET:8_)+{target}*(MM:[0-9]+_)*(Rmac:[0-9a-f:]+_)*$");
    let key = CommunityKey {
        list: ObjectName::new(&format!("MM-vni-{vni}")).expect("a name of ours"),
        sequence: 5,
    };
    let rule = CommunityRule {
        action: Action::Permit,
        regex: CommunityRegex::new(&regex).expect("an expression"),
    };
    (key, rule)
}

/// A rule with at most one condition of each kind as an entry.
fn entry(rule: &RouteRule) -> Result<RouteMapEntry, RoutingError> {
    let action = if rule.permits {
        Action::Permit
    } else {
        Action::Deny
    };
    let mut entry = RouteMapEntry::new(action);
    entry.is_last_resort = rule.is_last_resort;
    if rule.clears_communities {
        entry.cleared = CommunityKind::ALL.into();
    }
    for found in &rule.matches {
        match found {
            RouteMatch::Prefix(id) if id.is_v6 => entry.match_ipv6 = Some(object(&id.name)?),
            RouteMatch::Prefix(id) => entry.match_ipv4 = Some(object(&id.name)?),
            RouteMatch::AsPath(name) => entry.match_as_path = Some(object(name)?),
            RouteMatch::Evpn(vni) => entry.match_vni = Some(*vni),
            RouteMatch::EvpnOnly(vni) => {
                entry.match_vni = Some(*vni);
                entry.match_communities = Some(vni_alone(*vni).0.list);
            }
            RouteMatch::EvpnPrefix => entry.match_evpn_prefix = true,
            RouteMatch::TunnelEnd(address) => entry.match_next_hop = Some(*address),
        }
    }
    Ok(entry)
}

fn route_rule(entry: &RouteMapEntry) -> RouteRule {
    let prefix = |is_v6, list: &Option<ObjectName>| {
        let name = policy(list.as_ref()?);
        Some(RouteMatch::Prefix(PrefixListId { is_v6, name }))
    };
    let as_path = entry.match_as_path.as_ref();
    let matches = [
        prefix(false, &entry.match_ipv4),
        prefix(true, &entry.match_ipv6),
        as_path.map(|list| RouteMatch::AsPath(policy(list))),
        entry.match_vni.map(|vni| match &entry.match_communities {
            Some(list) if *list == vni_alone(vni).0.list => RouteMatch::EvpnOnly(vni),
            _ => RouteMatch::Evpn(vni),
        }),
        entry.match_evpn_prefix.then_some(RouteMatch::EvpnPrefix),
        entry.match_next_hop.map(RouteMatch::TunnelEnd),
    ];
    RouteRule {
        permits: entry.action == Action::Permit,
        matches: matches.into_iter().flatten().collect(),
        is_last_resort: entry.is_last_resort,
        clears_communities: entry.cleared == CommunityKind::ALL.into(),
    }
}
