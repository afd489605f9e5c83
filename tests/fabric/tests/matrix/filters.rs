//! The filters of a machine that speaks BGP.

use agents_nos::SwitchModel;
use agents_nos::model::{
    BgpNeighbour, PrefixList, PrefixListId, PrefixRule, RouteMap, RouteMatch, RouteRule,
};

use super::models::{name, port, vrf};

/// Gives a session the filters that the agent has for a machine: its prefixes of both IP versions
/// come in, and routes to parts of the gateway's prefix stay.
pub(crate) fn filter_as_agent(model: &mut SwitchModel, number: u32, of: &str) {
    let [import, export, origins] =
        ["import", "hosts", "origins"].map(|kind| name(&format!("MM-{kind}-{number}")));
    let own: [&[&str]; 2] = [&["10.3.0.0/24"], &["2001:db8:3::/64"]];
    let hosts: [&[&str]; 2] = [
        &["10.1.0.0/25", "10.1.0.128/25"],
        &["2001:db8:1::/65", "2001:db8:1:0:8000::/65"],
    ];
    let policies = &mut model.policies;
    let mut imports = Vec::new();
    let mut exports = Vec::new();
    for (prefixes, map, is_import) in [(own, &import, true), (hosts, &export, false)] {
        for (prefixes, is_v6) in prefixes.into_iter().zip([false, true]) {
            let id = PrefixListId {
                is_v6,
                name: map.clone(),
            };
            let rules = prefixes.iter().map(|text| {
                let prefix: ipnet::IpNet = text.parse().unwrap();
                PrefixRule::new(prefix, prefix.max_prefix_len()).unwrap()
            });
            let rules = rules.collect();
            policies
                .prefix_lists
                .insert(id.clone(), PrefixList { rules });
            let prefix = RouteMatch::Prefix(id);
            match is_import {
                true => imports.push(rule(true, [prefix, RouteMatch::AsPath(origins.clone())])),
                false => exports.push(rule(false, [prefix])),
            }
        }
    }
    exports.push(rule(true, []));
    for (map, rules) in [(&import, imports), (&export, exports)] {
        let made = RouteMap::new(rules).unwrap();
        policies.route_maps.insert(map.clone(), made);
    }
    let bgp = model.bgp.as_mut().unwrap();
    let of_vrf = bgp.vrfs.get_mut(&vrf(number)).unwrap();
    of_vrf.insert(port(of), BgpNeighbour::filtered(import, export));
}

fn rule<const N: usize>(permits: bool, matches: [RouteMatch; N]) -> RouteRule {
    RouteRule {
        permits,
        matches: matches.into(),
        is_last_resort: false,
        clears_communities: false,
    }
}
