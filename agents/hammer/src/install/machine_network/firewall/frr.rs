//! FRR of a firewall.
//!
//! A network reaches another one by static routes into its VRF. bgpd tells each leaf the address of
//! the tunnels' end, and to the EVPN what each network reaches here. All routes that it tells begin
//! here: what one leaf tells is never told to the other. A leaf refuses the rest besides.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use proto_mesh::{FIREWALL_DISTANCE_MAX, FIREWALL_DISTANCE_STEP};

use super::plan::{FirewallNetwork, FirewallPlan};
use crate::install::item::SystemItem;
use crate::install::machine_network::family::Family;
use crate::install::machine_network::frr::files_with;

/// AS numbers in front of each path to the EVPN until the agent sets another number: the longest
/// distance of a firewall.
const PREPENDED: usize = (FIREWALL_DISTANCE_MAX * FIREWALL_DISTANCE_STEP) as usize;

/// Prefix lists by family and name.
type Lists = BTreeMap<(Family, String), Vec<IpNet>>;

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
        out.push_str(&vrf(plan, network));
    }
    let ends = std::iter::once(IpAddr::V4(plan.vtep)).chain(plan.underlay.iter().copied());
    let ends: Vec<IpAddr> = ends.collect();
    out.push_str(&interface("lo", &ends));
    for network in &plan.networks {
        out.push_str(&interface(
            &format!("vlan{}", network.vni),
            &network.addresses,
        ));
    }
    out.push_str(&prefix_lists(plan, &ends));
    out.push_str(&route_maps(plan));
    out.push_str(&underlay(plan, &ends));
    for network in &plan.networks {
        out.push_str(&instance(plan, network));
    }
    out
}

/// The VRF of a network, with the ways into the others: a route to a VRF's device is looked up again
/// in that VRF.
fn vrf(plan: &FirewallPlan, network: &FirewallNetwork) -> String {
    let mut out = format!("vrf {}\n vni {}\n", network.vrf(), network.vni);
    for (prefix, into) in plan.ways(network) {
        let keyword = Family::of(prefix.addr()).keyword();
        out.push_str(&format!(
            " {keyword} route {prefix} {into} nexthop-vrf {into}\n"
        ));
    }
    out + "exit-vrf\n!\n"
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
    // `connect`: a leaf that is not ready yet is asked again soon, not after 120 s (FRR 8.4).
    let mut out = format!(
        "router bgp {}\n bgp router-id {}\n no bgp default ipv4-unicast\n \
         bgp bestpath as-path multipath-relax\n neighbor LEAF peer-group\n \
         neighbor LEAF remote-as external\n neighbor LEAF timers 2 8\n \
         neighbor LEAF timers connect 2\n",
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
        // An external network finds its way to machines by the addresses that are announced there.
        if network.is_private {
            out.push_str("  redistribute static\n");
        }
        out.push_str(" exit-address-family\n");
    }
    out.push_str(" !\n address-family l2vpn evpn\n");
    for family in Family::BOTH {
        out.push_str(&format!(
            "  advertise {} unicast route-map MM-TOLD-{vni}\n",
            family.name()
        ));
    }
    out + " exit-address-family\nexit\n!\n"
}

fn prefix_lists(plan: &FirewallPlan, ends: &[IpAddr]) -> String {
    let mut lists = Lists::new();
    let ends: Vec<IpNet> = ends.iter().map(|end| IpNet::from(*end)).collect();
    add(&mut lists, "MM-OWN", &ends);
    for network in &plan.networks {
        let own = network.addresses.iter().map(|own| IpNet::from(*own));
        let ways = plan.ways(network).into_iter().map(|(prefix, _)| prefix);
        let told: Vec<IpNet> = match network.is_private {
            true => own.chain(ways).collect(),
            false => own.collect(),
        };
        add(&mut lists, &format!("MM-TOLD-{}", network.vni), &told);
    }
    let mut out = String::new();
    for ((family, name), prefixes) in &lists {
        let keyword = family.keyword();
        for (prefix, seq) in prefixes.iter().zip((5..).step_by(5)) {
            out.push_str(&format!(
                "{keyword} prefix-list {name} seq {seq} permit {prefix}\n"
            ));
        }
        // A list that does not exist would permit everything.
        if prefixes.is_empty() {
            out.push_str(&format!("{keyword} prefix-list {name} seq 5 deny any\n"));
        }
    }
    out + "!\n"
}

/// Adds prefixes to the lists of their families, which both exist then.
fn add(lists: &mut Lists, name: &str, prefixes: &[IpNet]) {
    for family in Family::BOTH {
        let list = lists.entry((family, name.to_owned())).or_default();
        let of_family = |prefix: &&IpNet| Family::of(prefix.addr()) == family;
        list.extend(prefixes.iter().filter(of_family));
    }
}

fn route_maps(plan: &FirewallPlan) -> String {
    let mut out = String::from("bgp as-path access-list MM-SELF seq 5 permit ^$\n!\n");
    // A leaf may tell anything in the underlay except what the firewall has itself.
    out.push_str(&entries("MM-IN", "deny", "MM-OWN", ""));
    out.push_str("route-map MM-IN permit 30\nexit\n!\n");
    out.push_str(&entries(
        "MM-OUT",
        "permit",
        "MM-OWN",
        " match as-path MM-SELF\n",
    ));
    // Without a policy bgpd takes nothing from another AS (RFC 8212). The leaves send the routes of
    // the firewall's networks alone.
    out.push_str("!\nroute-map MM-EVPN-IN permit 10\nexit\n!\n");
    out.push_str("route-map MM-EVPN-OUT permit 10\n match as-path MM-SELF\n");
    if plan.has_agent {
        let numbers = vec![plan.asn.to_string(); PREPENDED].join(" ");
        out.push_str(&format!(" set as-path prepend {numbers}\n"));
    }
    out.push_str("exit\n!\n");
    for network in &plan.networks {
        let list = format!("MM-TOLD-{}", network.vni);
        out.push_str(&entries(&list, "permit", &list, ""));
        out.push_str("!\n");
    }
    out
}

/// The entries of a route map for the prefixes of a list, of both families.
fn entries(map: &str, action: &str, list: &str, more: &str) -> String {
    let mut out = String::new();
    for (family, number) in Family::BOTH.into_iter().zip([10, 20]) {
        let keyword = family.keyword();
        out.push_str(&format!(
            "route-map {map} {action} {number}\n match {keyword} address prefix-list {list}\n\
             {more}exit\n"
        ));
    }
    out
}
