//! netplan's YAML.

use super::plan::{Mode, NetworkPlan, gateway};
use super::{BOND, wait_for_any};
use crate::install::item::{ItemState, SystemItem, file, item};

/// Directory of the files.
const DIR: &str = "/etc/netplan";
/// Name of the file.
const NAME: &str = "10-metalmesh.yaml";

/// `names` are the image's own files, which are removed: netplan merges all of them, and DHCP on a
/// NIC would stay.
pub(super) fn files(plan: &NetworkPlan, has_networkd: bool, names: &[String]) -> Vec<SystemItem> {
    let theirs = names
        .iter()
        .filter(|name| name.ends_with(".yaml") && *name != NAME);
    let mut out: Vec<SystemItem> = theirs
        .map(|name| item(&format!("{DIR}/{name}"), ItemState::Absent))
        .collect();
    let renderer = if has_networkd {
        "networkd"
    } else {
        "NetworkManager"
    };
    out.push(file(&format!("{DIR}/{NAME}"), 0o600, yaml(plan, renderer)));
    if has_networkd && plan.mode != Mode::Bridged {
        out.push(wait_for_any());
    }
    out
}

fn yaml(plan: &NetworkPlan, renderer: &str) -> String {
    let mut out = format!("network:\n  version: 2\n  renderer: {renderer}\n  ethernets:\n");
    let local = match plan.mode {
        Mode::Bridged => "[]",
        Mode::Routed | Mode::Static => "[ipv6]",
    };
    for (name, mac) in plan.nics() {
        out.push_str(&format!(
            "    {name}:\n      match:\n        macaddress: \"{mac}\"\n      set-name: {name}\n      \
             mtu: {}\n      dhcp4: false\n      dhcp6: false\n      accept-ra: false\n      \
             link-local: {local}\n",
            plan.mtu
        ));
    }
    if plan.mode == Mode::Bridged {
        out.push_str(&bond(plan));
    }
    out
}

fn bond(plan: &NetworkPlan) -> String {
    let names: Vec<String> = plan.nics().map(|(name, _)| name).collect();
    let mut out = format!(
        "  bonds:\n    {BOND}:\n      interfaces: [{}]\n",
        names.join(", ")
    );
    if let Some(mac) = plan.uplinks.first() {
        out.push_str(&format!("      macaddress: \"{mac}\"\n"));
    }
    out.push_str("      parameters:\n");
    out.push_str(if plan.lacp {
        "        mode: 802.3ad\n        lacp-rate: fast\n        transmit-hash-policy: layer3+4\n"
    } else {
        "        mode: active-backup\n"
    });
    out.push_str(&format!(
        "        mii-monitor-interval: 100\n      mtu: {}\n      dhcp4: false\n      \
         dhcp6: false\n      accept-ra: false\n      link-local: [ipv6]\n      addresses:\n",
        plan.mtu
    ));
    for address in &plan.addresses {
        out.push_str(&format!("        - \"{address}\"\n"));
    }
    out.push_str("      routes:\n");
    for route in &plan.routes {
        out.push_str(&format!(
            "        - to: \"{route}\"\n          via: \"{}\"\n          on-link: true\n",
            gateway(route)
        ));
    }
    if !plan.dns.is_empty() {
        out.push_str("      nameservers:\n        addresses:\n");
        for server in &plan.dns {
            out.push_str(&format!("          - \"{server}\"\n"));
        }
    }
    out
}
