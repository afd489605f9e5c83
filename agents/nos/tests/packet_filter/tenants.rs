//! VXLAN of machines in VRFs, to whichever address of their leaf. Needs a kernel with VRFs.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

use agents_nos::Membership;
use agents_nos::model::{Bgp, Gateway, Mtu, Port, Segment, Table, Vrf, VrfName};
use proto_types::Asn;

use super::daemons::{Switch, ip};
use super::frames::{Outer, Vxlan};
use super::leaf::{FOREIGN, desired, is_available, nft, port, reconcile, vni};
use super::tap::Tap;

const SILENCE: Duration = Duration::from_millis(500);
/// MAC address of gateways.
const GATEWAY_MAC: [u8; 6] = [0, 0, 0x5e, 0, 1, 1];
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 254);
const VTEP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 11);

fn has_vrfs() -> bool {
    let made = Command::new("ip")
        .args("link add mmvrfprobe type vrf table 4243".split(' '))
        .stderr(std::process::Stdio::null())
        .status();
    if !made.unwrap().success() {
        eprintln!("SKIPPED: this kernel has no VRFs (CONFIG_NET_VRF)");
        return false;
    }
    ip("link del mmvrfprobe");
    true
}

/// The leaf of the other tests with a tenant: `swp3` bridged, `swp4` routed.
fn with_tenant() -> agents_nos::SwitchModel {
    let mut model = desired();
    let name = VrfName::new("Vrf27").unwrap();
    let vrf = Vrf::new(vni(27), Table::new(1027).unwrap());
    model.vrfs.insert(name.clone(), vrf);
    model.is_l3mdev_first = true;
    let mut segment = Segment::new(Mtu::ETHERNET);
    let addresses = ["10.2.0.254/24".parse().unwrap()];
    segment.gateway = Some(Gateway::new(name.clone(), addresses).unwrap());
    model.segments.insert(vni(271), segment);
    let place = Membership::Segment {
        vni: vni(271),
        is_private: false,
    };
    for (of, membership) in [("swp3", place), ("swp4", Membership::Routed(name.clone()))] {
        let made = Port {
            admin_up: true,
            mtu: None,
            membership,
        };
        model.ports.insert(port(of), made);
    }
    let mut bgp = Bgp::new(Asn(4_200_000_011), VTEP).unwrap();
    bgp.vrfs.insert(name, [].into());
    model.bgp = Some(bgp);
    model
}

/// The senders and targets whose packets came out in the segment of another tenant.
fn delivered(machines: &[(&'static str, Tap, [u8; 6]); 2], victim: &Tap) -> Vec<String> {
    let mut sent = Vec::new();
    for (name, machine, switch_mac) in machines {
        for (target, to) in [("gateway", GATEWAY), ("tunnel end", VTEP)] {
            sent.push(format!("{name} to the {target}"));
            let outer = Outer::V4 {
                from: [10, 2, 0, 1].into(),
                to,
                has_options: false,
                is_fragmented: false,
            };
            let packet = Vxlan {
                vni: FOREIGN,
                flags: 0x0800_0000,
                reserved: 0,
                outer,
                tags: 0,
            };
            let mark = u32::try_from(sent.len()).unwrap();
            for frame in packet.frames(*switch_mac, machine.mac, mark) {
                machine.send(&frame);
            }
        }
    }
    let until = Instant::now() + SILENCE;
    let mut heard = std::collections::BTreeSet::new();
    while Instant::now() < until {
        heard.extend(victim.heard());
    }
    let all = (1..).zip(sent);
    all.filter(|(mark, _)| heard.contains(mark))
        .map(|(_, words)| words)
        .collect()
}

fn accept_in_vrfs(leaf: &Switch, is_on: bool) {
    let name = &leaf.name;
    let is_on = u8::from(is_on);
    ip(&format!(
        "netns exec {name} sysctl -qw net.ipv4.udp_l3mdev_accept={is_on}"
    ));
}

#[tokio::test]
async fn a_machine_sends_no_vxlan_to_its_leaf() {
    if !is_available() || !has_vrfs() {
        return;
    }
    let leaf = Switch::start("tenants", &["swp5", "swp6", "swp8"]).await;
    let bridged = Tap::new("bridged", &leaf.name, "swp3");
    let routed = Tap::new("routed", &leaf.name, "swp4");
    let victim = Tap::new("victim", &leaf.name, "swp7");
    reconcile(&leaf, &with_tenant());
    let to = routed.switch_mac;
    let machines = [("bridged", bridged, GATEWAY_MAC), ("routed", routed, to)];
    let none: [&str; 0] = [];
    for is_on in [false, true] {
        accept_in_vrfs(&leaf, is_on);
        assert_eq!(delivered(&machines, &victim), none, "accept={is_on}");
    }
    // Not because nothing would get through in this test.
    nft(&leaf, "delete table inet metalmesh");
    let open = delivered(&machines, &victim);
    assert_eq!(open, ["bridged to the gateway", "routed to the gateway"]);
    // The kernel's own setting is one of its two reasons.
    accept_in_vrfs(&leaf, false);
    assert_eq!(delivered(&machines, &victim), none);
}
