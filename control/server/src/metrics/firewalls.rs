//! Counters of all firewalls together, which only the leader gets.

use std::fmt;

use base_telemetry::metrics::{Label, Sheet, Unit};
use control_presence::{CounterSum, FirewallTotals};

use super::node::float;

/// Verdicts, by the names of the totals. Of a flow a rule decides about the first packet only.
const VERDICTS: [(&str, &str); 9] = [
    ("established", "established"),
    ("accepted", "accepted"),
    ("denied", "denied"),
    ("logged", "logged"),
    ("dropped", "unmatched"),
    ("invalid", "invalid"),
    ("spoofed", "spoofed"),
    ("rate_limited", "rate_limited"),
    ("translated", "translated"),
];
/// Sides and directions of the accounting, by the names of the totals.
const SIDES: [(&str, [&str; 2]); 4] = [
    ("internal_in", ["internal", "in"]),
    ("internal_out", ["internal", "out"]),
    ("external_in", ["external", "in"]),
    ("external_out", ["external", "out"]),
];

/// A sum with its labels.
struct SumRow {
    labels: Vec<Label>,
    sum: CounterSum,
}

/// Writes the sums since this node began to lead.
pub(super) fn firewalls(sheet: &mut Sheet<'_>, totals: &FirewallTotals) -> fmt::Result {
    let help = "Firewalls that reported their counters within a minute; only the leader tells";
    let reporting = u64::try_from(totals.reporting).unwrap_or(u64::MAX);
    sheet.gauge(
        "metalmesh_firewalls_reporting",
        help,
        None,
        float(reporting),
    )?;
    let help = "Rules in force on these firewalls together; only the leader tells";
    sheet.gauge("metalmesh_firewalls_rules", help, None, float(totals.rules))?;
    let sum = |name: &str| totals.sums.get(name).copied().unwrap_or_default();
    let verdicts = VERDICTS.map(|(name, verdict)| SumRow {
        labels: vec![("verdict", verdict.into())],
        sum: sum(name),
    });
    pair(
        sheet,
        "metalmesh_firewalls",
        "of forwarded traffic by what became of it, since this node leads",
        &verdicts,
    )?;
    let sides = SIDES.map(|(name, [side, direction])| SumRow {
        labels: vec![("side", side.into()), ("direction", direction.into())],
        sum: sum(name),
    });
    pair(
        sheet,
        "metalmesh_firewalls_accounted",
        "of private networks by the other side, since this node leads",
        &sides,
    )
}

/// Packets and bytes of the same rows.
fn pair(sheet: &mut Sheet<'_>, name: &str, what: &str, rows: &[SumRow]) -> fmt::Result {
    sheet.counters(
        &format!("{name}_packets"),
        &format!("Packets {what}"),
        None,
        rows.iter().map(|row| (row.labels.clone(), row.sum.packets)),
    )?;
    sheet.counters(
        &format!("{name}_traffic"),
        &format!("Bytes {what}"),
        Some(Unit::Bytes),
        rows.iter().map(|row| (row.labels.clone(), row.sum.bytes)),
    )
}

#[cfg(test)]
mod tests {
    use base_telemetry::metrics::prometheus_client::encoding::text::encode;
    use base_telemetry::metrics::{Collector, DescriptorEncoder};

    use super::*;

    #[derive(Debug)]
    struct OneScrape(FirewallTotals);

    impl Collector for OneScrape {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            firewalls(&mut Sheet::new(encoder), &self.0)
        }
    }

    #[test]
    fn every_total_is_a_metric() {
        let verdicts = VERDICTS.iter().map(|(name, _)| *name);
        let names = verdicts.chain(SIDES.iter().map(|(name, _)| *name));
        assert!(names.eq(FirewallTotals::NAMES));
    }

    #[test]
    fn sums_have_bounded_labels() {
        let sum = CounterSum {
            packets: 7,
            bytes: 700,
        };
        let mut registry = base_telemetry::metrics::registry("metalmeshd", "1");
        registry.register_collector(Box::new(OneScrape(FirewallTotals {
            reporting: 2,
            rules: 30,
            sums: [("dropped", sum), ("external_out", sum)].into(),
        })));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "metalmesh_firewalls_reporting 2.0",
            "metalmesh_firewalls_rules 30.0",
            "metalmesh_firewalls_packets_total{verdict=\"unmatched\"} 7",
            "metalmesh_firewalls_traffic_bytes_total{verdict=\"unmatched\"} 700",
            "metalmesh_firewalls_accounted_packets_total{side=\"external\",direction=\"out\"} 7",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
