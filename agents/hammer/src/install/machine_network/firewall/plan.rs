use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use proto_mesh::{Install, MachineNetwork};
use proto_types::MacAddr;

use super::super::MachineNetworkError;
use super::super::plan::{MTU_DEFAULT, asn, image_id, mtu, name_servers, uplinks};
use crate::install::network::{NetworkError, named, parse};

/// Bytes that a tunnel adds to a packet: outer Ethernet, IPv4, UDP and VXLAN headers (RFC 7348).
const TUNNEL_BYTES: u32 = 50;
/// Largest VNI (RFC 7348: 24 bits).
const VNI_MAX: u32 = (1 << 24) - 1;
/// Most networks of a plan beside the underlay. Control allows fewer.
const NETWORKS_MAX: usize = 64;

/// A firewall's network. Every value is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirewallPlan {
    /// Id of the image, for errors.
    pub image: String,
    /// NICs that are cabled to leaves, at least one.
    pub uplinks: Vec<MacAddr>,
    /// MTU in the tunnels, bytes: that of the machines' segments.
    pub mtu: u32,
    /// AS number.
    pub asn: u32,
    /// Address of the tunnels' end.
    pub vtep: Ipv4Addr,
    /// The other addresses in the underlay.
    pub underlay: Vec<IpAddr>,
    /// Networks with a VRF each, in the order of their VNIs.
    pub networks: Vec<FirewallNetwork>,
    /// Name servers.
    pub dns: Vec<IpAddr>,
    /// `true` if the system's agent sets how far routes keep from the firewall. Until then they keep
    /// as far as they can: its rules are not in force yet.
    pub has_agent: bool,
}

/// A network of a firewall, with a VRF of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirewallNetwork {
    /// VNI of its tunnels.
    pub vni: u32,
    /// `true` for a network of a project's machines, `false` for one outside.
    pub is_private: bool,
    /// The firewall's own addresses.
    pub addresses: Vec<IpAddr>,
    /// Prefixes of the network.
    pub prefixes: Vec<IpNet>,
    /// Destinations that are reached through an external network.
    pub destinations: Vec<IpNet>,
}

impl FirewallPlan {
    /// `true` if the order is that of a firewall whose leaves speak EVPN: it has an address in the
    /// underlay.
    #[must_use]
    pub fn is_for(install: &Install) -> bool {
        install.host_addresses && install.networks.iter().any(is_underlay)
    }

    /// The plan of an order. `nics` are the machine's NICs, used if the order names no uplinks.
    ///
    /// # Errors
    /// When a value of the order does not parse, is out of range, is missing or is there twice.
    pub fn of(install: &Install, nics: &[MacAddr]) -> Result<Self, MachineNetworkError> {
        let mut underlay = Vec::new();
        for network in install
            .networks
            .iter()
            .filter(|network| is_underlay(network))
        {
            underlay.extend(addresses(network)?);
        }
        let vtep = underlay.iter().find_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        });
        let vtep = vtep.ok_or(MachineNetworkError::NoTunnelEnd)?;
        underlay.retain(|address| *address != IpAddr::V4(vtep));
        Ok(Self {
            image: image_id(install),
            uplinks: uplinks(install, nics)?,
            mtu: mtu(install, MTU_DEFAULT)?,
            asn: asn(install)?,
            vtep,
            underlay,
            networks: networks(install)?,
            dns: name_servers(install)?,
            has_agent: install.firewall,
        })
    }

    /// MTU of the NICs, bytes.
    pub(super) const fn nic_mtu(&self) -> u32 {
        self.mtu + TUNNEL_BYTES
    }

    /// The names of the NICs, `lan0` and up.
    pub(super) fn nics(&self) -> impl Iterator<Item = (String, MacAddr)> + '_ {
        let named = |(at, mac): (usize, &MacAddr)| (format!("lan{at}"), *mac);
        self.uplinks.iter().enumerate().map(named)
    }

    /// The ways from a network into the VRFs of others: the prefixes and destinations that it does
    /// not have itself, each once. Two external networks have none into each other.
    pub(super) fn ways(&self, from: &FirewallNetwork) -> Vec<(IpNet, String)> {
        let mut out: Vec<(IpNet, String)> = Vec::new();
        let others = self.networks.iter().filter(|to| to.vni != from.vni);
        for to in others.filter(|to| to.is_private || from.is_private) {
            for prefix in to.prefixes.iter().chain(&to.destinations) {
                let is_own = from.prefixes.iter().any(|own| own.contains(prefix));
                if !is_own && out.iter().all(|(known, _)| known != prefix) {
                    out.push((*prefix, to.vrf()));
                }
            }
        }
        out
    }
}

impl FirewallNetwork {
    /// Name of the VRF.
    pub(super) fn vrf(&self) -> String {
        format!("vrf{}", self.vni)
    }
}

fn is_underlay(network: &MachineNetwork) -> bool {
    network.r#type == "underlay"
}

fn networks(install: &Install) -> Result<Vec<FirewallNetwork>, MachineNetworkError> {
    let mut out = Vec::new();
    for network in install
        .networks
        .iter()
        .filter(|network| !is_underlay(network))
    {
        if !(1..=VNI_MAX).contains(&network.vni) {
            let (name, vni) = (network.network.clone(), network.vni);
            return Err(MachineNetworkError::Vni { name, vni });
        }
        out.push(FirewallNetwork {
            vni: network.vni,
            is_private: network.r#type != "external",
            addresses: addresses(network)?,
            prefixes: prefixes(network, &network.prefixes)?,
            destinations: prefixes(network, &network.destination_prefixes)?,
        });
    }
    out.sort_by_key(|network| network.vni);
    let mut pairs = out.windows(2);
    if let Some([_, twice]) = pairs.find(|pair| matches!(pair, [a, b] if a.vni == b.vni)) {
        return Err(MachineNetworkError::VniTwice(twice.vni));
    }
    match out.len() {
        1..=NETWORKS_MAX => Ok(out),
        count => Err(MachineNetworkError::FirewallNetworks(count)),
    }
}

fn addresses(network: &MachineNetwork) -> Result<Vec<IpAddr>, NetworkError> {
    let mut out = Vec::new();
    for text in &network.ips {
        let address: IpAddr = parse(&named(network), text)?;
        if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
            let (field, text) = (named(network), text.clone());
            return Err(NetworkError { field, text });
        }
        if !out.contains(&address) {
            out.push(address);
        }
    }
    Ok(out)
}

fn prefixes(network: &MachineNetwork, texts: &[String]) -> Result<Vec<IpNet>, NetworkError> {
    let mut out: Vec<IpNet> = Vec::new();
    for text in texts {
        let prefix = parse::<IpNet>(&named(network), text)?.trunc();
        if !out.contains(&prefix) {
            out.push(prefix);
        }
    }
    Ok(out)
}
