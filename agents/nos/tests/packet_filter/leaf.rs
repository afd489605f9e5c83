//! A leaf with two segments: the firewall on `swp5` has network 10, and not network 11.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agents_nos::linux::FilterConfig;
use agents_nos::model::{Mtu, PacketFilter, Port, PortName, Segment, VxlanFilter};
use agents_nos::{Capability, Membership, Nos, SwitchModel, Vni, plan};
use ipnet::IpNet;

use super::daemons::{self, Switch};
use super::hosts::inside;
use super::switch::open_with;

/// Time after which nothing more comes.
const SETTLED: Duration = Duration::from_millis(300);

/// The firewall's network, and another tenant's.
pub(crate) const OWN: u32 = 10;
pub(crate) const FOREIGN: u32 = 11;

/// `false`, with a printed reason, where something is missing.
pub(crate) fn is_available() -> bool {
    if !daemons::is_available() {
        return false;
    }
    let nft = Command::new("nft")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let is_there = nft.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("SKIPPED: nft (Debian package nftables) is missing");
    }
    is_there
}

pub(crate) fn port(name: &str) -> PortName {
    PortName::new(name).unwrap()
}

pub(crate) fn vni(number: u32) -> Vni {
    Vni::new(number).unwrap()
}

/// The site: firewalls reach one service, and are managed from one host.
fn site() -> FilterConfig {
    let prefix = |text: &str| text.parse::<IpNet>().unwrap();
    let listener = |text: &str| text.parse::<SocketAddr>().unwrap();
    FilterConfig {
        uplinks: [port("swp20")].into(),
        underlay: ["10.0.0.0/24", "2001:db8::/64"].map(prefix).into(),
        services: ["10.0.0.2:4443", "[2001:db8::2]:4443"].map(listener).into(),
        clients: ["10.0.0.3/32", "2001:db8::3/128"].map(prefix).into(),
    }
}

/// The filter of the firewall.
pub(crate) fn filter(vnis: &[u32]) -> VxlanFilter {
    let sources = ["10.1.0.5/32", "10.1.0.9/32", "2001:db8:1::5/128"];
    let sources = sources.iter().map(|text| text.parse().unwrap());
    VxlanFilter::new(vnis.iter().map(|number| vni(*number)), sources).unwrap()
}

/// The desired state: `swp5` a firewall's, `swp6` a spine's, `swp7` and `swp8` in the segments.
pub(crate) fn desired() -> SwitchModel {
    let mut model = SwitchModel {
        vtep: Some([10, 0, 0, 11].into()),
        packet_filter: PacketFilter {
            is_in_place: true,
            firewalls: [(port("swp5"), filter(&[OWN, 12]))].into(),
        },
        ..SwitchModel::default()
    };
    let place = |number| Membership::Segment {
        vni: vni(number),
        is_private: false,
    };
    for (name, membership) in [
        ("swp5", Membership::Underlay),
        ("swp6", Membership::Underlay),
        ("swp7", place(FOREIGN)),
        ("swp8", place(OWN)),
    ] {
        let made = Port {
            admin_up: true,
            mtu: None,
            membership,
        };
        model.ports.insert(port(name), made);
    }
    for number in [OWN, FOREIGN] {
        model
            .segments
            .insert(vni(number), Segment::new(Mtu::ETHERNET));
    }
    model
}

/// Brings the leaf to a state, each step twice, and checks that nothing is left to do.
pub(crate) fn reconcile(leaf: &Switch, desired: &SwitchModel) {
    let (name, desired) = (leaf.name.clone(), desired.clone());
    inside(&leaf.name, async move || {
        let switch = open_with(&name, site());
        let observed = switch.observe().await.unwrap().model;
        for step in plan(&observed, &desired, Capability::ALL).steps {
            for _ in 0..2 {
                let applied = switch.apply(&step).await;
                applied.unwrap_or_else(|e| panic!("{step:?}: {e:#?}"));
            }
        }
        let observed = switch.observe().await.unwrap().model;
        assert_eq!(plan(&observed, &desired, Capability::ALL).steps, []);
    });
}

pub(crate) fn observe(leaf: &Switch) -> SwitchModel {
    let name = leaf.name.clone();
    inside(&leaf.name, async move || {
        open_with(&name, site()).observe().await.unwrap().model
    })
}

/// The MAC address of a device of the leaf.
pub(crate) fn mac(leaf: &Switch, device: &str) -> [u8; 6] {
    let shown = Command::new("ip")
        .args(["netns", "exec", &leaf.name, "cat"])
        .arg(format!("/sys/class/net/{device}/address"))
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let octets = shown.trim().split(':');
    let octets = octets.map(|octet| u8::from_str_radix(octet, 16).unwrap());
    octets.collect::<Vec<_>>().try_into().unwrap()
}

/// Changes a setting of the kernel in a namespace: "net.ipv4.ip_forward=1".
pub(crate) fn sysctl(namespace: &str, setting: &str) {
    daemons::ip(&format!("netns exec {namespace} sysctl -qw {setting}"));
}

/// The lines that a program prints in the namespace which begin with one of these.
pub(crate) fn lines(leaf: &Switch, program: &str, arguments: &str, begins: &[&str]) -> Vec<String> {
    let output = Command::new(program)
        .args(["-n", &leaf.name])
        .args(arguments.split(' '))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_meant = |line: &&str| begins.iter().any(|begin| line.starts_with(begin));
    text.lines().filter(is_meant).map(str::to_owned).collect()
}

/// The most of a number that it comes to. The kernel is done when it has not grown for a while.
pub(crate) fn settled(mut number: impl FnMut() -> usize) -> usize {
    let mut most = 0;
    let mut until = Instant::now() + SETTLED;
    while Instant::now() < until {
        let now = number();
        if now > most {
            until = Instant::now() + SETTLED;
            most = now;
        }
    }
    most
}

/// Runs nft in the namespace, as an operator does.
pub(crate) fn nft(leaf: &Switch, commands: &str) {
    let status = Command::new("ip")
        .args(["netns", "exec", &leaf.name, "nft", commands])
        .status();
    assert!(status.unwrap().success(), "nft {commands}");
}
