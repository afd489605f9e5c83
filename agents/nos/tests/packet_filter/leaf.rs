//! A leaf with two segments: the firewall on `swp5` has network 10, and not network 11.

use std::process::{Command, Stdio};

use agents_nos::model::{Mtu, PacketFilter, Port, PortName, Segment, VxlanFilter};
use agents_nos::{Capability, Membership, Nos, SwitchModel, Vni, plan};

use super::daemons::{self, Switch};
use super::hosts::inside;
use super::switch::open;

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
        let switch = open(&name);
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
        open(&name).observe().await.unwrap().model
    })
}

/// Runs nft in the namespace, as an operator does.
pub(crate) fn nft(leaf: &Switch, commands: &str) {
    let status = Command::new("ip")
        .args(["netns", "exec", &leaf.name, "nft", commands])
        .status();
    assert!(status.unwrap().success(), "nft {commands}");
}
