//! The configuration as text, in the shape and order of FRR's `show running-config`.

use std::fmt::Write;

use super::model::{
    AsPathKey, AsPathRule, BgpInstance, BgpVrf, CommunityKey, CommunityRule, Family, FrrConfig,
    PrefixEntry, PrefixListKey,
};
use super::observed::Observed;
use super::settings::{self, Setting};

/// Settings of zebra. It carries out each message before it reads the next one: it reads one, and its
/// queue does not wait for more. And it forgets a group of next hops a second after its last route:
/// the kernel takes a next hop out of a group when a cable fails, and zebra 8.4.4 would use the group
/// again as it was when the cable is back.
pub(super) const ZEBRA: [&str; 3] = [
    "zebra zapi-packets 1",
    "zebra work-queue 0",
    "zebra nexthop-group keep 1",
];

/// Renders a configuration as FRR would show it. FRR reads it as well: a fresh FRR that loads
/// this text has this configuration.
#[must_use]
pub fn render(config: &FrrConfig) -> String {
    let mut out = Text(String::new());
    if let Some(id) = config.router_id {
        out.line(0, &router_id(id));
        out.line(0, "!");
    }
    if config.has_zebra_settings {
        ZEBRA.iter().for_each(|line| out.line(0, line));
        out.line(0, "!");
    }
    for (vrf, vni) in &config.vrfs {
        out.line(0, &format!("vrf {vrf}"));
        out.line(1, &format!("vni {vni}"));
        out.line(0, "exit-vrf");
        out.line(0, "!");
    }
    for (vrf, instance) in &config.bgp {
        out.instance(*vrf, instance);
    }
    let numbered = Observed::from(config.clone());
    for entry in &config.prefixes {
        for sequence in numbered.numbers.of(entry) {
            out.line(0, &prefix_line(entry, sequence));
        }
    }
    for key in &config.closed {
        out.line(0, &closing_line(key));
    }
    out.line(0, "!");
    for (key, rule) in &config.as_paths {
        out.line(0, &as_path_line(key, rule));
    }
    for (key, rule) in &config.communities {
        out.line(0, &community_line(key, rule));
    }
    out.line(0, "!");
    for (key, entry) in &config.route_maps {
        let header = format!("route-map {} {} {}", key.map, entry.action, key.sequence);
        out.line(0, &header);
        out.settings(1, &settings::route_map(entry));
        out.line(0, "exit");
        out.line(0, "!");
    }
    out.0
}

/// The line that opens an instance.
pub(super) fn instance_header(vrf: BgpVrf, instance: &BgpInstance) -> String {
    match vrf {
        BgpVrf::Default => format!("router bgp {}", instance.asn),
        BgpVrf::Tenant(name) => format!("router bgp {} vrf {name}", instance.asn),
    }
}

pub(super) fn router_id(id: std::net::Ipv4Addr) -> String {
    format!("ip router-id {id}")
}

pub(super) fn prefix_line(entry: &PrefixEntry, sequence: u32) -> String {
    let (list, rule) = (&entry.list, &entry.rule);
    let ip = entry.key().ip();
    format!("{ip} prefix-list {list} seq {sequence} permit {rule}")
}

/// The last entry of a prefix list, which denies everything.
pub(super) fn closing_line(key: &PrefixListKey) -> String {
    let (ip, list, last) = (key.ip(), &key.list, PrefixListKey::LAST);
    format!("{ip} prefix-list {list} seq {last} deny any")
}

pub(super) fn as_path_line(key: &AsPathKey, rule: &AsPathRule) -> String {
    let (list, sequence) = (&key.list, key.sequence);
    let (action, regex) = (rule.action, &rule.regex);
    format!("bgp as-path access-list {list} seq {sequence} {action} {regex}")
}

pub(super) fn community_line(key: &CommunityKey, rule: &CommunityRule) -> String {
    let (list, sequence) = (&key.list, key.sequence);
    let (action, regex) = (rule.action, &rule.regex);
    format!("bgp extcommunity-list expanded {list} seq {sequence} {action} {regex}")
}

/// Text that is being written.
struct Text(String);

impl Text {
    fn line(&mut self, depth: usize, line: &str) {
        // Writing into a string does not fail.
        writeln!(self.0, "{:depth$}{line}", "").ok();
    }

    fn settings(&mut self, depth: usize, settings: &[Setting]) {
        for setting in settings {
            self.line(depth, &setting.set);
        }
    }

    fn instance(&mut self, vrf: BgpVrf, instance: &BgpInstance) {
        self.line(0, &instance_header(vrf, instance));
        self.settings(1, &settings::instance(instance));
        let groups = instance
            .groups
            .iter()
            .map(|(name, group)| settings::group(name.as_str(), group));
        let neighbours = instance
            .neighbours
            .iter()
            .map(|(name, neighbour)| settings::neighbour(name.as_str(), neighbour));
        for (made, session) in groups.chain(neighbours) {
            self.line(1, &made);
            self.settings(1, &session);
        }
        for family in Family::ALL {
            self.family(instance, family);
        }
        self.line(0, "exit");
        self.line(0, "!");
    }

    fn family(&mut self, instance: &BgpInstance, family: Family) {
        let mut all = settings::instance_family(instance, family);
        for (name, group) in &instance.groups {
            let of_family = group.settings.families.of(family);
            all.extend(settings::peer_family(name.as_str(), of_family));
        }
        for (name, neighbour) in &instance.neighbours {
            let of_family = neighbour.settings.families.of(family);
            all.extend(settings::peer_family(name.as_str(), of_family));
        }
        if all.is_empty() {
            return;
        }
        self.line(1, "!");
        self.line(1, &format!("address-family {family}"));
        self.settings(2, &all);
        self.line(1, "exit-address-family");
    }
}
