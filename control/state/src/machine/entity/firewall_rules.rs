//! Firewall rules of an allocation.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A protocol of a firewall rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A rule that lets traffic through a firewall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRule {
    /// Protocol.
    pub protocol: Protocol,
    /// Destination ports.
    #[serde(default)]
    pub ports: Vec<u32>,
    /// Destinations.
    #[serde(default)]
    pub to: Vec<IpNet>,
    /// Sources, in ingress rules only.
    #[serde(default)]
    pub from: Vec<IpNet>,
    /// Free text.
    #[serde(default)]
    pub comment: String,
}

/// Rules of a firewall at its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FirewallRules {
    /// Outgoing traffic.
    pub egress: Vec<FirewallRule>,
    /// Incoming traffic.
    pub ingress: Vec<FirewallRule>,
}
