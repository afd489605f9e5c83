//! The network of an order, checked and parsed.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use proto_mesh::Install;
use proto_types::MacAddr;

use super::MachineNetworkError;
use crate::install::network::{GATEWAY_V4, GATEWAY_V6, NetworkError, named, parse, with_prefix};

/// Most NICs of a plan; an order with more is refused.
pub(super) const UPLINKS_MAX: usize = 8;
/// MTU if control names none, bytes: the one of leaf ports to machines.
pub(super) const MTU_DEFAULT: u32 = 9000;

/// The way in which the installed system takes part in its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Static addresses on the boot interface.
    Static,
    /// BGP to every leaf.
    Routed,
    /// A bond over every cabled NIC.
    Bridged,
}

impl Mode {
    /// The mode of an order.
    ///
    /// # Errors
    /// `Mode` if this version does not know it.
    pub fn parse(text: &str) -> Result<Self, MachineNetworkError> {
        match text {
            "" => Ok(Self::Static),
            "routed" => Ok(Self::Routed),
            "bridged" => Ok(Self::Bridged),
            other => Err(MachineNetworkError::Mode(other.to_string())),
        }
    }
}

/// A network to configure. Every value is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPlan {
    /// The mode.
    pub mode: Mode,
    /// Id of the image, for errors.
    pub image: String,
    /// `true` for a bond by LACP, `false` for active-backup.
    pub lacp: bool,
    /// NICs that are cabled to leaves, at least one.
    pub uplinks: Vec<MacAddr>,
    /// MTU, bytes.
    pub mtu: u32,
    /// Addresses with the prefix lengths of their networks; as hosts, /32 and /128, where the leaves
    /// route between them.
    pub addresses: Vec<IpNet>,
    /// Destinations through the gateway, the default routes first.
    pub routes: Vec<IpNet>,
    /// Name servers.
    pub dns: Vec<IpAddr>,
    /// AS number; 0 for a bridged machine.
    pub asn: u32,
}

impl NetworkPlan {
    /// The plan of an order. `nics` are the machine's NICs, used if the order names no uplinks.
    ///
    /// # Errors
    /// When a value of the order does not parse, is out of range or is missing.
    pub fn of(install: &Install, nics: &[MacAddr]) -> Result<Self, MachineNetworkError> {
        let mode = Mode::parse(&install.networking)?;
        let lacp = match install.bond.as_str() {
            "" | "active-backup" => false,
            "802.3ad" => true,
            other => return Err(MachineNetworkError::Bond(other.to_string())),
        };
        let addresses = addresses(install)?;
        Ok(Self {
            mode,
            image: image_id(install),
            lacp,
            uplinks: uplinks(install, nics)?,
            mtu: mtu(install, MTU_DEFAULT)?,
            routes: routes(install, &addresses)?,
            addresses,
            dns: name_servers(install)?,
            asn: if mode == Mode::Routed {
                asn(install)?
            } else {
                0
            },
        })
    }

    /// The name of the NIC at a position, `lan0` and up.
    pub(super) fn nics(&self) -> impl Iterator<Item = (String, MacAddr)> + '_ {
        let named = |(at, mac): (usize, &MacAddr)| (format!("lan{at}"), *mac);
        self.uplinks.iter().enumerate().map(named)
    }

    /// The addresses as hosts, /32 and /128.
    pub(super) fn hosts(&self) -> impl Iterator<Item = IpNet> + '_ {
        self.addresses.iter().map(|net| IpNet::from(net.addr()))
    }

    /// BGP identifier. It needs to be unique in its AS only (RFC 6286), which has this one machine;
    /// one from the AS number does for machines without IPv4 as well.
    pub(super) const fn router_id(&self) -> Ipv4Addr {
        let [_, a, b, c] = self.asn.to_be_bytes();
        Ipv4Addr::new(10, a, b, c)
    }
}

/// The gateway of a route.
pub(super) const fn gateway(route: &IpNet) -> &'static str {
    match route {
        IpNet::V4(_) => GATEWAY_V4,
        IpNet::V6(_) => GATEWAY_V6,
    }
}

/// Id of the image, for errors.
pub(super) fn image_id(install: &Install) -> String {
    let image = install.image.as_ref();
    image.map(|image| image.id.clone()).unwrap_or_default()
}

/// The MTU of the order, bytes, or this one if control names none.
pub(super) const fn mtu(install: &Install, default: u32) -> Result<u32, MachineNetworkError> {
    match install.mtu {
        0 => Ok(default),
        mtu @ 1280..=9216 => Ok(mtu),
        mtu => Err(MachineNetworkError::Mtu(mtu)),
    }
}

pub(super) fn name_servers(install: &Install) -> Result<Vec<IpAddr>, NetworkError> {
    let servers = install.dns_servers.iter();
    servers.map(|server| parse("dns_servers", server)).collect()
}

pub(super) fn uplinks(
    install: &Install,
    nics: &[MacAddr],
) -> Result<Vec<MacAddr>, MachineNetworkError> {
    let mut out: Vec<MacAddr> = Vec::new();
    for text in &install.uplinks {
        let mac = parse("uplinks", text)?;
        if !out.contains(&mac) {
            out.push(mac);
        }
    }
    if out.is_empty() {
        out = nics.to_vec();
    }
    match out.len() {
        1..=UPLINKS_MAX => Ok(out),
        count => Err(MachineNetworkError::Uplinks(count)),
    }
}

fn addresses(install: &Install) -> Result<Vec<IpNet>, MachineNetworkError> {
    let mut out = Vec::new();
    for network in &install.networks {
        for ip in &network.ips {
            let (address, prefix) = with_prefix(network, ip)?;
            // Addresses that no route may lead to would be refused, or announced, only at the boot.
            if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
                let field = named(network);
                let text = ip.clone();
                return Err(NetworkError { field, text }.into());
            }
            let host = IpNet::from(address);
            let net = match install.host_addresses {
                true => host,
                false => IpNet::new(address, prefix).unwrap_or(host),
            };
            if !out.contains(&net) {
                out.push(net);
            }
        }
    }
    if out.is_empty() {
        return Err(MachineNetworkError::NoAddress);
    }
    Ok(out)
}

/// The default route of each family that has an address, then the destinations of the networks.
fn routes(install: &Install, addresses: &[IpNet]) -> Result<Vec<IpNet>, MachineNetworkError> {
    let has = |v4: bool| addresses.iter().any(|net| net.addr().is_ipv4() == v4);
    let any = |address: IpAddr| IpNet::new(address, 0).unwrap_or_else(|_| IpNet::from(address));
    let defaults = [
        any(Ipv4Addr::UNSPECIFIED.into()),
        any(std::net::Ipv6Addr::UNSPECIFIED.into()),
    ];
    let mut out: Vec<IpNet> = defaults
        .into_iter()
        .filter(|net| has(net.addr().is_ipv4()))
        .collect();
    for network in &install.networks {
        for destination in &network.destination_prefixes {
            let net = parse::<IpNet>(&named(network), destination)?.trunc();
            if has(net.addr().is_ipv4()) && !out.contains(&net) {
                out.push(net);
            }
        }
    }
    Ok(out)
}

/// The AS number, the same in every network.
pub(super) fn asn(install: &Install) -> Result<u32, MachineNetworkError> {
    let mut numbers = install.networks.iter().map(|network| network.asn);
    let first = numbers.next().unwrap_or(0);
    if first == 0 || numbers.any(|other| other != first) {
        return Err(MachineNetworkError::Asn);
    }
    Ok(first)
}
