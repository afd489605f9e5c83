//! Files of systemd-networkd: the NICs, and a VRF, a bridge and a tunnel for each network.

use super::plan::{FirewallNetwork, FirewallPlan};
use crate::install::item::{SystemItem, file};
use crate::install::machine_network::networkd::{DIR, link_file, routed};
use crate::install::machine_network::wait_for_any;

/// Added to a VNI for the routing table of its VRF: the numbers below are the kernel's own.
const TABLE_BASE: u32 = 1000;

pub(super) fn files(plan: &FirewallPlan) -> Vec<SystemItem> {
    let mut out = Vec::new();
    for (name, mac) in plan.nics() {
        out.push(link_file(&name, mac, plan.nic_mtu()));
        out.push(file(
            &format!("{DIR}/10-metalmesh-{name}.network"),
            0o644,
            routed(mac, plan.nic_mtu()),
        ));
    }
    for network in &plan.networks {
        for (name, text) in devices(plan, network) {
            out.push(file(&format!("{DIR}/{name}"), 0o644, text));
        }
    }
    out.push(wait_for_any());
    out
}

/// The devices of a network: the VRF, a bridge in it that has the firewall's addresses, and the
/// tunnel. They have the names that rules of firewalls use.
fn devices(plan: &FirewallPlan, network: &FirewallNetwork) -> [(String, String); 6] {
    let vni = network.vni;
    let (mtu, vtep) = (plan.mtu, plan.vtep);
    // The router's address that the leaves send to; the same after every boot.
    let mac = plan.uplinks.first().map_or_else(String::new, |mac| {
        let [first, rest @ ..] = mac.0;
        let rest = rest.map(|byte| format!(":{byte:02x}")).concat();
        // Locally administered (IEEE 802): the NIC itself has the other one.
        format!("MACAddress={:02x}{rest}\n", first | 2)
    });
    let of = |kind: &str, suffix: &str| format!("10-metalmesh-{kind}{vni}.{suffix}");
    [
        (
            of("vrf", "netdev"),
            format!(
                "[NetDev]\nName=vrf{vni}\nKind=vrf\n\n[VRF]\nTable={}\n",
                TABLE_BASE + vni
            ),
        ),
        (
            of("vrf", "network"),
            format!("[Match]\nName=vrf{vni}\n\n[Link]\nRequiredForOnline=no\n"),
        ),
        (
            of("vlan", "netdev"),
            format!(
                "[NetDev]\nName=vlan{vni}\nKind=bridge\nMTUBytes={mtu}\n{mac}\n\
                 [Bridge]\nSTP=no\nMulticastSnooping=no\n"
            ),
        ),
        (
            of("vlan", "network"),
            format!(
                "[Match]\nName=vlan{vni}\n\n[Link]\nRequiredForOnline=no\n\n\
                 [Network]\nVRF=vrf{vni}\nDHCP=no\nIPv6AcceptRA=no\nLinkLocalAddressing=ipv6\n\
                 ConfigureWithoutCarrier=yes\n"
            ),
        ),
        (
            of("vni", "netdev"),
            format!(
                "[NetDev]\nName=vni{vni}\nKind=vxlan\nMTUBytes={mtu}\n\n\
                 [VXLAN]\nVNI={vni}\nLocal={vtep}\nDestinationPort=4789\nMacLearning=no\n\
                 Independent=yes\n"
            ),
        ),
        (
            of("vni", "network"),
            format!(
                "[Match]\nName=vni{vni}\n\n[Link]\nRequiredForOnline=no\n\n\
                 [Network]\nBridge=vlan{vni}\nDHCP=no\nIPv6AcceptRA=no\nLinkLocalAddressing=no\n\n\
                 [Bridge]\nLearning=no\nNeighborSuppression=yes\n"
            ),
        ),
    ]
}
