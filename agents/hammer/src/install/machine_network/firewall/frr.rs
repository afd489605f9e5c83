//! FRR of a firewall.
//!
//! bgpd tells each leaf the address of the tunnels' end, and to the EVPN what a network reaches
//! through the firewall: a private network the destinations outside, an external one the addresses
//! inside. A route that one leaf tells is never told to the other. A leaf refuses the rest besides.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::plan::{FirewallNetwork, FirewallPlan};
use crate::install::item::SystemItem;
use crate::install::machine_network::family::Family;
use crate::install::machine_network::frr::files_with;

/// Prefix lists by family and name, each entry with `le` where hosts in the prefix are meant too.
type Lists = BTreeMap<(Family, String), Vec<String>>;

pub(super) fn files(plan: &FirewallPlan, passwd: &str) -> Vec<SystemItem> {
    files_with(conf(plan), passwd)
}

/// The content of frr.conf.
pub(super) fn conf(plan: &FirewallPlan) -> String {
    // The group of a route's next hops stays while one of them is away: the kernel refuses the route
    // otherwise when the cable is back (zebra 8.4).
    let mut out = String::from(
        "frr defaults traditional\nlog syslog informational\n!\nzebra nexthop-group keep 1\n!\n",
    );
    for network in &plan.networks {
        out.push_str(&format!(
            "vrf {}\n vni {}\nexit-vrf\n!\n",
            network.vrf(),
            network.vni
        ));
    }
    let ends = std::iter::once(IpAddr::V4(plan.vtep)).chain(plan.underlay.iter().copied());
    let ends: Vec<IpAddr> = ends.collect();
    out.push_str(&interface("lo", &ends));
    for network in &plan.networks {
        out.push_str(&interface(&format!("vlan{}", network.vni), &network.addresses));
    }
    out.push_str(&prefix_lists(plan, &ends));
    out.push_str(&route_maps(plan));
    out.push_str(&underlay(plan, &ends));
    for network in &plan.networks {
        out.push_str(&instance(plan, network));
    }
    out
}

fn interface(name: &str, addresses: &[IpAddr]) -> String {
    let mut out = format!("interface {name}\n");
    for address in addresses {
        let family = Family::of(*address);
        out.push_str(&format!(
            " {} address {}\n",
            family.keyword(),
            IpNet::from(*address)
        ));
    }
    out + "exit\n!\n"
}

/// BGP with the leaves.
fn underlay(plan: &FirewallPlan, ends: &[IpAddr]) -> String {
    // `multipath-relax`: the leaves have different AS numbers, and both carry traffic.
    let mut out = format!(
        "router bgp {}\n bgp router-id {}\n no bgp default ipv4-unicast\n \
         bgp bestpath as-path multipath-relax\n neighbor LEAF peer-group\n \
         neighbor LEAF remote-as external\n neighbor LEAF timers 2 8\n",
        plan.asn, plan.vtep
    );
    for (name, _) in plan.nics() {
        out.push_str(&format!(" neighbor {name} interface peer-group LEAF\n"));
    }
    for family in Family::BOTH {
        out.push_str(&format!(" !\n address-family {} unicast\n", family.name()));
        for end in ends.iter().filter(|end| Family::of(**end) == family) {
            out.push_str(&format!("  network {}\n", IpNet::from(*end)));
        }
        out.push_str(
            "  neighbor LEAF activate\n  neighbor LEAF route-map MM-IN in\n  \
             neighbor LEAF route-map MM-OUT out\n exit-address-family\n",
        );
    }
    out.push_str(
        " !\n address-family l2vpn evpn\n  neighbor LEAF activate\n  \
         neighbor LEAF route-map MM-EVPN-IN in\n  neighbor LEAF route-map MM-EVPN-OUT out\n  \
         advertise-all-vni\n exit-address-family\nexit\n!\n",
    );
    out
}

/// BGP of a network's VRF.
fn instance(plan: &FirewallPlan, network: &FirewallNetwork) -> String {
    let (vrf, vni) = (network.vrf(), network.vni);
    let mut out = format!(
        "router bgp {} vrf {vrf}\n bgp router-id {}\n no bgp default ipv4-unicast\n \
         bgp bestpath as-path multipath-relax\n",
        plan.asn, plan.vtep
    );
    for family in Family::BOTH {
        out.push_str(&format!(" !\n address-family {} unicast\n", family.name()));
        let own = network.addresses.iter();
        for own in own.filter(|own| Family::of(**own) == family) {
            out.push_str(&format!("  network {}\n", IpNet::from(*own)));
        }
        for other in plan.others(network) {
            out.push_str(&format!("  import vrf {}\n", other.vrf()));
        }
        if plan.others(network).next().is_some() {
            out.push_str(&format!("  import vrf route-map MM-IMPORT-{vni}\n"));
        }
        out.push_str(" exit-address-family\n");
    }
    out.push_str(" !\n address-family l2vpn evpn\n");
    for family in Family::BOTH {
        out.push_str(&format!(
            "  advertise {} unicast route-map MM-ADVERTISE-{vni}\n",
            family.name()
        ));
    }
    out + " exit-address-family\nexit\n!\n"
}

fn prefix_lists(plan: &FirewallPlan, ends: &[IpAddr]) -> String {
    let mut lists = Lists::new();
    let ends: Vec<IpNet> = ends.iter().map(|end| IpNet::from(*end)).collect();
    add(&mut lists, "MM-OWN", &ends, false);
    for network in &plan.networks {
        let vni = network.vni;
        let own: Vec<IpNet> = network.addresses.iter().map(|own| (*own).into()).collect();
        // A network is left through another one towards its destinations, and towards its prefixes
        // with all hosts in them.
        add(&mut lists, &format!("MM-TO-{vni}"), &network.destinations, false);
        add(&mut lists, &format!("MM-TO-{vni}"), &network.prefixes, true);
        let advertised = format!("MM-THROUGH-{vni}");
        add(&mut lists, &advertised, &own, false);
        if network.is_private {
            for other in plan.others(network) {
                add(&mut lists, &advertised, &other.destinations, false);
                add(&mut lists, &advertised, &other.prefixes, true);
            }
        } else {
            // Addresses outside that machines inside have.
            add(&mut lists, &advertised, &network.prefixes, true);
        }
    }
    let mut out = String::new();
    for ((family, name), entries) in &lists {
        if entries.is_empty() {
            let keyword = family.keyword();
            out.push_str(&format!("{keyword} prefix-list {name} seq 5 deny any\n"));
        }
        for (entry, seq) in entries.iter().zip((5..).step_by(5)) {
            let keyword = family.keyword();
            out.push_str(&format!("{keyword} prefix-list {name} seq {seq} {entry}\n"));
        }
    }
    out + "!\n"
}

/// Adds prefixes to the list of each family. A list that does not exist would permit everything: one
/// without entries denies.
fn add(lists: &mut Lists, name: &str, prefixes: &[IpNet], with_hosts: bool) {
    for family in Family::BOTH {
        let list = lists.entry((family, name.to_owned())).or_default();
        let of_family = |prefix: &&IpNet| Family::of(prefix.addr()) == family;
        for prefix in prefixes.iter().filter(of_family) {
            let most = prefix.max_prefix_len();
            let entry = match with_hosts && prefix.prefix_len() < most {
                true => format!("permit {prefix} le {most}"),
                false => format!("permit {prefix}"),
            };
            if !list.contains(&entry) {
                list.push(entry);
            }
        }
    }
}

fn route_maps(plan: &FirewallPlan) -> String {
    let mut out = String::from("bgp as-path access-list MM-SELF seq 5 permit ^$\n!\n");
    out.push_str(&deny_own());
    let own = |family: &Family| format!("{}\n match as-path MM-SELF", matching(*family, "MM-OWN"));
    out.push_str(&map("MM-OUT", "permit", Family::BOTH.iter().map(own)));
    // A route that one leaf tells carries the community until it is told anew, for another network.
    out.push_str(
        "bgp community-list standard MM-LEARNED seq 5 permit no-advertise\n\
         route-map MM-EVPN-IN permit 10\n set community no-advertise additive\nexit\n!\n\
         route-map MM-EVPN-OUT deny 10\n match community MM-LEARNED\nexit\n\
         route-map MM-EVPN-OUT permit 20\nexit\n!\n",
    );
    for network in &plan.networks {
        let vni = network.vni;
        let mut imports = Vec::new();
        for other in plan.others(network) {
            // From an external network come its own ways out; from a private one its machines, and
            // addresses of this network that they have.
            let mut names = vec![format!("MM-TO-{}", other.vni)];
            if !network.is_private {
                names.push(format!("MM-TO-{vni}"));
            }
            for name in names {
                for family in Family::BOTH {
                    let source = other.vrf();
                    imports.push(format!(
                        "{}\n match source-vrf {source}",
                        matching(family, &name)
                    ));
                }
            }
        }
        out.push_str(&map(&format!("MM-IMPORT-{vni}"), "permit", imports));
        let through = format!("MM-THROUGH-{vni}");
        let told = |family: &Family| format!("{}\n set community none", matching(*family, &through));
        let name = format!("MM-ADVERTISE-{vni}");
        out.push_str(&map(&name, "permit", Family::BOTH.iter().map(told)));
    }
    out
}

/// A leaf may tell anything in the underlay except what the firewall has itself.
fn deny_own() -> String {
    let own = |family: &Family| matching(*family, "MM-OWN");
    let denied = map("MM-IN", "deny", Family::BOTH.iter().map(own));
    denied.trim_end_matches("!\n").to_owned() + "route-map MM-IN permit 30\nexit\n!\n"
}

fn matching(family: Family, list: &str) -> String {
    format!("match {} address prefix-list {list}", family.keyword())
}

/// A route map with an entry for each condition. What no entry matches is denied.
fn map(name: &str, action: &str, entries: impl IntoIterator<Item = String>) -> String {
    let mut out = String::new();
    for (entry, number) in entries.into_iter().zip((10..).step_by(10)) {
        out.push_str(&format!("route-map {name} {action} {number}\n {entry}\nexit\n"));
    }
    out + "!\n"
}
