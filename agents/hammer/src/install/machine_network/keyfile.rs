//! Keyfiles of NetworkManager.

use std::net::IpAddr;

use super::BOND;
use super::networkd::link_file;
use super::plan::{Mode, NetworkPlan, gateway};
use crate::install::item::{SystemItem, file};

/// Directory of the keyfiles.
const DIR: &str = "/etc/NetworkManager/system-connections";

pub(super) fn files(plan: &NetworkPlan) -> Vec<SystemItem> {
    // NetworkManager would make a connection with DHCP for each NIC that has none.
    let text = "[main]\nno-auto-default=*\n";
    let mut out = vec![file(
        "/etc/NetworkManager/conf.d/90-metalmesh.conf",
        0o644,
        text,
    )];
    for (name, mac) in plan.nics() {
        out.push(link_file(&name, mac, plan.mtu));
        let mut text = head(&name, "ethernet");
        if plan.mode == Mode::Bridged {
            text.push_str(&format!("master={BOND}\nslave-type=bond\n"));
        }
        text.push_str(&format!(
            "\n[ethernet]\nmac-address={mac}\nmtu={}\n",
            plan.mtu
        ));
        if plan.mode != Mode::Bridged {
            // `link-local` alone: no router advertisement is accepted.
            text.push_str("\n[ipv4]\nmethod=disabled\n\n[ipv6]\nmethod=link-local\n");
        }
        out.push(keyfile(&name, text));
    }
    if plan.mode == Mode::Bridged {
        out.push(keyfile(BOND, bond(plan)));
    }
    out
}

/// NetworkManager ignores keyfiles that others than root can read.
fn keyfile(name: &str, text: String) -> SystemItem {
    file(&format!("{DIR}/metalmesh-{name}.nmconnection"), 0o600, text)
}

fn head(name: &str, kind: &str) -> String {
    format!(
        "[connection]\nid=metalmesh-{name}\ntype={kind}\ninterface-name={name}\n\
         autoconnect-priority=900\n"
    )
}

fn bond(plan: &NetworkPlan) -> String {
    let mut out = head(BOND, "bond");
    let mac = plan.uplinks.first();
    let mac = mac.map_or_else(String::new, |mac| format!("cloned-mac-address={mac}\n"));
    out.push_str(&format!("\n[ethernet]\n{mac}mtu={}\n\n[bond]\n", plan.mtu));
    out.push_str(if plan.lacp {
        "lacp_rate=fast\nmiimon=100\nmode=802.3ad\nxmit_hash_policy=layer3+4\n"
    } else {
        "miimon=100\nmode=active-backup\n"
    });
    for v4 in [true, false] {
        out.push_str(&family(plan, v4));
    }
    out
}

fn family(plan: &NetworkPlan, v4: bool) -> String {
    let mut out = String::from(if v4 { "\n[ipv4]\n" } else { "\n[ipv6]\n" });
    let addresses = plan
        .addresses
        .iter()
        .filter(|net| net.addr().is_ipv4() == v4);
    let addresses: Vec<String> = addresses.map(ToString::to_string).collect();
    if addresses.is_empty() {
        out.push_str(if v4 {
            "method=disabled\n"
        } else {
            "method=link-local\n"
        });
        return out;
    }
    out.push_str("method=manual\n");
    for (at, address) in (1..).zip(addresses) {
        out.push_str(&format!("address{at}={address}\n"));
    }
    let routes = plan.routes.iter().filter(|net| net.addr().is_ipv4() == v4);
    for (at, route) in (1..).zip(routes) {
        let gateway = gateway(route);
        out.push_str(&format!(
            "route{at}={route},{gateway}\nroute{at}_options=onlink=true\n"
        ));
    }
    let servers = plan.dns.iter().filter(|server| server.is_ipv4() == v4);
    let servers: String = servers
        .map(|server: &IpAddr| format!("{server};"))
        .collect();
    if !servers.is_empty() {
        out.push_str(&format!("dns={servers}\n"));
    }
    out
}
