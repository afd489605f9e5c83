//! The network of a firewall: a tunnel endpoint with a VRF for each of its networks.
//!
//! It announces its address in the underlay to every leaf, and to the EVPN the ways that its networks
//! have through it. Routes get from one VRF into another by BGP, only between a private network and
//! an external one.

mod frr;
mod networkd;
mod plan;

pub use plan::FirewallPlan;

use super::{ImageNetwork, MachineNetworkError, enable};
use crate::install::item::{SystemItem, file};

/// Settings of the kernel. Forwarding is not among them: the agent of the rules opens it once they are
/// in force. Packets of a flow may come in by a VRF whose routes lead elsewhere, so
/// that the sender's way back is not checked (`rp_filter`); the rules of the firewall do that.
const SYSCTL: &str = "net.ipv4.conf.all.rp_filter=0\nnet.ipv4.conf.default.rp_filter=0\n\
    net.ipv4.conf.all.accept_redirects=0\nnet.ipv4.conf.default.accept_redirects=0\n\
    net.ipv6.conf.all.accept_redirects=0\nnet.ipv6.conf.default.accept_redirects=0\n\
    net.ipv4.conf.all.send_redirects=0\nnet.ipv4.conf.default.send_redirects=0\n\
    net.ipv6.conf.all.keep_addr_on_down=1\n\
    net.ipv4.fib_multipath_hash_policy=1\nnet.ipv6.fib_multipath_hash_policy=1\n";

/// The files of a firewall's network, in the order to write them.
///
/// # Errors
/// When the image has no systemd-networkd or no FRR.
pub fn render(
    plan: &FirewallPlan,
    image: &ImageNetwork<'_>,
) -> Result<Vec<SystemItem>, MachineNetworkError> {
    if !image.features.frr {
        return Err(MachineNetworkError::FirewallNoFrr(plan.image.clone()));
    }
    if !image.features.networkd {
        return Err(MachineNetworkError::FirewallNoNetworkd(plan.image.clone()));
    }
    let mut out = networkd::files(plan);
    out.push(enable("systemd-networkd.service"));
    out.push(file(
        "/etc/sysctl.d/90-metalmesh-firewall.conf",
        0o644,
        SYSCTL,
    ));
    out.extend(frr::files(plan, image.passwd));
    out.push(enable("frr.service"));
    Ok(out)
}

#[cfg(test)]
mod tests;
