//! Files of systemd-networkd, and the `.link` files that name the NICs.

use proto_types::MacAddr;

use super::plan::{Mode, NetworkPlan, gateway};
use super::{BOND, wait_for_any};
use crate::install::item::{SystemItem, file};

/// Directory of the files.
pub(super) const DIR: &str = "/etc/systemd/network";

pub(super) fn files(plan: &NetworkPlan) -> Vec<SystemItem> {
    let mut out = Vec::new();
    for (name, mac) in plan.nics() {
        out.push(link_file(&name, mac, plan.mtu));
        let text = match plan.mode {
            Mode::Bridged => member(mac, plan.mtu),
            Mode::Routed | Mode::Static => routed(mac, plan.mtu),
        };
        let path = format!("{DIR}/10-metalmesh-{name}.network");
        out.push(file(&path, 0o644, text));
    }
    if plan.mode == Mode::Bridged {
        let path = |kind| format!("{DIR}/10-metalmesh-{BOND}.{kind}");
        out.push(file(&path("netdev"), 0o644, netdev(plan)));
        out.push(file(&path("network"), 0o644, bond(plan)));
    } else {
        out.push(wait_for_any());
    }
    out
}

/// Names a NIC by its own MAC address. A bond gives its members another one.
pub(super) fn link_file(name: &str, mac: MacAddr, mtu: u32) -> SystemItem {
    let text =
        format!("[Match]\nPermanentMACAddress={mac}\n\n[Link]\nName={name}\nMTUBytes={mtu}\n");
    file(&format!("{DIR}/10-metalmesh-{name}.link"), 0o644, text)
}

fn matching(mac: MacAddr, mtu: u32) -> String {
    format!(
        "[Match]\nPermanentMACAddress={mac}\n\n[Link]\nMTUBytes={mtu}\nRequiredForOnline={{}}\n\n\
         [Network]\nDHCP=no\nIPv6AcceptRA=no\nLLDP=yes\nEmitLLDP=yes\n"
    )
}

/// A NIC with a link-local address for BGP; FRR has the addresses.
pub(super) fn routed(mac: MacAddr, mtu: u32) -> String {
    let mut text = matching(mac, mtu).replace("{}", "degraded");
    text.push_str("LinkLocalAddressing=ipv6\n");
    text
}

fn member(mac: MacAddr, mtu: u32) -> String {
    let mut text = matching(mac, mtu).replace("{}", "no");
    text.push_str(&format!("LinkLocalAddressing=no\nBond={BOND}\n"));
    text
}

fn netdev(plan: &NetworkPlan) -> String {
    let mode = if plan.lacp {
        "Mode=802.3ad\nTransmitHashPolicy=layer3+4\nLACPTransmitRate=fast\n"
    } else {
        "Mode=active-backup\n"
    };
    // With the address of a NIC, which control knows, the machine is the same to its neighbours at
    // every boot.
    let mac = plan.uplinks.first();
    let mac = mac.map_or_else(String::new, |mac| format!("MACAddress={mac}\n"));
    format!(
        "[NetDev]\nName={BOND}\nKind=bond\nMTUBytes={}\n{mac}\n[Bond]\n{mode}MIIMonitorSec=100ms\n",
        plan.mtu
    )
}

fn bond(plan: &NetworkPlan) -> String {
    let mut out = format!(
        "[Match]\nName={BOND}\n\n[Link]\nMTUBytes={}\n\n[Network]\nDHCP=no\nIPv6AcceptRA=no\n\
         LinkLocalAddressing=ipv6\n",
        plan.mtu
    );
    for address in &plan.addresses {
        out.push_str(&format!("Address={address}\n"));
    }
    for server in &plan.dns {
        out.push_str(&format!("DNS={server}\n"));
    }
    for route in &plan.routes {
        out.push_str(&format!(
            "\n[Route]\nDestination={route}\nGateway={}\nGatewayOnLink=yes\n",
            gateway(route)
        ));
    }
    out
}
