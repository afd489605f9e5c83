//! The routed part of a switch's model: VRFs, BGP sessions and the policies of their routes.
//!
//! A session has two route maps of its own, `MM-<port>-in` and `MM-<port>-out`. The import of a
//! machine permits its own prefixes with its own AS path and nothing else. The export to a server
//! permits the routes of its VRF, which holds its tenant's routes alone, but for those to single
//! hosts of a gateway's prefix; the export to a firewall permits the tunnel ends of the underlay and
//! the EVPN routes of its networks. The import of a firewall permits its tunnel end and
//! [its EVPN routes](crate::firewall_routes).

use std::collections::BTreeSet;
use std::net::IpAddr;

use agents_nos::Vni;
use agents_nos::model::{
    AsPathList, Bgp, BgpNeighbour, Membership, ModelError, PolicyName, Port, PortName, PrefixList,
    PrefixListId, PrefixRule, RouteMap, RouteMatch, RouteRule, SwitchModel, Table, Vrf as VrfModel,
    VrfName, VxlanFilter,
};
use proto_mesh::{PORT_PREFIXES_MAX, PORT_VNIS_MAX, PortFilter, Vrf};
use proto_types::{Asn, IpNet};

use crate::config::{BgpConfig, Config};
use crate::firewall_routes;

/// A route that matches nothing else passes.
const EVERY: RouteRule = RouteRule {
    permits: true,
    matches: BTreeSet::new(),
    is_last_resort: false,
    clears_communities: false,
};

/// Inserts the VRFs of the desired state, each with its BGP instance.
pub(crate) fn insert_vrfs(out: &mut SwitchModel, vrfs: &[Vrf], problems: &mut Vec<String>) {
    for vrf in vrfs {
        match vrf_model(vrf) {
            Ok((name, made)) => {
                if let Some(bgp) = &mut out.bgp {
                    bgp.vrfs.entry(name.clone()).or_default();
                }
                out.vrfs.insert(name, made);
            }
            Err(error) => problems.push(format!("VRF {}: {error}", vrf.vni)),
        }
    }
}

fn vrf_model(vrf: &Vrf) -> Result<(VrfName, VrfModel), String> {
    let vni = Vni::new(vrf.vni).map_err(|error| error.to_string())?;
    let name = VrfName::new(&vrf.name).map_err(|error| error.to_string())?;
    let table = Table::new(vrf.table).map_err(|error| error.to_string())?;
    if name.as_ref() != format!("Vrf{vni}") {
        return Err(format!("{name} is not its name"));
    }
    Ok((name, VrfModel::new(vni, table)))
}

/// Inserts BGP without sessions with machines: the switch's own numbers, the sessions with the
/// spines, and their ports. Nothing if the configuration has no BGP, or one that cannot be.
pub(crate) fn insert_bgp(out: &mut SwitchModel, config: &Config, problems: &mut Vec<String>) {
    let Some(settings) = &config.bgp else { return };
    let IpAddr::V4(router_id) = config.vtep else {
        problems.push(format!("BGP: {} is no router id", config.vtep));
        return;
    };
    match Bgp::new(Asn(settings.asn), router_id) {
        Ok(bgp) => out.bgp = Some(bgp),
        Err(error) => {
            problems.push(format!("BGP: {error}"));
            return;
        }
    }
    for spine in &settings.spines {
        if let Err(error) = insert_spine(out, spine) {
            problems.push(format!("spine port {spine}: {error}"));
        }
    }
}

fn insert_spine(out: &mut SwitchModel, spine: &str) -> Result<(), ModelError> {
    let port = PortName::new(spine)?;
    let (import, export) = names("spine")?;
    for name in [&import, &export] {
        let map = RouteMap::new([EVERY])?;
        out.policies.route_maps.insert(name.clone(), map);
    }
    let neighbour = BgpNeighbour {
        has_evpn: true,
        ..BgpNeighbour::filtered(import, export)
    };
    if let Some(bgp) = &mut out.bgp {
        bgp.underlay.insert(port.clone(), neighbour);
    }
    let port_model = Port {
        admin_up: true,
        mtu: None,
        membership: Membership::Underlay,
    };
    out.ports.insert(port, port_model);
    Ok(())
}

/// Names of the import and the export of a port.
pub(crate) fn names(port: &str) -> Result<(PolicyName, PolicyName), ModelError> {
    let import = PolicyName::new(&format!("MM-{port}-in"))?;
    let export = PolicyName::new(&format!("MM-{port}-out"))?;
    Ok((import, export))
}

/// Inserts the session of a port that is in its place already, with its policies.
///
/// # Errors
/// The reason why the port gets no session. Nothing was inserted then.
pub(crate) fn insert_session(
    out: &mut SwitchModel,
    settings: &BgpConfig,
    port: &PortName,
    place: &Membership,
    filter: &PortFilter,
) -> Result<(), String> {
    let (vrf, on_link) = match place {
        Membership::Routed(vrf) => (Some(vrf), Some(on_link(out, vrf))),
        Membership::Underlay => (None, None),
        _ => return Err("is not routed".to_owned()),
    };
    let session = Session::of(settings, port, filter, on_link.as_deref())?;
    let neighbours = out.bgp.as_mut().and_then(|bgp| bgp.neighbours_mut(vrf));
    let neighbours = neighbours.ok_or("is in a place without BGP")?;
    neighbours.insert(port.clone(), session.neighbour);
    let policies = &mut out.policies;
    policies.prefix_lists.extend(session.prefix_lists);
    policies.as_path_lists.extend([session.as_path_list]);
    policies.route_maps.extend(session.route_maps);
    Ok(())
}

/// The prefixes of a VRF's gateways. Hosts of such a prefix are behind every leaf that has the
/// gateway.
fn on_link(out: &SwitchModel, vrf: &VrfName) -> Vec<IpNet> {
    let gateways = out
        .segments
        .values()
        .filter_map(|segment| segment.gateway.as_ref());
    let of_vrf = gateways.filter(|gateway| gateway.vrf() == vrf);
    let prefixes = of_vrf.flat_map(|gateway| gateway.addresses());
    // An address that belongs to a link is in no route.
    let routed = prefixes.filter(|address| match address.addr() {
        IpAddr::V4(address) => !address.is_link_local(),
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    });
    routed.map(IpNet::trunc).collect()
}

/// The prefix lists of an export, and its rules.
type Export = (Vec<(PrefixListId, PrefixList)>, Vec<RouteRule>);

/// A session with its policies.
struct Session {
    neighbour: BgpNeighbour,
    prefix_lists: Vec<(PrefixListId, PrefixList)>,
    as_path_list: (PolicyName, AsPathList),
    route_maps: [(PolicyName, RouteMap); 2],
}

impl Session {
    fn of(
        settings: &BgpConfig,
        port: &PortName,
        filter: &PortFilter,
        on_link: Option<&[IpNet]>,
    ) -> Result<Self, String> {
        let say = |error: ModelError| error.to_string();
        let (import, export) = names(port.as_ref()).map_err(say)?;
        let asn = Asn(filter.asn);
        let origins = AsPathList::new([asn]).map_err(say)?;
        let vnis = vnis(filter, on_link.is_none())?;
        let tunnel_ends = parsed(&filter.prefixes_v4)?;
        let mut lists = vec![
            prefix_list(&import, false, &tunnel_ends)?,
            prefix_list(&import, true, &parsed(&filter.prefixes_v6)?)?,
        ];
        let own = lists
            .iter()
            .map(|(id, _)| own_routes(id, &import))
            .collect::<Vec<_>>();
        let received = firewall_routes::received(filter, &vnis, &tunnel_ends, &import)?;
        // Without rules for them, EVPN routes would be judged by the prefix in them.
        let has_evpn = !vnis.is_empty();
        let (listed, exported) = match on_link {
            None => tunnels_only(&export, settings, &vnis)?,
            Some(on_link) => without_hosts(&export, on_link)?,
        };
        lists.extend(listed);
        let maps = [
            (
                import.clone(),
                RouteMap::new(own.into_iter().chain(received)),
            ),
            (export.clone(), RouteMap::new(exported)),
        ];
        let [(_, imports), (_, exports)] = maps;
        Ok(Self {
            neighbour: BgpNeighbour {
                remote_asn: Some(asn),
                has_evpn,
                ..BgpNeighbour::filtered(import.clone(), export.clone())
            },
            prefix_lists: lists,
            as_path_list: (import.clone(), origins),
            route_maps: [
                (import, imports.map_err(say)?),
                (export, exports.map_err(say)?),
            ],
        })
    }
}

fn permit(matches: impl IntoIterator<Item = RouteMatch>) -> RouteRule {
    RouteRule {
        permits: true,
        matches: matches.into_iter().collect(),
        is_last_resort: false,
        clears_communities: false,
    }
}

/// Permits routes by their prefix and their AS path, both: a machine is on two leaves, and with the
/// prefix alone it could pass the routes of one on to the other. Communities of the sender end here:
/// switches import a route by its route targets, and one of them could be another tenant's.
fn own_routes(prefixes: &PrefixListId, origins: &PolicyName) -> RouteRule {
    RouteRule {
        clears_communities: true,
        ..permit([
            RouteMatch::Prefix(prefixes.clone()),
            RouteMatch::AsPath(origins.clone()),
        ])
    }
}

/// The VNIs of a firewall's filter. Servers have none: in a VRF they would be a way around it.
fn vnis(filter: &PortFilter, is_underlay: bool) -> Result<BTreeSet<Vni>, String> {
    if filter.vnis.len() > PORT_VNIS_MAX {
        return Err(format!("has more than {PORT_VNIS_MAX} VNIs"));
    }
    if !is_underlay && !filter.vnis.is_empty() {
        return Err("has VNIs in a VRF".to_owned());
    }
    let vnis = filter.vnis.iter().map(|vni| Vni::new(*vni));
    vnis.collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

/// The packets that a firewall may send: VXLAN of the VNIs whose EVPN routes it may announce, from
/// the addresses that it may announce in the underlay.
///
/// # Errors
/// The reason why the filter is none.
pub(crate) fn vxlan_filter(filter: &PortFilter) -> Result<VxlanFilter, String> {
    let vnis = vnis(filter, true)?;
    let mut sources = parsed(&filter.prefixes_v4)?;
    sources.extend(parsed(&filter.prefixes_v6)?);
    VxlanFilter::new(vnis, sources).map_err(|error| error.to_string())
}

fn parsed(texts: &[String]) -> Result<Vec<IpNet>, String> {
    if texts.len() > PORT_PREFIXES_MAX {
        return Err(format!("has more than {PORT_PREFIXES_MAX} prefixes"));
    }
    let prefixes = texts.iter().map(|text| {
        let prefix = text.parse::<IpNet>();
        prefix.map_err(|_| format!("{text:?} is not a prefix"))
    });
    prefixes.collect()
}

/// Both halves of prefixes: they and everything in them are all that is more specific than the
/// prefixes.
fn halves(prefixes: &[IpNet]) -> Vec<IpNet> {
    let halves = prefixes.iter().filter_map(|prefix| {
        // A single host has none.
        let longer = prefix.prefix_len() + 1;
        let halves = prefix.subnets(longer).ok()?;
        (longer <= prefix.max_prefix_len()).then_some(halves)
    });
    halves.flatten().collect()
}

/// The export to a firewall: the tunnel ends of the underlay and the EVPN routes of its VNIs.
fn tunnels_only(
    name: &PolicyName,
    settings: &BgpConfig,
    vnis: &BTreeSet<Vni>,
) -> Result<Export, String> {
    let lists = lists_of_both(name, &settings.underlay)?;
    let ends = lists
        .iter()
        .map(|(id, _)| permit([RouteMatch::Prefix(id.clone())]));
    let sent = vnis.iter().map(|vni| permit([RouteMatch::Evpn(*vni)]));
    let rules = ends.chain(sent).collect();
    Ok((lists.into(), rules))
}

/// The export to a server: every route but those to parts of the gateways' prefixes.
///
/// A leaf has routes to the hosts that are behind the other leaf only. A server with them would go
/// by these while a drained leaf still announces them, and not by the prefix, which both announce.
fn without_hosts(name: &PolicyName, on_link: &[IpNet]) -> Result<Export, String> {
    let mut lists = lists_of_both(name, &halves(on_link))?.to_vec();
    lists.retain(|(_, list)| !list.rules.is_empty());
    let hosts = lists.iter().map(|(id, _)| RouteRule {
        permits: false,
        matches: [RouteMatch::Prefix(id.clone())].into(),
        is_last_resort: false,
        clears_communities: false,
    });
    let rules = hosts.chain([EVERY]).collect();
    Ok((lists, rules))
}

/// Two lists that permit prefixes with everything in them, one for each IP version.
fn lists_of_both(
    name: &PolicyName,
    prefixes: &[IpNet],
) -> Result<[(PrefixListId, PrefixList); 2], String> {
    let of = |is_v6| {
        let of_version = prefixes.iter().copied();
        let of_version = of_version.filter(|prefix| matches!(prefix, IpNet::V6(_)) == is_v6);
        prefix_list(name, is_v6, &of_version.collect::<Vec<_>>())
    };
    Ok([of(false)?, of(true)?])
}

/// A list that permits prefixes of one version with everything in them.
fn prefix_list(
    name: &PolicyName,
    is_v6: bool,
    prefixes: &[IpNet],
) -> Result<(PrefixListId, PrefixList), String> {
    let rules = prefixes.iter().map(|prefix| {
        let rule = PrefixRule::new(*prefix, prefix.max_prefix_len());
        let rule = rule.map_err(|error| error.to_string())?;
        let fits = rule.is_v6() == is_v6;
        fits.then_some(rule)
            .ok_or_else(|| format!("{prefix} is of the other IP version"))
    });
    let rules = rules.collect::<Result<_, String>>()?;
    let name = name.clone();
    Ok((PrefixListId { is_v6, name }, PrefixList { rules }))
}

#[cfg(test)]
#[path = "routing_tests.rs"]
mod tests;
