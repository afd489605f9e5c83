//! Networks that a firewall joins.

use std::net::IpAddr;

use ipnet::IpNet;

/// The side of the firewall that a network is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetworkKind {
    /// A network of the project.
    Private,
    /// A network outside, such as the Internet.
    External,
    /// The network of the fabric. No rule is for it.
    Underlay,
    /// A network whose object is wrong. Nothing passes from it or to it.
    Closed,
}

/// A network that the firewall joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Id, as rules and output name it.
    pub id: String,
    /// Side of the firewall.
    pub kind: NetworkKind,
    /// Names of its interfaces, as the kernel has them.
    pub interfaces: Vec<String>,
    /// Its prefixes.
    pub prefixes: Vec<IpNet>,
    /// Of an external network: the addresses in it that machines behind the firewall may have. `None`
    /// means all of its prefixes.
    pub addresses: Option<Vec<IpNet>>,
    /// Sources of flows from private networks into this one. Empty: see `masquerade`.
    pub nat_addresses: Vec<IpAddr>,
    /// `true` if flows into this network without `nat_addresses` of their family get the address of
    /// the interface as their source.
    pub masquerade: bool,
}
