//! The BGP session of a port with its policies.

use std::collections::BTreeSet;

use agents_nos::Vni;
use agents_nos::model::{
    AsPathList, BgpNeighbour, ModelError, Policies, PolicyName, PrefixList, PrefixListId,
    PrefixRule, RouteMap, RouteMatch, RouteRule,
};
use ipnet::IpNet;
use proto_mesh::PortNeighbour;
use proto_types::Asn;

/// Most prefixes of one session; a session with more is refused.
const PREFIXES_MAX: usize = 4096;
/// Most AS numbers of one machine; a session with more is refused.
const ASNS_MAX: usize = 16;
/// Most EVPN VNIs of one firewall; a session with more is refused.
const VNIS_MAX: usize = 256;
/// Longest prefix with its length as text, bytes: 39 of an IPv6 address, a slash and three digits.
const PREFIX_LEN_MAX: usize = 43;

/// The reason why a port gets no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error("{what}: {got} of at most {max}")]
    TooMany {
        what: &'static str,
        got: usize,
        max: usize,
    },
    #[error("{0:?} is not a prefix")]
    Prefix(String),
    #[error("VNI of EVPN")]
    Vni(#[from] agents_nos::VniError),
    #[error("policy")]
    Model(#[from] ModelError),
}

/// The kind of a machine at a port.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionKind {
    /// A server in a VRF: it hears every route of its VRF.
    Server,
    /// A firewall in the underlay: it exchanges the EVPN routes of its VNIs.
    Firewall,
}

/// Adds the policies of a port, and returns its session. Nothing is added on an error.
pub(super) fn session(
    policies: &mut Policies,
    port: &str,
    neighbour: &PortNeighbour,
    kind: SessionKind,
) -> Result<BgpNeighbour, SessionError> {
    bounded("prefixes", neighbour.import_prefixes.len(), PREFIXES_MAX)?;
    bounded("AS numbers", neighbour.asns.len(), ASNS_MAX)?;
    bounded("VNIs", neighbour.evpn_vnis.len(), VNIS_MAX)?;
    let vnis = neighbour
        .evpn_vnis
        .iter()
        .filter(|_| kind == SessionKind::Firewall);
    let vnis = vnis
        .map(|vni| Vni::new(*vni))
        .collect::<Result<BTreeSet<_>, _>>()?;
    let (import, export) = (policy(port, "in")?, policy(port, "out")?);
    let origins = AsPathList::new(neighbour.asns.iter().copied().map(Asn))?;
    let [v4, v6] = prefix_lists(&neighbour.import_prefixes)?;
    let own_path = RouteMatch::AsPath(import.clone());
    let mut imports = Vec::new();
    for is_v6 in [false, true] {
        let prefixes = RouteMatch::Prefix(list_id(&import, is_v6));
        imports.push(permit([prefixes, own_path.clone()]));
    }
    let evpn = |vni: &Vni| permit([RouteMatch::Evpn(*vni), own_path.clone()]);
    imports.extend(vnis.iter().map(evpn));
    let imports = RouteMap::new(imports)?;
    let exports = RouteMap::new(export_rules(&export, &vnis, kind))?;
    for (is_v6, list) in [(false, v4), (true, v6)] {
        policies.prefix_lists.insert(list_id(&import, is_v6), list);
        if kind == SessionKind::Firewall {
            policies
                .prefix_lists
                .insert(list_id(&export, is_v6), any(is_v6)?);
        }
    }
    policies.as_path_lists.insert(import.clone(), origins);
    policies.route_maps.insert(import.clone(), imports);
    policies.route_maps.insert(export.clone(), exports);
    let mut out = BgpNeighbour::filtered(import, export);
    out.has_evpn = kind == SessionKind::Firewall;
    out.remote_asn = match neighbour.asns[..] {
        [one] => Some(Asn(one)),
        _ => None,
    };
    Ok(out)
}

/// A server hears its VRF. A firewall hears the underlay, and of EVPN its own VNIs alone.
fn export_rules(export: &PolicyName, vnis: &BTreeSet<Vni>, kind: SessionKind) -> Vec<RouteRule> {
    if kind == SessionKind::Server {
        return vec![permit([])];
    }
    let evpn = vnis.iter().map(|vni| permit([RouteMatch::Evpn(*vni)]));
    let unicast = [false, true].map(|is_v6| permit([RouteMatch::Prefix(list_id(export, is_v6))]));
    evpn.chain(unicast).collect()
}

/// Name of a policy of a port. Characters that FRR's words do not have are escaped, so that two
/// ports never share a policy. A name of no port begins with `MM-_` and a letter beyond `c` and `d`.
pub(super) fn policy(port: &str, direction: &str) -> Result<PolicyName, ModelError> {
    let port = port
        .replace('_', "__")
        .replace('.', "_d")
        .replace(':', "_c");
    PolicyName::new(&format!("MM-{port}-{direction}"))
}

/// A rule that permits what meets all conditions.
pub(super) fn permit(matches: impl IntoIterator<Item = RouteMatch>) -> RouteRule {
    RouteRule {
        permits: true,
        matches: matches.into_iter().collect(),
    }
}

fn bounded(what: &'static str, got: usize, max: usize) -> Result<(), SessionError> {
    if got > max {
        return Err(SessionError::TooMany { what, got, max });
    }
    Ok(())
}

fn list_id(name: &PolicyName, is_v6: bool) -> PrefixListId {
    PrefixListId {
        is_v6,
        name: name.clone(),
    }
}

/// The list that permits every prefix of a family.
fn any(is_v6: bool) -> Result<PrefixList, SessionError> {
    let (text, le) = if is_v6 {
        ("::/0", 128)
    } else {
        ("0.0.0.0/0", 32)
    };
    let rule = PrefixRule::new(parsed(text)?, le)?;
    Ok(PrefixList {
        rules: [rule].into(),
    })
}

/// The lists of IPv4 and IPv6. Longer prefixes inside of a permitted one pass as well.
fn prefix_lists(texts: &[String]) -> Result<[PrefixList; 2], SessionError> {
    let mut lists = [PrefixList::default(), PrefixList::default()];
    for text in texts {
        let prefix = parsed(text)?;
        let rule = PrefixRule::new(prefix, prefix.max_prefix_len())?;
        lists[usize::from(rule.is_v6())].rules.insert(rule);
    }
    Ok(lists)
}

fn parsed(text: &str) -> Result<IpNet, SessionError> {
    let short = text.chars().take(PREFIX_LEN_MAX).collect();
    let is_short = text.len() <= PREFIX_LEN_MAX;
    let prefix = is_short.then(|| text.parse().ok()).flatten();
    prefix.ok_or(SessionError::Prefix(short))
}
