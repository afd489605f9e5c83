//! The list that nft gives of unchanged tables: the rules of [`super::rules`], one for one.

use std::collections::BTreeMap;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::config::{FilterConfig, merged};
use super::limits::{
    ASKING, BROADCASTS, MACS, MULTICASTS, NEIGHBOURS, PINGS, REMOTE_NEIGHBOURS, SESSIONS, SETS,
};
use super::listing::Objects;
use super::statement::{
    add, address, addresses, answer, concat, discovery, first, goto, iifname, is, jump, matches,
    meta, of_set, over, payload, range, raw_word, set_mark, tagged, to_group, verdict, vxlan,
};
use super::{
    BGP_PORT, CONTROL_GROUPS, FAMILIES, LINK_GROUPS, LINK_LOCAL, MARKS, OF_FIREWALL, TABLE,
    VXLAN_FLAGS, chain_name, vxlan_word,
};
use crate::linux::names::{BRIDGE_PREFIX, ROUTED_PREFIX};
use crate::model::{PortName, VxlanFilter};

/// The objects of unchanged tables.
pub(super) fn expected(
    firewalls: &BTreeMap<PortName, VxlanFilter>,
    config: &FilterConfig,
) -> Objects {
    let mut out = Objects::new();
    for family in FAMILIES {
        out.insert(format!("{family} table {TABLE}"), vec![Value::Null]);
    }
    for set in &SETS {
        let key = match set.key {
            [one] => json!(one),
            parts => json!(parts),
        };
        out.insert(format!("{} set {}", set.family, set.name), vec![key]);
    }
    let mut chains = inet();
    chains.extend(bridge(config));
    chains.push(("inet chain beside_vxlan", beside_vxlan(config)));
    chains.push(("arp chain input", arp()));
    for (name, rules) in chains {
        out.insert(name.to_owned(), rules);
    }
    let jumps = firewalls.keys().map(|port| {
        let from = iifname(port.as_ref());
        json!([from, jump(&chain_name(port))])
    });
    let jumps = std::iter::once(no_hook()).chain(jumps);
    out.insert("inet chain firewalls".to_owned(), jumps.collect());
    for (port, filter) in firewalls {
        let name = format!("inet chain {}", chain_name(port));
        out.insert(name, firewall(filter));
    }
    out
}

/// A chain by its family and name.
type Chain = (&'static str, Vec<Value>);

fn inet() -> Vec<Chain> {
    let to_hosts = is(meta("oifname"), json!(format!("{BRIDGE_PREFIX}*")));
    let output = vec![
        hook("output", -350),
        json!([is(meta("mark"), json!(0)), verdict("accept")]),
        json!([is(meta("oifkind"), json!("vrf")), verdict("accept")]),
        json!([vxlan(), verdict("accept")]),
        json!([jump("asking")]),
    ];
    let forward = vec![hook("forward", -350), json!([to_hosts, jump("asking")])];
    let pings = over("pingers", meta("iifname"), PINGS);
    let pinging = vec![no_hook(), json!([pings, verdict("drop")])];
    vec![
        ("inet chain prerouting", prerouting()),
        ("inet chain input", input()),
        ("inet chain forward", forward),
        ("inet chain output", output),
        ("inet chain asking", asking()),
        ("inet chain pinging", pinging),
    ]
}

/// The device that a packet came by is a VRF or a bridge (`==`), or neither (`!=`).
fn inner(op: &str) -> Value {
    let kinds = ["bridge", "vrf"].map(Value::from);
    matches(op, meta("iifkind"), of_set(kinds))
}

fn prerouting() -> Vec<Value> {
    let own = over("senders", meta("iifname"), NEIGHBOURS);
    let remote = over("listeners", meta("mark"), REMOTE_NEIGHBOURS);
    let [l3_vni, segment] = [ROUTED_PREFIX, BRIDGE_PREFIX].map(|of| iifname(&format!("{of}*")));
    vec![
        hook("prerouting", -350),
        on_the_port(),
        json!([inner("!="), mark()]),
        json!([l3_vni, discovery(), verdict("drop")]),
        json!([segment, discovery(), remote, verdict("drop")]),
        json!([jump("firewalls")]),
        json!([inner("!="), discovery(), own, verdict("drop")]),
        json!([segment, to_link_local("=="), bgp("dport"), verdict("drop")]),
    ]
}

fn on_the_port() -> Value {
    let [mask, group] = LINK_GROUPS;
    json!([to_group(mask, group), verdict("drop")])
}

fn to_link_local(op: &str) -> Value {
    let [_, link_local] = LINK_LOCAL.map(address);
    matches(op, payload("ip6", "daddr"), link_local)
}

fn bgp(field: &str) -> Value {
    is(payload("tcp", field), json!(BGP_PORT))
}

/// An error that says that a packet was too long for a link.
fn too_long() -> [Value; 2] {
    let of = [("type", "destination-unreachable"), ("code", "frag-needed")];
    of.map(|(field, value)| is(payload("icmp", field), json!(value)))
}

fn input() -> Vec<Value> {
    let of_others = matches("<", meta("mark"), json!(OF_FIREWALL));
    let [kind, code] = too_long();
    let too_big = is(payload("icmpv6", "type"), json!("packet-too-big"));
    let [_, link_local] = LINK_LOCAL;
    let near = of_set([link_local, "ff00::/8"].map(address));
    let near = is(payload("ip6", "daddr"), near);
    let v4 = is(meta("nfproto"), json!("ipv4"));
    let calls = over("callers", meta("mark"), SESSIONS);
    let redirect = |protocol: &str, kind: &str| {
        let kind = is(payload(protocol, "type"), json!(kind));
        json!([kind, verdict("drop")])
    };
    vec![
        hook("input", -350),
        json!([inner("=="), vxlan(), verdict("drop")]),
        json!([vxlan(), of_others, set_mark(json!(0))]),
        redirect("icmp", "redirect"),
        redirect("icmpv6", "nd-redirect"),
        json!([inner("=="), kind, code, verdict("drop")]),
        json!([inner("=="), too_big, verdict("drop")]),
        json!([too_big, near, verdict("drop")]),
        json!([inner("=="), v4, bgp("dport"), verdict("drop")]),
        json!([
            inner("=="),
            to_link_local("!="),
            bgp("dport"),
            verdict("drop")
        ]),
        json!([bgp("dport"), first(), calls, verdict("drop")]),
    ]
}

/// The chain of a firewall.
pub(super) fn firewall(filter: &VxlanFilter) -> Vec<Value> {
    let (v4, v6): (Vec<IpNet>, Vec<IpNet>) = filter
        .sources()
        .iter()
        .partition(|source| matches!(source, IpNet::V4(_)));
    let version = |of: &str| is(meta("nfproto"), json!(of));
    let fragment = json!({"&": [payload("ip", "frag-off"), 0x3fff]});
    let from_v4 = match v4.is_empty() {
        true => version("ipv4"),
        false => matches("!=", payload("ip", "saddr"), of_set(addresses(&v4))),
    };
    let from_v6 = match v6.is_empty() {
        true => version("ipv6"),
        false => matches("!=", payload("ip6", "saddr"), of_set(addresses(&v6))),
    };
    let mut all = addresses(&v6);
    all.extend(LINK_LOCAL.map(address));
    let from_others = matches("!=", payload("ip6", "saddr"), of_set(all));
    let has_header = is(json!({"exthdr": {"name": "frag"}}), json!(true));
    let mut out = vec![
        no_hook(),
        json!([matches("!=", fragment, json!(0)), verdict("drop")]),
        json!([has_header, verdict("drop")]),
        json!([from_v4, verdict("drop")]),
        json!([from_v6, vxlan(), verdict("drop")]),
        json!([from_others, verdict("drop")]),
    ];
    if !filter.vnis().is_empty() {
        let words = filter.vnis().iter().map(|vni| json!(vxlan_word(*vni)));
        let flags = is(raw_word(64), json!(VXLAN_FLAGS));
        let network = is(raw_word(96), of_set(words));
        let mark = set_mark(json!({"|": [meta("mark"), OF_FIREWALL]}));
        out.push(json!([vxlan(), flags, network, mark, verdict("return")]));
    }
    out.push(json!([vxlan(), verdict("drop")]));
    out.push(json!([goto("beside_vxlan")]));
    out
}

fn beside_vxlan(config: &FilterConfig) -> Vec<Value> {
    let [_, link_local] = LINK_LOCAL.map(address);
    let neighbour = is(payload("ip6", "saddr"), link_local.clone());
    let kinds = range("nd-router-solicit", "nd-neighbor-advert");
    let mut out = vec![
        no_hook(),
        json!([neighbour, bgp("dport"), verdict("return")]),
        json!([neighbour, bgp("sport"), answer(), verdict("return")]),
        json!([is(payload("icmpv6", "type"), kinds), verdict("return")]),
    ];
    for (ip, is_v6) in [("ip", false), ("ip6", true)] {
        let services = config.services(is_v6).into_iter();
        let services: Vec<Value> = services
            .map(|service| concat(&[json!(service.ip()), json!(service.port())]))
            .collect();
        if !services.is_empty() {
            let to = concat(&[payload(ip, "daddr"), payload("th", "dport")]);
            out.push(json!([is(to, of_set(services)), verdict("return")]));
        }
        let clients = merged(&config.clients, is_v6);
        if !clients.is_empty() {
            let to = is(payload(ip, "daddr"), of_set(addresses(&clients)));
            out.push(json!([to, answer(), verdict("return")]));
        }
    }
    let pinging = |ip: &str, to: Vec<Value>, protocol: &str, kinds: Value| {
        let to = is(payload(ip, "daddr"), of_set(to));
        json!([to, is(payload(protocol, "type"), kinds), goto("pinging")])
    };
    let v4 = addresses(&merged(&config.underlay, false));
    if !v4.is_empty() {
        let [kind, code] = too_long();
        out.push(json!([kind, code, verdict("drop")]));
        let kinds = [
            "echo-reply",
            "destination-unreachable",
            "echo-request",
            "time-exceeded",
            "parameter-problem",
        ];
        out.push(pinging("ip", v4, "icmp", of_set(kinds.map(Value::from))));
    }
    let mut v6 = addresses(&merged(&config.underlay, true));
    v6.push(link_local);
    let kinds = [
        json!("destination-unreachable"),
        range("time-exceeded", "parameter-problem"),
        range("echo-request", "echo-reply"),
    ];
    out.push(pinging("ip6", v6, "icmpv6", of_set(kinds)));
    out.push(json!([verdict("drop")]));
    out
}

fn asking() -> Vec<Value> {
    let key = |version: &str| concat(&[meta("mark"), meta("oif"), payload(version, "daddr")]);
    let known = |version: &str, set: &str| {
        let known = is(key(version), json!(format!("@{set}")));
        json!([known, verdict("accept")])
    };
    let limit = over("askers", meta("mark"), ASKING);
    vec![
        no_hook(),
        known("ip", "asked4"),
        known("ip6", "asked6"),
        json!([limit, verdict("drop")]),
        json!([add(key("ip"), "asked4")]),
        json!([add(key("ip6"), "asked6")]),
    ]
}

fn bridge(config: &FilterConfig) -> Vec<Chain> {
    let tunnel = is(meta("iifkind"), json!("vxlan"));
    let unmarked = is(meta("mark"), json!(0));
    let of_port = concat(&[meta("iifname"), payload("ether", "saddr")]);
    let own = over("senders", meta("iifname"), NEIGHBOURS);
    let flood = |kind: &str, rate| {
        let key = concat(&[meta("iifname"), meta("pkttype")]);
        let limit = over("flooders", key, rate);
        json!([is(meta("pkttype"), json!(kind)), limit, verdict("drop")])
    };
    let protocol = |of: Value| is(meta("protocol"), of);
    let prerouting = vec![
        hook("prerouting", -300),
        json!([tunnel, unmarked, mark()]),
        json!([tunnel, verdict("return")]),
        json!([mark()]),
        json!(tagged(meta("protocol"), "==")),
        json!([jump("uplinks")]),
        json!(tagged(payload("ether", "type"), "!=")),
        json!([jump("learning")]),
        flood("broadcast", BROADCASTS),
        flood("multicast", MULTICASTS),
        json!([protocol(json!("arp")), own, verdict("drop")]),
        json!([discovery(), own, verdict("drop")]),
    ];
    let learning = vec![
        no_hook(),
        json!([is(of_port.clone(), json!("@macs")), verdict("return")]),
        json!([over("learners", meta("iifname"), MACS), verdict("drop")]),
        json!([add(of_port, "macs")]),
    ];
    let control = of_set(CONTROL_GROUPS.map(|(first, last)| range(first, last)));
    let mut uplinks = vec![no_hook()];
    let mut forward = vec![hook("forward", -300)];
    for port in &config.uplinks {
        uplinks.push(json!([iifname(port.as_ref()), verdict("accept")]));
        let to = is(meta("oifname"), json!(port.as_ref() as &str));
        let frame = is(payload("ether", "daddr"), control.clone());
        forward.push(json!([to, frame, verdict("drop")]));
        let [kind, tag, drop] = tagged(payload("ether", "type"), "!=");
        forward.push(json!([to, kind, tag, drop]));
    }
    vec![
        ("bridge chain prerouting", prerouting),
        ("bridge chain learning", learning),
        ("bridge chain uplinks", uplinks),
        ("bridge chain forward", forward),
    ]
}

fn arp() -> Vec<Value> {
    let inner = is(meta("iifkind"), json!("bridge"));
    let remote = over("listeners", meta("mark"), REMOTE_NEIGHBOURS);
    let own = over("senders", meta("iifname"), NEIGHBOURS);
    vec![
        hook("input", -300),
        on_the_port(),
        json!([iifname(&format!("{ROUTED_PREFIX}*")), verdict("drop")]),
        json!([inner, remote, verdict("drop")]),
        json!([inner, verdict("return")]),
        json!([own, verdict("drop")]),
    ]
}

fn hook(hook: &str, priority: i32) -> Value {
    json!(["filter", hook, priority, "accept"])
}

fn no_hook() -> Value {
    json!([null, null, null, null])
}

/// Marks a packet with the device that it came by.
fn mark() -> Value {
    let of = json!({"mod": MARKS, "seed": 1, "offset": 1, "expr": meta("iifname")});
    set_mark(json!({"jhash": of}))
}
