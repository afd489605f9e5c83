//! The rules in nft's words.

use std::fmt::{Display, Write as _};

use ipnet::IpNet;

use super::{
    ASKED_FREE_S, ASKING_BURST, ASKING_RATE, FAMILIES, LINK_LOCAL, MARKS, NEIGHBOUR_BURST,
    NEIGHBOUR_RATE, SENDERS, TABLE, VXLAN_FLAGS, chain_name, vxlan_word,
};
use crate::linux::VXLAN_PORT;
use crate::linux::names::BRIDGE_PREFIX;
use crate::model::{PacketFilter, VxlanFilter};

/// The rules as one transaction, which replaces those that are there.
pub(super) fn render(filter: &PacketFilter) -> String {
    let mut out = String::new();
    for family in FAMILIES {
        append(&mut out, format_args!("table {family} {TABLE}\n"));
        append(&mut out, format_args!("delete table {family} {TABLE}\n"));
    }
    append(&mut out, format_args!("{}", inet(filter)));
    append(&mut out, format_args!("{}", neighbours()));
    out
}

/// The packets of the underlay, and those for the switch itself.
fn inet(filter: &PacketFilter) -> String {
    let mut out = format!(
        "table inet {TABLE} {{\n\
         set senders {{ {SENDERS} }}\n\
         {ASKED}\
         chain firewalls {{\n",
        ASKED = asked_sets(),
    );
    for port in filter.firewalls.keys() {
        let chain = chain_name(port);
        append(&mut out, format_args!("iifname \"{port}\" jump {chain}\n"));
    }
    out.push_str("}\n");
    for (port, of) in &filter.firewalls {
        append(&mut out, format_args!("chain {} {{\n", chain_name(port)));
        out.push_str(&firewall(of));
        out.push_str("}\n");
    }
    let (limit, mark, asked) = (limit(), mark(), asked());
    append(
        &mut out,
        format_args!(
            "chain prerouting {{\n\
             type filter hook prerouting priority -350; policy accept;\n\
             jump firewalls\n\
             meta iifkind != {{ \"bridge\", \"vrf\" }} {mark}\n\
             meta iifkind != {{ \"bridge\", \"vrf\" }} icmpv6 type 133-137 {limit}\n\
             }}\n\
             chain input {{\n\
             type filter hook input priority -350; policy accept;\n\
             meta iifkind {{ \"bridge\", \"vrf\" }} udp dport {VXLAN_PORT} drop\n\
             }}\n\
             chain forward {{\n\
             type filter hook forward priority -350; policy accept;\n\
             {asked}\
             }}\n}}\n"
        ),
    );
    out
}

/// The rules of a firewall. Packets that are no VXLAN of ours are dropped by the last rule, also
/// those that are too short for the one before to match.
fn firewall(of: &VxlanFilter) -> String {
    let mut out = String::from("ip frag-off & 0x3fff != 0 drop\nexthdr frag exists drop\n");
    let (v4, v6): (Vec<IpNet>, Vec<IpNet>) =
        of.sources().iter().partition(|s| matches!(s, IpNet::V4(_)));
    match v4.is_empty() {
        true => out.push_str("meta nfproto ipv4 drop\n"),
        false => append(&mut out, format_args!("ip saddr != {} drop\n", set(&v4))),
    }
    let vxlan = format!("udp dport {VXLAN_PORT}");
    match v6.is_empty() {
        true => append(&mut out, format_args!("meta nfproto ipv6 {vxlan} drop\n")),
        false => append(
            &mut out,
            format_args!("ip6 saddr != {} {vxlan} drop\n", set(&v6)),
        ),
    }
    let own = v6.iter().map(ToString::to_string);
    let own = own.chain(LINK_LOCAL.map(str::to_owned));
    append(&mut out, format_args!("ip6 saddr != {} drop\n", set(own)));
    if !of.vnis().is_empty() {
        let words = of.vnis().iter().map(|vni| vxlan_word(*vni));
        append(
            &mut out,
            format_args!(
                "{vxlan} @th,64,32 {VXLAN_FLAGS} @th,96,32 {} return\n",
                set(words)
            ),
        );
    }
    append(&mut out, format_args!("{vxlan} drop\n"));
    out
}

/// The packets by which a port teaches the switch neighbours. A frame with a tag of VLAN 0 around
/// another one would be one of them that no rule sees: the kernel unpacks it afterwards.
fn neighbours() -> String {
    let (limit, mark) = (limit(), mark());
    format!(
        "table bridge {TABLE} {{\n\
         set senders {{ {SENDERS} }}\n\
         chain prerouting {{\n\
         type filter hook prerouting priority -300; policy accept;\n\
         meta iifkind \"vxlan\" return\n\
         {mark}\n\
         meta protocol {{ 8021q, 8021ad }} @ll,112,16 & 0xfff == 0 drop\n\
         meta protocol arp {limit}\n\
         meta protocol ip6 icmpv6 type 133-137 {limit}\n\
         }}\n}}\n\
         table arp {TABLE} {{\n\
         set senders {{ {SENDERS} }}\n\
         chain input {{\n\
         type filter hook input priority -300; policy accept;\n\
         meta iifkind \"bridge\" return\n\
         {limit}\n\
         }}\n}}\n"
    )
}

/// Marks a packet with the port that it came by. A packet that is routed does not say so itself.
fn mark() -> String {
    format!("meta mark set jhash iifname mod {MARKS} seed 0x1 offset 1")
}

/// The addresses that were asked for, and the rates of those who ask.
fn asked_sets() -> String {
    let mut out = String::new();
    for (name, address) in [("asked4", "ip daddr"), ("asked6", "ip6 daddr")] {
        append(
            &mut out,
            format_args!(
                "set {name} {{ typeof meta mark . iif . {address}; size 65536; \
                 flags dynamic,timeout; timeout {ASKED_FREE_S}s; }}\n"
            ),
        );
    }
    out.push_str(
        "set askers { typeof meta mark . iif; size 65536; flags dynamic,timeout; timeout 1m; }\n",
    );
    out
}

/// Drops packets to addresses of segments above the rate of who sends them. The kernel asks for each
/// such address, also where nobody has it.
fn asked() -> String {
    let known = |version: &str, set: &str| format!("meta mark . iif . {version} daddr @{set}");
    let add =
        |version: &str, set: &str| format!("add @{set} {{ meta mark . iif . {version} daddr }}");
    format!(
        "oifname != \"{BRIDGE_PREFIX}*\" accept\n\
         {} accept\n{} accept\n\
         update @askers {{ meta mark . iif limit rate over {ASKING_RATE}/second burst \
         {ASKING_BURST} packets }} drop\n{}\n{}\n",
        known("ip", "asked4"),
        known("ip6", "asked6"),
        add("ip", "asked4"),
        add("ip6", "asked6"),
    )
}

/// Drops what a port sends above its rate.
fn limit() -> String {
    format!(
        "update @senders {{ iifname limit rate over {NEIGHBOUR_RATE}/second burst \
         {NEIGHBOUR_BURST} packets }} drop"
    )
}

fn set<T: Display>(parts: impl IntoIterator<Item = T>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.to_string()).collect();
    format!("{{ {} }}", parts.join(", "))
}

fn append(out: &mut String, part: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    out.write_fmt(part).ok();
}
