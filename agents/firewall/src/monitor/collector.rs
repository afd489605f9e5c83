use std::fmt;

use base_telemetry::metrics::{Collector, DescriptorEncoder, Label, Sheet, Unit};

use super::{Sampler, Statistics};
use crate::netlink::CounterValue;

/// Writes the last reading of the counters at each scrape. Rules have no labels of their own: there
/// may be ten thousand, and their names are the tenant's.
#[derive(Debug)]
pub struct FirewallCollector(pub Sampler);

impl Collector for FirewallCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet::new(encoder);
        let found = self.0.last();
        let rows = verdicts(&found);
        sheet.counters(
            "metalmesh_firewall_packets",
            "Packets by what became of them: of a flow only the first one is decided by a rule",
            None,
            rows.iter().map(|row| (row.labels(), row.value.packets)),
        )?;
        sheet.counters(
            "metalmesh_firewall_traffic",
            "Bytes of packets by what became of them",
            Some(Unit::Bytes),
            rows.iter().map(|row| (row.labels(), row.value.bytes)),
        )?;
        let sides = sides(&found);
        sheet.counters(
            "metalmesh_firewall_accounted_packets",
            "Packets of private networks by the other side, before any rule",
            None,
            sides.iter().map(|row| (row.labels(), row.value.packets)),
        )?;
        sheet.counters(
            "metalmesh_firewall_accounted",
            "Bytes of private networks by the other side, before any rule",
            Some(Unit::Bytes),
            sides.iter().map(|row| (row.labels(), row.value.bytes)),
        )?;
        let rules = &found.rules;
        let counts = [
            ("accept", rules.accept.len()),
            ("drop", rules.drop.len()),
            ("log", rules.log.len()),
        ];
        sheet.gauges(
            "metalmesh_firewall_rules",
            "Rules in force",
            None,
            counts.map(|(action, count)| (vec![("action", action.into())], float(count))),
        )
    }
}

/// A value with its labels.
struct Row {
    names: &'static [(&'static str, &'static str)],
    value: CounterValue,
}

impl Row {
    fn labels(&self) -> Vec<Label> {
        let names = self.names.iter();
        names
            .map(|(name, value)| (*name, (*value).into()))
            .collect()
    }
}

fn verdicts(found: &Statistics) -> [Row; 9] {
    let sum = Statistics::sum;
    let row = |names, value| Row { names, value };
    [
        row(&[("verdict", "established")], found.established),
        row(&[("verdict", "accepted")], sum(&found.rules.accept)),
        row(&[("verdict", "denied")], sum(&found.rules.drop)),
        row(&[("verdict", "logged")], sum(&found.rules.log)),
        row(&[("verdict", "unmatched")], found.dropped),
        row(&[("verdict", "spoofed")], found.spoofed),
        row(&[("verdict", "invalid")], found.invalid),
        row(&[("verdict", "rate_limited")], sum(&found.rate_limited)),
        row(&[("verdict", "translated")], sum(&found.translated)),
    ]
}

fn sides(found: &Statistics) -> [Row; 4] {
    let row = |names, value| Row { names, value };
    let devices = &found.devices;
    [
        row(
            &[("side", "internal"), ("direction", "in")],
            devices.internal.incoming,
        ),
        row(
            &[("side", "internal"), ("direction", "out")],
            devices.internal.outgoing,
        ),
        row(
            &[("side", "external"), ("direction", "in")],
            devices.external.incoming,
        ),
        row(
            &[("side", "external"), ("direction", "out")],
            devices.external.outgoing,
        ),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows floats only")]
fn float(count: usize) -> f64 {
    count as f64
}
