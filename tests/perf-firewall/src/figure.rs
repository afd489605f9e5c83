//! The figures of this bench.

use Bar::{AtLeast, AtMost, Nothing};

/// The value that a figure must have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
    /// Shown, and not judged.
    Nothing,
}

/// How the numbers of the rounds become one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Summary {
    Median,
    P99,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// Its key in the JSON; ends with the unit.
    pub(crate) name: &'static str,
    /// Key of its numbers.
    pub(crate) of: &'static str,
    /// The text for people.
    pub(crate) title: &'static str,
    /// Digits behind the point.
    pub(crate) digits: usize,
    pub(crate) summary: Summary,
    pub(crate) bar: Bar,
}

const fn middle(name: &'static str, title: &'static str, digits: usize, bar: Bar) -> Figure {
    Figure {
        name,
        of: name,
        title,
        digits,
        summary: Summary::Median,
        bar,
    }
}

const fn p99(name: &'static str, of: &'static str, title: &'static str, bar: Bar) -> Figure {
    Figure {
        name,
        of,
        title,
        digits: 1,
        summary: Summary::P99,
        bar,
    }
}

/// Every figure, in the order of the table.
pub(crate) const FIGURES: &[Figure] = &[
    middle(
        "apply_ms",
        "all permits: metalmesh-firewall apply, ms",
        0,
        AtMost(1000.0),
    ),
    middle("apply_cpu_ms", "all permits: its CPU, ms", 0, AtMost(300.0)),
    middle(
        "agent_apply_ms",
        "all permits: typed rules to verified table, ms",
        1,
        Nothing,
    ),
    middle(
        "agent_apply_cpu_ms",
        "all permits: typed rules to verified table, CPU, ms",
        1,
        Nothing,
    ),
    middle("nft_table_ms", "nft -f of the same table, ms", 0, Nothing),
    middle(
        "nft_table_cpu_ms",
        "nft -f of the same table, CPU, ms",
        0,
        Nothing,
    ),
    middle(
        "nft_rules_ms",
        "nft -f of the text for others, ms",
        0,
        Nothing,
    ),
    middle(
        "nft_rules_cpu_ms",
        "nft -f of the text for others, CPU, ms",
        0,
        Nothing,
    ),
    middle(
        "change_p50_ms",
        "one rule: typed rules to verified table, p50, ms",
        2,
        Nothing,
    ),
    p99(
        "change_p99_ms",
        "change_p50_ms",
        "one rule: typed rules to verified table, p99, ms",
        AtMost(20.0),
    ),
    middle("change_cpu_ms", "one rule: CPU, ms", 2, Nothing),
    middle(
        "objects_ms",
        "one object of a source: to verified table, ms",
        1,
        Nothing,
    ),
    middle(
        "objects_cpu_ms",
        "one object of a source: CPU, ms",
        1,
        Nothing,
    ),
    middle(
        "nft_change_ms",
        "one rule: nft -f of its entry and counter, ms",
        1,
        Nothing,
    ),
    middle(
        "source_p50_ms",
        "one rule in the agent's file: to the kernel, p50, ms",
        0,
        Nothing,
    ),
    p99(
        "source_p99_ms",
        "source_p50_ms",
        "one rule in the agent's file: to the kernel, p99, ms",
        AtMost(1000.0),
    ),
    middle(
        "source_cpu_ms",
        "one rule in the agent's file: agent's CPU, ms",
        0,
        Nothing,
    ),
    middle(
        "idle_cpu_percent",
        "the agent without a change: CPU, % of a core",
        2,
        Nothing,
    ),
    middle("rss_mib", "the agent's memory, MiB", 0, Nothing),
    middle("tcp_gbit_s", "TCP through all permits, Gbit/s", 2, Nothing),
    middle("tcp_ratio", "TCP: to an empty table", 3, AtLeast(0.95)),
    middle(
        "udp_kpps",
        "UDP, 64 bytes, through all permits, 1,000 packets/s",
        0,
        Nothing,
    ),
    middle("udp_ratio", "UDP: to an empty table", 3, AtLeast(0.95)),
    middle(
        "udp_tracked_ratio",
        "UDP: to a table that only tracks flows",
        3,
        Nothing,
    ),
    middle(
        "latency_p99_us",
        "round trip through all permits, p99, us",
        0,
        Nothing,
    ),
    middle(
        "latency_ratio",
        "round trip, p99: empty table to all permits",
        3,
        AtLeast(0.95),
    ),
    middle(
        "flow_us",
        "new flow and its answer through all permits, us",
        1,
        Nothing,
    ),
    middle("flow_ratio", "new flows: to one permit", 3, Nothing),
];
