//! The network of an installed system that takes part in its segment over every cabled NIC.
//!
//! *Routed*: the machine announces its addresses by BGP to each leaf. *Bridged*: a bond with the
//! anycast gateway of the segment. A *firewall* ends the tunnels of its networks itself
//! ([`FirewallPlan`]). [`NetworkPlan::of`] checks the order; [`render`] turns the plan
//! into files for the program that the image configures its network with. Both are pure. Only
//! parsed values of the order get into a file, so that no text of it can add lines.

mod family;
mod firewall;
mod frr;
mod keyfile;
mod netplan;
mod networkd;
mod plan;
mod renderer;

pub use firewall::{FirewallPlan, render as render_firewall};
pub use plan::{Mode, NetworkPlan};
pub use renderer::Renderer;

use super::config::{UNITS, WANTS};
use super::features::ImageFeatures;
use super::item::{SystemItem, file, link};
use super::network::NetworkError;

/// Name of the bond of a bridged machine.
const BOND: &str = "bond0";
/// Settings of a routed machine's kernel: the ports of a flow take part in the choice of its leaf, so
/// that flows between two machines share the cables.
const SYSCTL: &str = "net.ipv4.fib_multipath_hash_policy=1\nnet.ipv6.fib_multipath_hash_policy=1\n";

/// The parts of the image that the network is configured for.
#[derive(Debug, Clone, Copy)]
pub struct ImageNetwork<'a> {
    /// Programs of the image.
    pub features: ImageFeatures,
    /// Content of the image's /etc/passwd.
    pub passwd: &'a str,
    /// File names in the image's /etc/netplan.
    pub netplan_names: &'a [String],
}

/// A reason why the network cannot be configured. None of them is retryable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineNetworkError {
    /// A mode of the order that this version of hammer does not know.
    #[error("the order wants networking {0:?}: known are routed and bridged; update hammer")]
    Mode(String),
    /// A bond of the order that this version of hammer does not know.
    #[error("the order wants bond {0:?}: known are active-backup and 802.3ad; update hammer")]
    Bond(String),
    /// A value of the order does not parse.
    #[error(transparent)]
    Value(#[from] NetworkError),
    /// An MTU outside of the range of switches.
    #[error("the order's MTU is {0}: it must be in 1280..=9216")]
    Mtu(u32),
    /// No NIC, or more than a machine is cabled with.
    #[error("{0} NICs are cabled to leaves: it must be 1 to {max}", max = plan::UPLINKS_MAX)]
    Uplinks(usize),
    /// A routed machine without an AS number.
    #[error("the order has no AS number, or several: a routed machine needs one")]
    Asn,
    /// A machine without an address.
    #[error("the order has no address to configure")]
    NoAddress,
    /// A firewall without an IPv4 address in the underlay.
    #[error("the order's underlay network has no IPv4 address for the ends of tunnels")]
    NoTunnelEnd,
    /// A network of a firewall with a VNI that VXLAN has not.
    #[error("network {name:?} of the order has VNI {vni}: it must be in 1..=16777215")]
    Vni {
        /// The network.
        name: String,
        /// Its VNI.
        vni: u32,
    },
    /// Two networks of a firewall with one VNI.
    #[error("two networks of the order have VNI {0}: each needs one of its own")]
    VniTwice(u32),
    /// A firewall without networks, or with more than it can have.
    #[error("the order has {0} networks beside the underlay: it must be 1 to 64")]
    FirewallNetworks(usize),
    /// The image of a firewall has no FRR.
    #[error(
        "image {0:?} has no FRR (frr.service and bgpd), which a firewall needs: install the package \
         frr into it"
    )]
    FirewallNoFrr(String),
    /// The image of a firewall has no systemd-networkd.
    #[error(
        "image {0:?} has no systemd-networkd, which configures the tunnels of a firewall: install \
         it into the image"
    )]
    FirewallNoNetworkd(String),
    /// The image has no FRR.
    #[error(
        "image {0:?} is labelled metalmesh.dev/networking=routed and has no FRR (frr.service and \
         bgpd): install the package frr into it, or label it bridged"
    )]
    NoFrr(String),
    /// The image has no program for its network that hammer can configure.
    #[error(
        "image {image:?} has {found} to configure its network with: install systemd-networkd, \
         netplan or NetworkManager into it"
    )]
    NoRenderer {
        /// The image.
        image: String,
        /// The program that it has instead.
        found: &'static str,
    },
}

/// The files of the network, in the order to write them.
///
/// # Errors
/// When the image lacks the programs.
pub fn render(
    plan: &NetworkPlan,
    image: &ImageNetwork<'_>,
) -> Result<Vec<SystemItem>, MachineNetworkError> {
    let features = &image.features;
    if plan.mode == Mode::Routed && !features.frr {
        return Err(MachineNetworkError::NoFrr(plan.image.clone()));
    }
    let renderer = Renderer::of(features).ok_or_else(|| MachineNetworkError::NoRenderer {
        image: plan.image.clone(),
        found: if features.ifupdown {
            "only ifupdown, which is not supported,"
        } else {
            "nothing"
        },
    })?;
    let mut out = match renderer {
        Renderer::Networkd => networkd::files(plan),
        Renderer::Netplan => netplan::files(plan, features.networkd, image.netplan_names),
        Renderer::NetworkManager => keyfile::files(plan),
    };
    for unit in renderer.units(features) {
        out.push(enable(unit));
    }
    if plan.mode == Mode::Routed {
        out.push(file(
            "/etc/sysctl.d/90-metalmesh-network.conf",
            0o644,
            SYSCTL,
        ));
        out.extend(frr::files(plan, image.passwd));
        out.push(enable("frr.service"));
        out.extend(routed_dns(plan, renderer, features));
    }
    Ok(out)
}

/// Name servers of a routed machine: of the whole system, because no link of it has an address, and
/// each link may fail. Without systemd-resolved they are in /etc/resolv.conf.
fn routed_dns(
    plan: &NetworkPlan,
    renderer: Renderer,
    features: &ImageFeatures,
) -> Option<SystemItem> {
    let servers: Vec<String> = plan.dns.iter().map(ToString::to_string).collect();
    if servers.is_empty() {
        return None;
    }
    if features.resolved {
        let text = format!("[Resolve]\nDNS={}\n", servers.join(" "));
        let path = "/etc/systemd/resolved.conf.d/metalmesh.conf";
        return Some(file(path, 0o644, text));
    }
    // NetworkManager replaces /etc/resolv.conf.
    (renderer == Renderer::NetworkManager).then(|| {
        let text = format!("[global-dns-domain-*]\nservers={}\n", servers.join(","));
        let path = "/etc/NetworkManager/conf.d/91-metalmesh-dns.conf";
        file(path, 0o644, text)
    })
}

fn enable(unit: &str) -> SystemItem {
    link(
        &format!("{WANTS}/{unit}"),
        &format!("/lib/systemd/system/{unit}"),
    )
}

/// Has the boot wait for one link instead of all: a dead leaf must not delay it.
fn wait_for_any() -> SystemItem {
    let text = "[Service]\nExecStart=\n\
                ExecStart=/lib/systemd/systemd-networkd-wait-online --any --timeout=60\n";
    let path = format!("{UNITS}/systemd-networkd-wait-online.service.d/metalmesh.conf");
    file(&path, 0o644, text)
}

#[cfg(test)]
mod tests;
