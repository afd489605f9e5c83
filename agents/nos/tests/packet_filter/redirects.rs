//! A redirect in the name of the management network's gateway: the leaf's way to control stays.

use std::net::Ipv4Addr;
use std::process::Command;

use super::daemons::Switch;
use super::leaf::{desired, is_available, mac, nft, reconcile, settled, sysctl};
use super::packets::{icmp, ipv4, packet_v4};
use super::tap::Tap;

const LEAF: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 11);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 9);
const CONTROL: Ipv4Addr = Ipv4Addr::new(10, 95, 0, 1);

/// `true` if packets to control go by the other host.
fn is_led_away(leaf: &Switch) -> bool {
    let output = Command::new("ip")
        .args(["-n", &leaf.name, "route", "get", &CONTROL.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.contains(&format!("via {OTHER}"))
}

#[tokio::test]
async fn a_machine_leads_nothing_of_its_leaf_away() {
    if !is_available() {
        return;
    }
    let leaf = Switch::start("redirects", &["swp5", "swp6", "swp7", "eth0"]).await;
    let bridged = Tap::new("dhost", &leaf.name, "swp8");
    reconcile(&leaf, &desired());
    leaf.ip("addr add 10.7.0.254/16 dev mmb10");
    for setting in ["all.rp_filter=0", "mmb10.rp_filter=0", "mmb10.forwarding=1"] {
        sysctl(&leaf.name, &format!("net.ipv4.conf.{setting}"));
    }
    leaf.ip(&format!("addr add {LEAF}/24 dev eth0"));
    leaf.ip(&format!("route add default via {GATEWAY}"));
    for (host, mac) in [(GATEWAY, "02:00:00:00:90:01"), (OTHER, "02:00:00:00:90:09")] {
        leaf.ip(&format!("neigh replace {host} lladdr {mac} dev eth0"));
    }
    // About an answer of the leaf to a ping.
    let quoted = packet_v4(LEAF, CONTROL, 1, &icmp(0, 0, [0; 4], &[0; 8]));
    let redirect = icmp(5, 1, OTHER.octets(), &quoted);
    let link = [mac(&leaf, "mmb10"), bridged.mac];
    let frame = ipv4(link, GATEWAY, Ipv4Addr::new(10, 7, 0, 254), 1, &redirect);
    let led_away = || {
        bridged.send(&frame);
        settled(|| usize::from(is_led_away(&leaf))) == 1
    };
    assert!(!led_away());
    // Either of the two is enough.
    nft(&leaf, "flush chain inet metalmesh input");
    assert!(!led_away(), "with the setting alone");
    // Not because the kernel would take none in this test.
    sysctl(&leaf.name, "net.ipv4.conf.all.accept_redirects=1");
    assert!(led_away());
}
