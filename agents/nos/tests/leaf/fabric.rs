//! Two leaves and two spines.

use agents_nos::SwitchModel;

use super::daemons::Switch;
use super::hosts::cable;
use super::models::underlay;
use super::switch::reconcile;

/// Ports of a leaf to the spines.
pub(crate) const UPLINKS: [&str; 2] = ["swp31", "swp32"];
/// Ports of a spine to the leaves.
pub(crate) const DOWNLINKS: [&str; 2] = ["swp1", "swp2"];

/// Two leaves, each with a link to both spines, without tenants.
pub(crate) struct Fabric {
    pub(crate) spines: [Switch; 2],
    pub(crate) leaves: [Switch; 2],
    /// Desired states of the leaves so far.
    pub(crate) models: [SwitchModel; 2],
}

impl Fabric {
    pub(crate) async fn start(test: &str) -> Self {
        let spines = [
            Switch::start(&format!("{test}-s1"), &[]).await,
            Switch::start(&format!("{test}-s2"), &[]).await,
        ];
        let leaves = [
            Switch::start(&format!("{test}-1"), &[]).await,
            Switch::start(&format!("{test}-2"), &[]).await,
        ];
        for (spine, uplink) in spines.iter().zip(UPLINKS) {
            for (leaf, downlink) in leaves.iter().zip(DOWNLINKS) {
                cable(leaf, uplink, &spine.name, downlink);
            }
        }
        for (spine, model) in spines.iter().zip(spine_models()) {
            reconcile(spine, &model);
        }
        let models = [11, 12].map(|number| underlay(number, &UPLINKS));
        Self {
            spines,
            leaves,
            models,
        }
    }

    /// Prints what the switches know, for a failure.
    pub(crate) fn show(&self) {
        for switch in self.leaves.iter().chain(&self.spines) {
            for command in [
                "show bgp vrf all summary",
                "show evpn vni",
                "show bgp l2vpn evpn",
                "show evpn arp-cache vni all",
                "show ip route vrf all",
                "show ipv6 route vrf all",
            ] {
                println!("{} {command}: {}", switch.name, switch.vtysh(command));
            }
            for arguments in [
                "-br link",
                "-br addr",
                "rule",
                "route show table all",
                "nexthop",
                "neigh",
            ] {
                println!("{} ip {arguments}", switch.name);
                switch.ip(arguments);
            }
            println!("{} bridge fdb", switch.name);
            let mut bridge = std::process::Command::new("bridge");
            bridge.args(["-n", &switch.name, "fdb"]).status().ok();
        }
    }

    /// Brings both leaves to their desired states.
    pub(crate) fn reconcile(&self) {
        for (leaf, model) in self.leaves.iter().zip(&self.models) {
            reconcile(leaf, model);
        }
    }
}

/// The desired states of the spines.
pub(crate) fn spine_models() -> [SwitchModel; 2] {
    [1, 2].map(|number| underlay(number, &DOWNLINKS))
}
