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

/// What a firewall lets through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRule {
    /// Protocol.
    pub protocol: Protocol,
    /// Ports.
    #[serde(default)]
    pub ports: Vec<u32>,
    /// Destinations.
    #[serde(default)]
    pub to: Vec<IpNet>,
    /// Sources; of ingress rules only.
    #[serde(default)]
    pub from: Vec<IpNet>,
    /// Free text.
    #[serde(default)]
    pub comment: String,
}

/// What a firewall lets through at its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FirewallRules {
    /// Outwards.
    pub egress: Vec<FirewallRule>,
    /// Inwards.
    pub ingress: Vec<FirewallRule>,
}
