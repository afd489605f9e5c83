use std::collections::BTreeMap;

/// Packets and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterSum {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Sums over all firewalls since this node began to lead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirewallTotals {
    /// Firewalls that reported within the last minute.
    pub reporting: usize,
    /// Rules in force on them, together.
    pub rules: u64,
    /// Growth of their counters since, by the name of the total.
    pub sums: BTreeMap<&'static str, CounterSum>,
}

impl FirewallTotals {
    /// The totals of a firewall of which sums over all firewalls are made: a bounded set, whatever
    /// firewalls report.
    pub const NAMES: [&'static str; 13] = [
        "established",
        "accepted",
        "denied",
        "logged",
        "dropped",
        "invalid",
        "spoofed",
        "rate_limited",
        "translated",
        "internal_in",
        "internal_out",
        "external_in",
        "external_out",
    ];
}
