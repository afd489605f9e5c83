//! The counters of the kernel, as control gets them.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto_mesh::{FirewallCounter, FirewallCounterKind, FirewallServiceClient, FirewallStatistics};
use tokio::sync::watch;
use tracing::warn;

use crate::monitor::Statistics;
use crate::netlink::CounterValue;

/// Most counters of rules in a report. Those with the most packets are in it.
const RULES_MAX: usize = 4_096;
/// Most counters of each other kind in a report, such as those of networks.
const OTHERS_MAX: usize = 64;

/// Sends each new reading of the counters once: the next one has all of one that was lost.
pub(super) async fn send_statistics(
    client: FirewallServiceClient,
    mut newest: watch::Receiver<Option<Arc<Statistics>>>,
) {
    let mut is_refused = false;
    while newest.changed().await.is_ok() {
        let statistics = newest.borrow_and_update().clone();
        let Some(statistics) = statistics else {
            continue;
        };
        let sent = client.report_statistics(report(&statistics)).await;
        match &sent {
            Err(error) if !is_refused => warn!(%error, "control did not take the counters"),
            _ => {}
        }
        is_refused = sent.is_err();
    }
}

/// A reading as a bounded report.
fn report(found: &Statistics) -> FirewallStatistics {
    use FirewallCounterKind as Kind;
    let total = |name: &str, value: CounterValue| counter(Kind::Total, name, value);
    let (devices, sum) = (&found.devices, Statistics::sum);
    let mut counters = vec![
        total("established", found.established),
        total("accepted", sum(&found.rules.accept)),
        total("denied", sum(&found.rules.drop)),
        total("logged", sum(&found.rules.log)),
        total("dropped", found.dropped),
        total("invalid", found.invalid),
        total("spoofed", found.spoofed),
        total("rate_limited", sum(&found.rate_limited)),
        total("translated", sum(&found.translated)),
        total("internal_in", devices.internal.incoming),
        total("internal_out", devices.internal.outgoing),
        total("external_in", devices.external.incoming),
        total("external_out", devices.external.outgoing),
    ];
    for (kind, list) in [
        (Kind::RateLimited, &found.rate_limited),
        (Kind::Translated, &found.translated),
        (Kind::Input, &found.input),
    ] {
        counters.extend(of_list(kind, list).take(OTHERS_MAX));
    }
    let lists = [
        (Kind::Accept, &found.rules.accept),
        (Kind::Drop, &found.rules.drop),
        (Kind::Log, &found.rules.log),
    ];
    let rules: usize = lists.iter().map(|(_, list)| list.len()).sum();
    let hits = lists
        .into_iter()
        .flat_map(|(kind, list)| of_list(kind, list));
    let mut hits: Vec<FirewallCounter> = hits.filter(|counter| counter.packets > 0).collect();
    hits.sort_by_key(|counter| std::cmp::Reverse(counter.packets));
    let left_out = hits.len().saturating_sub(RULES_MAX);
    hits.truncate(RULES_MAX);
    counters.append(&mut hits);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    FirewallStatistics {
        read_at_ms: found.read_at_ms,
        counters,
        rules: count(rules),
        left_out: count(left_out),
    }
}

fn of_list(
    kind: FirewallCounterKind,
    list: &BTreeMap<String, CounterValue>,
) -> impl Iterator<Item = FirewallCounter> {
    list.iter()
        .map(move |(name, value)| counter(kind, name, *value))
}

fn counter(kind: FirewallCounterKind, name: &str, value: CounterValue) -> FirewallCounter {
    FirewallCounter {
        kind: kind.into(),
        name: name.to_owned(),
        packets: value.packets,
        bytes: value.bytes,
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    /// Largest report that control takes, bytes.
    const LEN_MAX: usize = 768 * 1024;

    #[test]
    fn the_largest_report_fits_and_has_the_rules_that_were_hit_most() {
        let mut found = Statistics::default();
        for number in 0..20_000_u64 {
            // The longest name that the kernel has.
            let name = format!("{number:0>127}");
            let value = CounterValue {
                packets: number,
                bytes: u64::MAX,
            };
            found.rules.accept.insert(name.clone(), value);
            found.input.insert(name, value);
        }
        let report = report(&found);
        assert!(report.encoded_len() < LEN_MAX, "{}", report.encoded_len());
        assert_eq!(report.rules, 20_000);
        assert_eq!(report.left_out, 19_999 - 4_096, "one was never hit");
        let kind = FirewallCounterKind::Accept;
        let mut of_rules = report.counters.iter();
        let first = of_rules.find(|counter| counter.kind() == kind).unwrap();
        assert_eq!(first.packets, 19_999);
    }

    #[test]
    fn rules_that_were_never_hit_are_left_out() {
        let mut found = Statistics::default();
        let zero = CounterValue::default();
        found
            .rules
            .drop
            .insert("firewall/rules/no/0".to_owned(), zero);
        let report = report(&found);
        assert_eq!((report.rules, report.left_out), (1, 0));
        assert_eq!(report.counters.len(), 13, "the totals");
    }
}
