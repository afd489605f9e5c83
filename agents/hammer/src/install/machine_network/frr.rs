//! FRR of a routed machine.
//!
//! zebra puts the addresses on the loopback, so that they do not depend on the renderer. bgpd
//! announces them and nothing else: whatever one leaf tells is never told to the other.

use super::family::Family;
use super::plan::NetworkPlan;
use crate::install::item::{ItemState, SystemItem, item};
use crate::install::rootfs::Owner;

/// The daemons to start. zebra and staticd always run.
const DAEMONS: &str = "bgpd=yes\n\nvtysh_enable=yes\n\
    zebra_options=\"  -A 127.0.0.1 -s 90000000\"\nbgpd_options=\"   -A 127.0.0.1\"\n\
    staticd_options=\"-A 127.0.0.1\"\n";

pub(super) fn files(plan: &NetworkPlan, passwd: &str) -> Vec<SystemItem> {
    files_with(conf(plan), passwd)
}

/// The files of FRR with this frr.conf.
pub(super) fn files_with(conf: String, passwd: &str) -> Vec<SystemItem> {
    // FRR's programs read the files as this user.
    let owner = Owner {
        mode: 0o640,
        ..frr_user(passwd).unwrap_or(Owner::root(0o640))
    };
    let file = |path: &str, text: String| item(path, ItemState::File(owner, text.into_bytes()));
    vec![
        file("/etc/frr/daemons", DAEMONS.to_string()),
        file(
            "/etc/frr/vtysh.conf",
            "service integrated-vtysh-config\n".to_string(),
        ),
        file("/etc/frr/frr.conf", conf),
    ]
}

/// Ids of the user `frr` in the image.
fn frr_user(passwd: &str) -> Option<Owner> {
    let line = passwd.lines().find(|line| line.starts_with("frr:"))?;
    let mut ids = line.split(':').skip(2);
    Some(Owner {
        mode: 0,
        uid: ids.next()?.parse().ok()?,
        gid: ids.next()?.parse().ok()?,
    })
}

/// The content of frr.conf.
pub(super) fn conf(plan: &NetworkPlan) -> String {
    // Routes with next hops of their own. The kernel takes a next hop out of a shared group when a
    // cable fails, and zebra (8.4) uses the group again without it when the cable is back.
    let mut out = String::from(
        "frr defaults traditional\nlog syslog informational\n!\nno zebra nexthop kernel enable\n!\n",
    );
    out.push_str("interface lo\n");
    for host in plan.hosts() {
        let keyword = Family::of(host.addr()).keyword();
        out.push_str(&format!(" {keyword} address {host}\n"));
    }
    out.push_str("exit\n!\n");
    out.push_str(&lists(plan));
    // `multipath-relax`: the leaves have different AS numbers, and both carry traffic.
    // `connect`: a leaf that is not ready yet is asked again soon, not after 120 s (FRR 8.4).
    out.push_str(&format!(
        "router bgp {}\n bgp router-id {}\n no bgp default ipv4-unicast\n \
         bgp bestpath as-path multipath-relax\n neighbor LEAF peer-group\n \
         neighbor LEAF remote-as external\n neighbor LEAF timers 2 8\n \
         neighbor LEAF timers connect 2\n",
        plan.asn,
        plan.router_id()
    ));
    for (name, _) in plan.nics() {
        out.push_str(&format!(" neighbor {name} interface peer-group LEAF\n"));
    }
    for family in Family::BOTH {
        out.push_str(&format!(" !\n address-family {} unicast\n", family.name()));
        for host in plan
            .hosts()
            .filter(|host| Family::of(host.addr()) == family)
        {
            out.push_str(&format!("  network {host}\n"));
        }
        out.push_str(
            "  neighbor LEAF activate\n  neighbor LEAF route-map MM-IN in\n  \
             neighbor LEAF route-map MM-OUT out\n exit-address-family\n",
        );
    }
    out.push_str("exit\n!\n");
    out
}

/// Prefix lists and route-maps. Own addresses leave if they come from this machine; a leaf may
/// announce anything except what the machine has itself.
fn lists(plan: &NetworkPlan) -> String {
    let mut out = String::new();
    let mut at = [0, 0];
    for host in plan.hosts() {
        let seq = &mut at[usize::from(!host.addr().is_ipv4())];
        *seq += 5;
        let ip = Family::of(host.addr()).keyword();
        out.push_str(&format!(
            "{ip} prefix-list MM-OWN seq {seq} permit {host}\n"
        ));
    }
    // A list that does not exist would permit everything.
    for (ip, count, any) in [
        ("ip", at[0], "0.0.0.0/0 le 32"),
        ("ipv6", at[1], "::/0 le 128"),
    ] {
        if count == 0 {
            out.push_str(&format!("{ip} prefix-list MM-OWN seq 5 deny {any}\n"));
        }
    }
    out.push_str("bgp as-path access-list MM-SELF seq 5 permit ^$\n!\n");
    for (action, number, ip) in [("deny", 10, "ip"), ("deny", 20, "ipv6")] {
        out.push_str(&format!(
            "route-map MM-IN {action} {number}\n match {ip} address prefix-list MM-OWN\nexit\n"
        ));
    }
    out.push_str("route-map MM-IN permit 30\nexit\n!\n");
    for (number, ip) in [(10, "ip"), (20, "ipv6")] {
        out.push_str(&format!(
            "route-map MM-OUT permit {number}\n match as-path MM-SELF\n \
             match {ip} address prefix-list MM-OWN\nexit\n"
        ));
    }
    out.push_str("!\n");
    out
}
