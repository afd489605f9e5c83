use proto_types::{AllocationId, Timestamp};
use serde::{Deserialize, Serialize};

/// The packets that a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CounterKind {
    /// Forwarded packets, by their fate or by the other side of private networks.
    Total,
    /// Packets above the rate limit of a network.
    RateLimited,
    /// Flows with a replaced source, by network.
    Translated,
    /// Packets for the firewall itself.
    Input,
    /// Hits of a rule that accepts.
    Accept,
    /// Hits of a rule that drops.
    Drop,
    /// Hits of a rule that logs.
    Log,
}

/// A counter of a firewall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterNumber {
    /// The packets that it counts.
    pub kind: CounterKind,
    /// Its name among those of the kind.
    pub name: String,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The last counters of a firewall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallNumbers {
    /// The allocation that reported them.
    pub allocation: AllocationId,
    /// Time of the report.
    pub at: Timestamp,
    /// When they were read, by the clock of the firewall.
    pub read_at: Timestamp,
    /// The counters. Of rules those that have counted something.
    pub counters: Vec<CounterNumber>,
    /// Number of rules in force.
    pub rules: u32,
    /// Number of rules that have counted something and are not among the counters.
    pub left_out: u32,
}

impl CounterKind {
    /// `true` for the counter of a rule.
    #[must_use]
    pub fn is_of_rule(self) -> bool {
        matches!(self, Self::Accept | Self::Drop | Self::Log)
    }

    /// Its name in outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::RateLimited => "rate_limited",
            Self::Translated => "translated",
            Self::Input => "input",
            Self::Accept => "accept",
            Self::Drop => "drop",
            Self::Log => "log",
        }
    }
}
