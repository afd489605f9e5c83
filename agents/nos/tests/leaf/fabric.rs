//! Two leaves and a spine.

use agents_nos::SwitchModel;

use super::daemons::Switch;
use super::hosts::cable;
use super::models::underlay;
use super::switch::reconcile;

/// Two leaves with a spine between them, without tenants.
pub(crate) struct Fabric {
    pub(crate) spine: Switch,
    pub(crate) leaves: [Switch; 2],
    /// Their desired states so far.
    pub(crate) models: [SwitchModel; 2],
}

impl Fabric {
    pub(crate) async fn start(test: &str) -> Self {
        let spine = Switch::start(&format!("{test}-s"), &[]).await;
        let leaves = [
            Switch::start(&format!("{test}-1"), &[]).await,
            Switch::start(&format!("{test}-2"), &[]).await,
        ];
        for (leaf, port) in leaves.iter().zip(["swp1", "swp2"]) {
            cable(leaf, "swp31", &spine.name, port);
        }
        reconcile(&spine, &underlay(1, &["swp1", "swp2"]));
        let models = [11, 12].map(|number| underlay(number, &["swp31"]));
        Self {
            spine,
            leaves,
            models,
        }
    }

    /// Prints what the switches know, for a failure.
    pub(crate) fn show(&self) {
        for switch in self.leaves.iter().chain([&self.spine]) {
            for command in [
                "show bgp vrf all summary",
                "show evpn vni",
                "show bgp l2vpn evpn",
                "show ip route vrf all",
            ] {
                println!("{} {command}: {}", switch.name, switch.vtysh(command));
            }
            for arguments in [
                "-br link",
                "-br addr",
                "rule",
                "route show table all",
                "neigh",
            ] {
                println!("{} ip {arguments}", switch.name);
                switch.ip(arguments);
            }
        }
    }

    /// Brings both leaves to their desired states.
    pub(crate) fn reconcile(&self) {
        for (leaf, model) in self.leaves.iter().zip(&self.models) {
            reconcile(leaf, model);
        }
    }
}
