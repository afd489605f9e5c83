//! The rules in nft's words.

use std::fmt::{Arguments, Display, Write as _};

use ipnet::IpNet;

use super::config::{FilterConfig, merged};
use super::limits::{
    ASKING, BROADCASTS, MACS, MULTICASTS, NEIGHBOURS, PINGS, REMOTE_NEIGHBOURS, Rate, SESSIONS,
    SETS,
};
use super::{
    BGP_PORT, CONTROL_GROUPS, FAMILIES, LINK_GROUPS, LINK_LOCAL, MARKS, OF_FIREWALL, TABLE,
    VXLAN_FLAGS, chain_name, vxlan_word,
};
use crate::linux::VXLAN_PORT;
use crate::linux::names::{BRIDGE_PREFIX, ROUTED_PREFIX};
use crate::model::{PacketFilter, VxlanFilter};

/// The types of tags of VLANs: also the one of before 802.1ad.
const TAGS: &str = "{ 8021q, 8021ad, 0x9100 }";
/// An error that says that a packet was too long for a link.
const TOO_LONG: &str = "icmp type destination-unreachable icmp code frag-needed";

/// The rules as one transaction, which replaces those that are there.
pub(super) fn render(filter: &PacketFilter, config: &FilterConfig) -> String {
    FAMILIES
        .map(|family| table(family, filter, config))
        .concat()
}

/// The same of the table that filters of firewalls are in, as one that leaves the others: MAC
/// addresses that ports have shown stay known.
pub(super) fn render_firewalls(filter: &PacketFilter, config: &FilterConfig) -> String {
    table("inet", filter, config)
}

fn table(family: &str, filter: &PacketFilter, config: &FilterConfig) -> String {
    // One that does not exist cannot be deleted.
    let mut out = format!("table {family} {TABLE}\ndelete table {family} {TABLE}\n");
    append(&mut out, format_args!("table {family} {TABLE} {{\n"));
    for set in SETS.iter().filter(|set| set.family == family) {
        let (name, key) = (set.name, set.key.join(" . "));
        let (size, seconds) = (set.size, set.seconds);
        append(
            &mut out,
            format_args!(
                "set {name} {{ type {key}; size {size}; flags dynamic,timeout; \
                 timeout {seconds}s; }}\n"
            ),
        );
    }
    match family {
        "bridge" => bridge(&mut out, config),
        "arp" => arp(&mut out),
        _ => inet(&mut out, filter, config),
    }
    out.push_str("}\n");
    out
}

/// The packets of the underlay, and those for the switch itself and by it.
fn inet(out: &mut String, filter: &PacketFilter, config: &FilterConfig) {
    beside_vxlan(out, config);
    for (port, of) in &filter.firewalls {
        chain(out, &chain_name(port), &firewall(of));
    }
    let jumps = filter.firewalls.keys().map(|port| {
        let chain = chain_name(port);
        format!("iifname \"{port}\" jump {chain}")
    });
    chain(out, "firewalls", &jumps.collect::<Vec<_>>());
    chain(out, "asking", &asking());
    let outside = "meta iifkind != { \"bridge\", \"vrf\" }";
    let discovery = "icmpv6 type 133-137";
    let own = limit("senders", "iifname", NEIGHBOURS);
    let remote = limit("listeners", "meta mark", REMOTE_NEIGHBOURS);
    let inner = "meta iifkind { \"bridge\", \"vrf\" }";
    let bgp = format!("tcp dport {BGP_PORT}");
    let [_, link_local] = LINK_LOCAL;
    let prerouting = [
        on_the_port(),
        format!("{outside} {}", mark()),
        // Router MAC addresses come by EVPN: nobody behind an L3 VNI has to be asked for.
        format!("iifname \"{ROUTED_PREFIX}*\" {discovery} drop"),
        format!("iifname \"{BRIDGE_PREFIX}*\" {discovery} {remote}"),
        "jump firewalls".to_owned(),
        format!("{outside} {discovery} {own}"),
        // Neighbours of BGP are on routed ports.
        format!("iifname \"{BRIDGE_PREFIX}*\" ip6 daddr {link_local} {bgp} drop"),
    ];
    hook(out, "prerouting", -350, &prerouting);
    let input = [
        format!("{inner} udp dport {VXLAN_PORT} drop"),
        // Packets of other switches have the budget of their tunnel, which `bridge` marks them with.
        format!("udp dport {VXLAN_PORT} meta mark < {OF_FIREWALL:#x} meta mark set 0"),
        // A redirect could lead the switch's own packets to control away.
        "icmp type redirect drop".to_owned(),
        "icmpv6 type nd-redirect drop".to_owned(),
        // The kernel would believe a machine that a packet to another switch was too long: it looks
        // for the route in the underlay, whoever says so. Link-local senders are in no VRF's table.
        format!("{inner} {TOO_LONG} drop"),
        format!("{inner} icmpv6 type packet-too-big drop"),
        format!("icmpv6 type packet-too-big ip6 daddr {{ {link_local}, ff00::/8 }} drop"),
        // BGP of machines is by link-local addresses, and all tenants have one process.
        format!("{inner} meta nfproto ipv4 {bgp} drop"),
        format!("{inner} ip6 daddr != {link_local} {bgp} drop"),
        format!(
            "{bgp} tcp flags & (syn | ack) == syn {}",
            limit("callers", "meta mark", SESSIONS)
        ),
    ];
    hook(out, "input", -350, &input);
    let forward = [format!("oifname \"{BRIDGE_PREFIX}*\" jump asking")];
    hook(out, "forward", -350, &forward);
    // The kernel asks for a host also to answer it. An answer has the mark of its question
    // ([`super::settings`]), and what the switch sends by itself has none. A packet of a VRF comes
    // here twice, and the second time with its real device.
    let output = [
        "meta mark 0 accept".to_owned(),
        "meta oifkind \"vrf\" accept".to_owned(),
        format!("udp dport {VXLAN_PORT} accept"),
        "jump asking".to_owned(),
    ];
    hook(out, "output", -350, &output);
}

/// The rules of a firewall. Packets that are no VXLAN of ours are dropped by the last rule but one,
/// also those that are too short for the one before to match.
fn firewall(of: &VxlanFilter) -> Vec<String> {
    let mut out = vec![
        "ip frag-off & 0x3fff != 0 drop".to_owned(),
        "exthdr frag exists drop".to_owned(),
    ];
    let (v4, v6): (Vec<IpNet>, Vec<IpNet>) =
        of.sources().iter().partition(|s| matches!(s, IpNet::V4(_)));
    out.push(match v4.is_empty() {
        true => "meta nfproto ipv4 drop".to_owned(),
        false => format!("ip saddr != {} drop", set(&v4)),
    });
    let vxlan = format!("udp dport {VXLAN_PORT}");
    out.push(match v6.is_empty() {
        true => format!("meta nfproto ipv6 {vxlan} drop"),
        false => format!("ip6 saddr != {} {vxlan} drop", set(&v6)),
    });
    let own = v6.iter().map(ToString::to_string);
    let own = own.chain(LINK_LOCAL.map(str::to_owned));
    out.push(format!("ip6 saddr != {} drop", set(own)));
    if !of.vnis().is_empty() {
        let words = of.vnis().iter().map(|vni| vxlan_word(*vni));
        out.push(format!(
            "{vxlan} @th,64,32 {VXLAN_FLAGS} @th,96,32 {} \
             meta mark set meta mark or {OF_FIREWALL:#x} return",
            set(words)
        ));
    }
    out.push(format!("{vxlan} drop"));
    out.push("goto beside_vxlan".to_owned());
    out
}

/// The packets beside VXLAN that a firewall may send, to whichever switch: BGP and ND of its link,
/// pings in the underlay, and what the site permits. Nothing else: behind its leaf are the logins of
/// switches and the management network.
fn beside_vxlan(out: &mut String, config: &FilterConfig) {
    chain(out, "pinging", &[limit("pingers", "iifname", PINGS)]);
    // Not the first packet of a connection, which could come from any port.
    let answer = "tcp flags & (syn | ack) != syn return";
    let [_, link_local] = LINK_LOCAL;
    let mut rules = vec![
        format!("ip6 saddr {link_local} tcp dport {BGP_PORT} return"),
        format!("ip6 saddr {link_local} tcp sport {BGP_PORT} {answer}"),
        "icmpv6 type 133-136 return".to_owned(),
    ];
    for (ip, is_v6) in [("ip", false), ("ip6", true)] {
        let services = config.services(is_v6);
        if !services.is_empty() {
            let services = services
                .iter()
                .map(|s| format!("{} . {}", s.ip(), s.port()));
            rules.push(format!("{ip} daddr . th dport {} return", set(services)));
        }
        let clients = merged(&config.clients, is_v6);
        if !clients.is_empty() {
            rules.push(format!("{ip} daddr {} {answer}", set(clients)));
        }
    }
    let v4 = merged(&config.underlay, false);
    if !v4.is_empty() {
        rules.push(format!("{TOO_LONG} drop"));
        let kinds = "{ 0, 3, 8, 11, 12 }";
        rules.push(format!(
            "ip daddr {} icmp type {kinds} goto pinging",
            set(v4)
        ));
    }
    let v6 = merged(&config.underlay, true).into_iter();
    let v6 = v6.map(|prefix| prefix.to_string());
    let v6 = set(v6.chain([link_local.to_owned()]));
    let kinds = "{ 1, 3-4, 128-129 }";
    rules.push(format!("ip6 daddr {v6} icmpv6 type {kinds} goto pinging"));
    rules.push("drop".to_owned());
    chain(out, "beside_vxlan", &rules);
}

/// Drops packets to addresses that the kernel has to ask for above the budget of who sends them. It
/// asks for each address, also where nobody has it.
fn asking() -> Vec<String> {
    let key = |version: &str| format!("meta mark . oif . {version} daddr");
    let of = [("ip", "asked4"), ("ip6", "asked6")];
    let known = of.map(|(version, set)| format!("{} @{set} accept", key(version)));
    let add = of.map(|(version, set)| format!("add @{set} {{ {} }}", key(version)));
    let limit = limit("askers", "meta mark", ASKING);
    known.into_iter().chain([limit]).chain(add).collect()
}

/// The frames of ports. One with a tag of VLAN 0 around another tag would be one that no rule sees:
/// the kernel unpacks it afterwards. Other tags could be a VLAN behind the uplink; a tag of VLAN 0 is
/// a priority alone.
fn bridge(out: &mut String, config: &FilterConfig) {
    let from_uplinks = config.uplinks.iter();
    let from_uplinks = from_uplinks.map(|port| format!("iifname \"{port}\" accept"));
    chain(out, "uplinks", &from_uplinks.collect::<Vec<_>>());
    let of_port = "iifname . ether saddr";
    let learning = [
        format!("{of_port} @macs return"),
        limit("learners", "iifname", MACS),
        format!("add @macs {{ {of_port} }}"),
    ];
    chain(out, "learning", &learning);
    let own = limit("senders", "iifname", NEIGHBOURS);
    let flood = |rate| limit("flooders", "iifname . meta pkttype", rate);
    let prerouting = [
        // EVPN says who is behind a tunnel, and each frame was limited at its port.
        format!("meta iifkind \"vxlan\" meta mark 0 {}", mark()),
        "meta iifkind \"vxlan\" return".to_owned(),
        mark(),
        format!("meta protocol {TAGS} @ll,112,16 & 0xfff == 0 drop"),
        "jump uplinks".to_owned(),
        format!("ether type {TAGS} @ll,112,16 & 0xfff != 0 drop"),
        "jump learning".to_owned(),
        format!("meta pkttype broadcast {}", flood(BROADCASTS)),
        format!("meta pkttype multicast {}", flood(MULTICASTS)),
        format!("meta protocol arp {own}"),
        format!("meta protocol ip6 icmpv6 type 133-137 {own}"),
    ];
    hook(out, "prerouting", -300, &prerouting);
    // Spanning tree (802.1D, PVST), registration of VLANs (GVRP, VTP) and the like speak to the site's
    // switches, and a machine must not. Inside of a tenant's segment they end loops.
    let control = CONTROL_GROUPS.map(|(first, last)| format!("{first}-{last}"));
    let control = set(control);
    let to_uplinks = config.uplinks.iter();
    let to_uplinks = to_uplinks.flat_map(|port| {
        [
            format!("oifname \"{port}\" ether daddr {control} drop"),
            format!("oifname \"{port}\" ether type {TAGS} @ll,112,16 & 0xfff != 0 drop"),
        ]
    });
    hook(out, "forward", -300, &to_uplinks.collect::<Vec<_>>());
}

/// The questions for the switch's own addresses, by which it learns who asks. Those of ports in
/// bridges were limited there.
fn arp(out: &mut String) {
    let remote = limit("listeners", "meta mark", REMOTE_NEIGHBOURS);
    let rules = [
        on_the_port(),
        format!("iifname \"{ROUTED_PREFIX}*\" drop"),
        format!("meta iifkind \"bridge\" {remote}"),
        "meta iifkind \"bridge\" return".to_owned(),
        limit("senders", "iifname", NEIGHBOURS),
    ];
    hook(out, "input", -300, &rules);
}

/// Drops what came in a frame to a group of the link itself. The kernel takes such a frame on the port,
/// past its bridge: in the default VRF, whoever sent it, and also while the bridge is down. Programs
/// that listen on the port, as for LLDP, have it before.
fn on_the_port() -> String {
    let [mask, group] = LINK_GROUPS;
    format!("ether daddr & {mask} == {group} drop")
}

/// Marks a packet with the device that it came by. A packet that is routed does not say so itself.
fn mark() -> String {
    format!("meta mark set jhash iifname mod {MARKS} seed 0x1 offset 1")
}

/// Drops what comes above the rate of its key.
fn limit(set: &str, key: &str, rate: Rate) -> String {
    let Rate { second, burst } = rate;
    format!("update @{set} {{ {key} limit rate over {second}/second burst {burst} packets }} drop")
}

fn chain(out: &mut String, name: &str, rules: &[String]) {
    append(out, format_args!("chain {name} {{\n"));
    for rule in rules {
        append(out, format_args!("{rule}\n"));
    }
    out.push_str("}\n");
}

/// A chain that the kernel calls.
fn hook(out: &mut String, name: &str, priority: i32, rules: &[String]) {
    let head = format!("type filter hook {name} priority {priority}; policy accept;");
    let rules: Vec<String> = std::iter::once(head).chain(rules.iter().cloned()).collect();
    chain(out, name, &rules);
}

fn set<T: Display>(parts: impl IntoIterator<Item = T>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.to_string()).collect();
    format!("{{ {} }}", parts.join(", "))
}

fn append(out: &mut String, part: Arguments<'_>) {
    // Writing into a string does not fail.
    out.write_fmt(part).ok();
}
