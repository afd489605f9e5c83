//! Settings as lines: the one place that knows how FRR spells them.

use super::model::{
    BgpInstance, Family, Neighbour, PeerFamily, PeerGroup, PeerSettings, Redistribute, Remote,
    RouteMapEntry,
};

/// One line of a configuration, with the line that takes it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Name of the setting. Two of one name exclude each other.
    slot: &'static str,
    /// Line that sets it.
    pub(super) set: String,
    /// Line that takes it back.
    clear: String,
    /// `true` if FRR merges a new value into the old one, which must be cleared first.
    merges: bool,
}

impl Setting {
    fn new(slot: &'static str, set: impl Into<String>, clear: impl Into<String>) -> Self {
        Self {
            slot,
            set: set.into(),
            clear: clear.into(),
            merges: false,
        }
    }

    /// A line whose `no` form is the line itself after `no`.
    fn negatable(slot: &'static str, set: String) -> Self {
        let clear = format!("no {set}");
        Self::new(slot, set, clear)
    }

    /// An option that is always spelled out, since its default depends on FRR's profile.
    fn explicit(slot: &'static str, on: bool) -> Self {
        let (yes, no) = (slot.to_owned(), format!("no {slot}"));
        if on {
            Self::new(slot, yes, no)
        } else {
            Self::new(slot, no, yes)
        }
    }
}

/// Lines that turn `old` into `new`: what leaves first, in reverse; then what is new or different.
pub(super) fn changes(old: &[Setting], new: &[Setting]) -> Vec<String> {
    let leaving = old
        .iter()
        .rev()
        .filter(|gone| new.iter().all(|kept| kept.slot != gone.slot))
        .map(|gone| gone.clear.clone());
    let mut lines: Vec<String> = leaving.collect();
    for setting in new {
        match old.iter().find(|had| had.slot == setting.slot) {
            Some(had) if had.set == setting.set => continue,
            Some(had) if had.merges => lines.push(had.clear.clone()),
            _ => {}
        }
        lines.push(setting.set.clone());
    }
    lines
}

/// Options of an instance outside its address families.
pub(super) fn instance(of: &BgpInstance) -> Vec<Setting> {
    let mut all = Vec::new();
    if let Some(id) = of.router_id {
        let set = format!("bgp router-id {id}");
        all.push(Setting::new("router-id", set, "no bgp router-id"));
    }
    let policy = Setting::explicit("bgp ebgp-requires-policy", of.ebgp_requires_policy);
    let ipv4 = Setting::explicit("bgp default ipv4-unicast", of.ipv4_by_default);
    all.extend([policy, ipv4]);
    for (line, on) in [
        ("bgp graceful-shutdown", of.graceful_shutdown),
        ("bgp bestpath as-path multipath-relax", of.multipath_relax),
    ] {
        if on {
            all.push(Setting::negatable(line, line.to_owned()));
        }
    }
    all
}

/// Settings of an instance in one of its address families.
pub(super) fn instance_family(of: &BgpInstance, family: Family) -> Vec<Setting> {
    let mut all = Vec::new();
    let redistribute = match of.redistribute.of(family) {
        None | Some(Redistribute::Nothing) => None,
        Some(Redistribute::Connected) => Some("redistribute connected".to_owned()),
        Some(Redistribute::Filtered(map)) => {
            Some(format!("redistribute connected route-map {map}"))
        }
    };
    if let Some(set) = redistribute {
        // Without a route-map in the new line, FRR would keep the old line's.
        all.push(Setting {
            merges: true,
            ..Setting::new("redistribute", set, "no redistribute connected")
        });
    }
    if family == Family::Evpn {
        for (line, on) in [
            ("advertise-all-vni", of.advertise_all_vni),
            ("advertise ipv4 unicast", of.advertise.ipv4),
            ("advertise ipv6 unicast", of.advertise.ipv6),
        ] {
            if on {
                all.push(Setting::negatable(line, line.to_owned()));
            }
        }
    }
    all
}

/// Line that makes a group, and its settings outside the address families.
pub(super) fn group(name: &str, of: &PeerGroup) -> (String, Vec<Setting>) {
    let mut all = Vec::new();
    if let Some(remote) = of.remote_as {
        let set = format!("neighbor {name} remote-as {remote}");
        // `no neighbor … remote-as` alone is an incomplete command.
        all.push(Setting::negatable("remote-as", set));
    }
    all.extend(session(name, &of.settings));
    (format!("neighbor {name} peer-group"), all)
}

/// Line that makes a neighbour, or changes its autonomous system, and its settings outside the
/// address families.
pub(super) fn neighbour(name: &str, of: &Neighbour) -> (String, Vec<Setting>) {
    let remote = match &of.remote {
        Remote::Group(group) => format!("peer-group {group}"),
        Remote::As(remote) => format!("remote-as {remote}"),
    };
    let made = format!("neighbor {name} interface {remote}");
    (made, session(name, &of.settings))
}

fn session(name: &str, of: &PeerSettings) -> Vec<Setting> {
    let mut all = Vec::new();
    let peer = format!("neighbor {name}");
    // A session that is to be down must never start: first of all.
    if of.shutdown {
        all.push(Setting::negatable("shutdown", format!("{peer} shutdown")));
    }
    if let Some(text) = &of.description {
        let set = format!("{peer} description {text}");
        all.push(Setting::new(
            "description",
            set,
            format!("no {peer} description"),
        ));
    }
    if let Some(timers) = of.timers {
        let set = format!("{peer} {}", timers.line());
        all.push(Setting::new("timers", set, format!("no {peer} timers")));
    }
    if of.bfd {
        all.push(Setting::negatable("bfd", format!("{peer} bfd")));
    }
    all
}

/// Settings of a peer in an address family. Its activation is last: nothing is exchanged before
/// the filters are in place.
pub(super) fn peer_family(name: &str, of: &PeerFamily) -> Vec<Setting> {
    let mut all = Vec::new();
    let peer = format!("neighbor {name}");
    for (slot, map, way) in [
        ("route-map in", &of.route_map_in, "in"),
        ("route-map out", &of.route_map_out, "out"),
    ] {
        if let Some(map) = map {
            all.push(Setting::negatable(
                slot,
                format!("{peer} route-map {map} {way}"),
            ));
        }
    }
    if let Some(most) = of.maximum_prefix {
        let set = format!("{peer} maximum-prefix {most}");
        all.push(Setting::new(
            "maximum-prefix",
            set,
            format!("no {peer} maximum-prefix"),
        ));
    }
    if let Some(times) = of.allowas_in {
        let set = format!("{peer} allowas-in {times}");
        all.push(Setting::new(
            "allowas-in",
            set,
            format!("no {peer} allowas-in"),
        ));
    }
    if of.activate {
        all.push(Setting::negatable("activate", format!("{peer} activate")));
    }
    all
}

/// Conditions and actions of a route-map's entry.
pub(super) fn route_map(of: &RouteMapEntry) -> Vec<Setting> {
    let mut all = Vec::new();
    for (line, list) in [
        ("match ip address prefix-list", &of.match_ipv4),
        ("match ipv6 address prefix-list", &of.match_ipv6),
        ("match as-path", &of.match_as_path),
        ("match extcommunity", &of.match_communities),
    ] {
        if let Some(list) = list {
            all.push(Setting::new(
                line,
                format!("{line} {list}"),
                format!("no {line}"),
            ));
        }
    }
    if let Some(interface) = &of.match_interface {
        let set = format!("match interface {interface}");
        all.push(Setting::new("interface", set, "no match interface"));
    }
    if let Some(vni) = of.match_vni {
        // `no match evpn vni` alone is an incomplete command.
        all.push(Setting::negatable("vni", format!("match evpn vni {vni}")));
    }
    if of.match_evpn_prefix {
        let set = "match evpn route-type prefix".to_owned();
        all.push(Setting::negatable("route type", set));
    }
    if let Some(address) = of.match_next_hop {
        let set = format!("match ip next-hop address {address}");
        all.push(Setting::negatable("next hop", set));
    }
    if let Some(preference) = of.local_preference {
        let set = format!("set local-preference {preference}");
        all.push(Setting::new("preference", set, "no set local-preference"));
    }
    if of.is_last_resort {
        let set = "set as-path prepend last-as 10";
        all.push(Setting::new("prepend", set, "no set as-path prepend"));
    }
    let cleared = of.cleared.iter().map(|kind| kind.clearing());
    all.extend(cleared.map(|line| Setting::negatable(line, line.to_owned())));
    all
}
