//! Counters of firewalls, and their answers about candidates.

use control_presence::{CandidateEffect, CounterKind, CounterNumber, FirewallNumbers};
use control_state::RefusedRule;
use proto_mesh::{
    FirewallCandidateReport, FirewallCounter, FirewallCounterKind, FirewallRefusal,
    FirewallStatistics,
};
use proto_types::{AllocationId, Timestamp};

/// Longest name of a counter, bytes. The kernel has no longer ones; a counter with one is left out.
const NAME_LEN_MAX: usize = 128;
/// Most refused objects and other parts of an answer that are kept.
const ITEMS_MAX: usize = 64;
/// Longest text of an answer, characters. The rest is cut off.
const TEXT_LEN_MAX: usize = 1_000;

/// The counters of a report.
pub(crate) fn numbers(
    allocation: AllocationId,
    at: Timestamp,
    report: FirewallStatistics,
) -> FirewallNumbers {
    FirewallNumbers {
        allocation,
        at,
        read_at: Timestamp::from_ms(report.read_at_ms),
        counters: report.counters.into_iter().filter_map(counter).collect(),
        rules: report.rules,
        left_out: report.left_out,
    }
}

/// `None` for a kind that only a newer agent knows.
fn counter(counter: FirewallCounter) -> Option<CounterNumber> {
    let kind = match counter.kind() {
        FirewallCounterKind::Unspecified => return None,
        FirewallCounterKind::Total => CounterKind::Total,
        FirewallCounterKind::RateLimited => CounterKind::RateLimited,
        FirewallCounterKind::Translated => CounterKind::Translated,
        FirewallCounterKind::Input => CounterKind::Input,
        FirewallCounterKind::Accept => CounterKind::Accept,
        FirewallCounterKind::Drop => CounterKind::Drop,
        FirewallCounterKind::Log => CounterKind::Log,
    };
    let FirewallCounter {
        name,
        packets,
        bytes,
        ..
    } = counter;
    (name.len() <= NAME_LEN_MAX).then_some(CounterNumber {
        kind,
        name,
        packets,
        bytes,
    })
}

/// The answer of a firewall about a candidate.
pub(crate) fn effect(report: FirewallCandidateReport) -> CandidateEffect {
    let refused = report.refused.into_iter().take(ITEMS_MAX);
    let parts = report.parts.into_iter().take(ITEMS_MAX);
    CandidateEffect {
        added: report.added,
        removed: report.removed,
        changed: report.changed,
        rules: report.rules,
        entries: report.entries,
        parts: parts.map(clipped).collect(),
        refused: refused.map(refused_rule).collect(),
        error: clipped(report.error),
    }
}

fn refused_rule(refused: FirewallRefusal) -> RefusedRule {
    RefusedRule {
        object: clipped(refused.object),
        field: clipped(refused.field),
        problem: clipped(refused.problem),
        remedy: clipped(refused.remedy),
    }
}

fn clipped(text: String) -> String {
    match text.char_indices().nth(TEXT_LEN_MAX) {
        Some((end, _)) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use bolero::check;
    use prost::Message as _;
    use uuid::Uuid;

    use super::*;

    fn allocation() -> AllocationId {
        AllocationId::new(Uuid::from_u128(1))
    }

    /// The kept part of a report is bounded, and nothing else is kept.
    fn assert_kept(report: FirewallStatistics) {
        let sent = report.counters.clone();
        let kept = numbers(allocation(), Timestamp::from_ms(7), report);
        assert!(kept.counters.len() <= sent.len());
        for counter in &kept.counters {
            assert!(counter.name.len() <= NAME_LEN_MAX);
            let is_sent = |sent: &FirewallCounter| {
                let counts = (sent.packets, sent.bytes);
                sent.name == counter.name && counts == (counter.packets, counter.bytes)
            };
            assert!(sent.iter().any(is_sent), "{counter:?}");
        }
    }

    fn assert_bounded(report: FirewallCandidateReport) {
        let (added, entries) = (report.added, report.entries);
        let effect = effect(report);
        assert_eq!((effect.added, effect.entries), (added, entries));
        assert!(effect.refused.len() <= ITEMS_MAX && effect.parts.len() <= ITEMS_MAX);
        let refused = effect.refused.iter();
        let texts = refused.flat_map(|rule| {
            [&rule.object, &rule.field, &rule.problem, &rule.remedy].map(String::as_str)
        });
        let others = effect.parts.iter().chain([&effect.error]);
        for text in texts.chain(others.map(String::as_str)) {
            assert!(text.chars().count() <= TEXT_LEN_MAX);
        }
    }

    #[test]
    fn fuzz_firewall_statistics() {
        check!().for_each(|bytes: &[u8]| {
            if let Ok(report) = FirewallStatistics::decode(bytes) {
                assert_kept(report);
            }
        });
    }

    #[test]
    fn fuzz_firewall_counters() {
        check!()
            .with_type::<Vec<(i8, String, u64)>>()
            .for_each(|counters| {
                let counter = |(kind, name, count): &(i8, String, u64)| FirewallCounter {
                    kind: (*kind).into(),
                    // Also names around the bound.
                    name: name.repeat(usize::from(kind.unsigned_abs())),
                    packets: *count,
                    bytes: count.rotate_left(7),
                };
                assert_kept(FirewallStatistics {
                    counters: counters.iter().map(counter).collect(),
                    ..FirewallStatistics::default()
                });
            });
    }

    #[test]
    fn fuzz_firewall_candidate_report() {
        check!().for_each(|bytes: &[u8]| {
            if let Ok(report) = FirewallCandidateReport::decode(bytes) {
                assert_bounded(report);
            }
        });
    }

    #[test]
    fn fuzz_firewall_candidate_texts() {
        check!()
            .with_type::<(Vec<String>, u16)>()
            .for_each(|(texts, count)| {
                let text = |at: usize| {
                    let text = texts.get(at % texts.len().max(1));
                    text.map(|text| text.repeat(usize::from(count % 512)))
                        .unwrap_or_default()
                };
                let refused = (0..texts.len()).map(|at| FirewallRefusal {
                    object: text(at),
                    field: text(at + 1),
                    problem: text(at + 2),
                    remedy: text(at + 3),
                });
                let refused: Vec<FirewallRefusal> = refused.collect();
                let many = texts.len() * usize::from(count % 8);
                assert_bounded(FirewallCandidateReport {
                    refused: refused.iter().cycle().take(many).cloned().collect(),
                    parts: texts.iter().cycle().take(many).cloned().collect(),
                    error: text(0),
                    ..FirewallCandidateReport::default()
                });
            });
    }

    #[test]
    fn what_an_agent_sends_is_bounded() {
        let counter = |kind: FirewallCounterKind, name: String| FirewallCounter {
            kind: kind.into(),
            name,
            packets: 1,
            bytes: 2,
        };
        let report = FirewallStatistics {
            counters: vec![
                counter(FirewallCounterKind::Accept, "a".repeat(NAME_LEN_MAX)),
                counter(FirewallCounterKind::Accept, "a".repeat(NAME_LEN_MAX + 1)),
                counter(FirewallCounterKind::Unspecified, "of a newer agent".into()),
            ],
            ..FirewallStatistics::default()
        };
        let kept = numbers(allocation(), Timestamp::from_ms(7), report);
        assert_eq!(kept.counters.len(), 1);
        let refused = FirewallRefusal {
            problem: "ä".repeat(5_000),
            ..FirewallRefusal::default()
        };
        let report = FirewallCandidateReport {
            refused: vec![refused; 100],
            parts: vec!["networks".into(); 100],
            ..FirewallCandidateReport::default()
        };
        let effect = effect(report);
        assert_eq!(effect.refused.len(), ITEMS_MAX);
        assert_eq!(effect.refused[0].problem.chars().count(), TEXT_LEN_MAX);
        assert_eq!(effect.parts.len(), ITEMS_MAX);
    }
}
