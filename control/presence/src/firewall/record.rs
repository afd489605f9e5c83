use std::collections::BTreeMap;

use proto_types::{AllocationId, MachineId, Timestamp};

use super::{CounterKind, CounterSum, FirewallNumbers, FirewallTotals, ReportOutcome};

/// Shortest time between two reports of a firewall that are kept, milliseconds. Agents report every
/// ten seconds.
const PAUSE_MS: u64 = 5_000;
/// Time after which a firewall counts as silent, milliseconds.
const SILENT_MS: u64 = 60_000;
/// Time between two removals of counters whose allocation ended, milliseconds.
const SWEEP_MS: u64 = 60_000;
/// Most firewalls that are remembered. Further ones are left out.
const FIREWALLS_MAX: usize = 10_000;
/// Most counters of one firewall that are not of rules. An agent sends the totals, and 64 of each
/// other kind.
const OTHERS_MAX: usize = 256;
/// Most counters of one firewall that are kept. Those of rules go first, the least used ones before
/// the others.
const COUNTERS_MAX: usize = OTHERS_MAX + 4_096;
/// Most counters of rules of all firewalls together, some 150 bytes each. Beyond it only the other
/// counters of a report are kept.
const RULE_COUNTERS_MAX: usize = 1_000_000;
/// Largest growth of a total in a millisecond that counts: 400 Gbit/s, in the smallest frames. More
/// is no traffic, and one report of it would hide the growth of all others in the sums for ever.
const GROWTH_MAX: CounterSum = CounterSum {
    packets: 600_000,
    bytes: 50_000_000,
};

/// An allocation of a machine as a firewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirewallAllocation {
    pub(crate) machine: MachineId,
    pub(crate) allocation: AllocationId,
}

/// The last counters of all firewalls.
#[derive(Debug, Default)]
pub(super) struct FirewallRecord {
    numbers: BTreeMap<MachineId, FirewallNumbers>,
    /// Number of counters of rules in `numbers`.
    rule_counters: usize,
    sums: BTreeMap<&'static str, CounterSum>,
    swept: Timestamp,
}

impl FirewallRecord {
    /// Keeps the counters of a report.
    pub(super) fn keep(
        &mut self,
        machine: MachineId,
        mut numbers: FirewallNumbers,
    ) -> ReportOutcome {
        let old = self.numbers.get(&machine);
        let old = old.filter(|old| old.allocation == numbers.allocation);
        if old.is_some_and(|old| numbers.at.ms() < old.at.ms().saturating_add(PAUSE_MS)) {
            return ReportOutcome::TooSoon;
        }
        let growth = old.map(|old| growth(old, &numbers));
        for (name, grown) in growth.into_iter().flatten() {
            let sum = self.sums.entry(name).or_default();
            sum.packets = sum.packets.saturating_add(grown.packets);
            sum.bytes = sum.bytes.saturating_add(grown.bytes);
        }
        self.remove(machine);
        if self.numbers.len() >= FIREWALLS_MAX {
            return ReportOutcome::NoRoom;
        }
        let room = RULE_COUNTERS_MAX.saturating_sub(self.rule_counters);
        cut(&mut numbers, room);
        self.rule_counters += rule_counters(&numbers);
        self.numbers.insert(machine, numbers);
        ReportOutcome::Kept
    }

    /// The last counters of a firewall.
    pub(super) fn of(&self, machine: MachineId) -> Option<FirewallNumbers> {
        self.numbers.get(&machine).cloned()
    }

    /// The allocations whose counters are kept, if it is time to remove those that ended.
    pub(super) fn begin_sweep(&mut self, now: Timestamp) -> Option<Vec<FirewallAllocation>> {
        if now.ms() < self.swept.ms().saturating_add(SWEEP_MS) {
            return None;
        }
        self.swept = now;
        let numbers = self.numbers.iter();
        let all = numbers.map(|(machine, numbers)| FirewallAllocation {
            machine: *machine,
            allocation: numbers.allocation,
        });
        Some(all.collect())
    }

    /// Removes the counters of allocations that ended.
    pub(super) fn end_sweep(&mut self, ended: &[FirewallAllocation]) {
        for gone in ended {
            let kept = self.numbers.get(&gone.machine);
            // The next allocation may have reported meanwhile.
            if kept.is_some_and(|kept| kept.allocation == gone.allocation) {
                self.remove(gone.machine);
            }
        }
    }

    pub(super) fn totals(&self, now: Timestamp) -> FirewallTotals {
        let is_heard =
            |numbers: &&FirewallNumbers| now.ms() < numbers.at.ms().saturating_add(SILENT_MS);
        let heard = || self.numbers.values().filter(is_heard);
        FirewallTotals {
            reporting: heard().count(),
            rules: heard().map(|numbers| u64::from(numbers.rules)).sum(),
            sums: self.sums.clone(),
        }
    }

    fn remove(&mut self, machine: MachineId) {
        if let Some(gone) = self.numbers.remove(&machine) {
            self.rule_counters -= rule_counters(&gone);
        }
    }
}

fn rule_counters(numbers: &FirewallNumbers) -> usize {
    let of_rules = numbers.counters.iter();
    of_rules.filter(|counter| counter.kind.is_of_rule()).count()
}

/// Leaves out the counters beyond the bounds. `room` is for those of rules.
fn cut(numbers: &mut FirewallNumbers, room: usize) {
    numbers.counters.sort_by_key(|counter| {
        (
            counter.kind.is_of_rule(),
            std::cmp::Reverse(counter.packets),
        )
    });
    let others = numbers.counters.len() - rule_counters(numbers);
    numbers.counters.drain(OTHERS_MAX.min(others)..others);
    let others = others.min(OTHERS_MAX);
    let most = COUNTERS_MAX.min(others.saturating_add(room));
    let cut = rule_counters(numbers).min(numbers.counters.len().saturating_sub(most));
    numbers.counters.truncate(most);
    let cut = u32::try_from(cut).unwrap_or(u32::MAX);
    numbers.left_out = numbers.left_out.saturating_add(cut);
}

/// The growth of the totals between two reports. A counter that began anew, after a boot, has grown
/// by nothing: what it counted since then is lost to the sum, and nothing counts twice.
fn growth(old: &FirewallNumbers, new: &FirewallNumbers) -> Vec<(&'static str, CounterSum)> {
    let value = |numbers: &FirewallNumbers, name: &str| {
        let counters = numbers.counters.iter();
        let mut totals = counters.filter(|counter| counter.kind == CounterKind::Total);
        let found = totals.find(|counter| counter.name == name);
        found.map(|counter| CounterSum {
            packets: counter.packets,
            bytes: counter.bytes,
        })
    };
    let elapsed_ms = new.at.ms().saturating_sub(old.at.ms());
    let bounded = |old: u64, new: u64, max: u64| {
        let grown = new.saturating_sub(old);
        grown.min(max.saturating_mul(elapsed_ms))
    };
    let grown = |name: &'static str| {
        let (old, new) = (value(old, name)?, value(new, name)?);
        let grown = CounterSum {
            packets: bounded(old.packets, new.packets, GROWTH_MAX.packets),
            bytes: bounded(old.bytes, new.bytes, GROWTH_MAX.bytes),
        };
        Some((name, grown))
    };
    let names = FirewallTotals::NAMES.into_iter();
    names.filter_map(grown).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::CounterNumber;

    fn id<T: From<Uuid>>(number: u128) -> T {
        T::from(Uuid::from_u128(number))
    }

    fn counter(kind: CounterKind, name: &str, packets: u64) -> CounterNumber {
        CounterNumber {
            kind,
            name: name.to_owned(),
            packets,
            bytes: packets.saturating_mul(100),
        }
    }

    fn numbers(at_ms: u64, counters: Vec<CounterNumber>) -> FirewallNumbers {
        FirewallNumbers {
            allocation: id(1),
            at: Timestamp::from_ms(at_ms),
            read_at: Timestamp::from_ms(at_ms),
            counters,
            rules: 7,
            left_out: 0,
        }
    }

    fn dropped(packets: u64) -> Vec<CounterNumber> {
        let foreign = counter(CounterKind::Total, "made_up", packets);
        vec![counter(CounterKind::Total, "dropped", packets), foreign]
    }

    fn keep(record: &mut FirewallRecord, machine: MachineId, numbers: FirewallNumbers) -> bool {
        record.keep(machine, numbers) == ReportOutcome::Kept
    }

    #[test]
    fn firewalls_beyond_the_bound_are_left_out() {
        let mut record = FirewallRecord::default();
        for machine in 0..FIREWALLS_MAX {
            let machine = id(u128::try_from(machine).unwrap());
            assert!(keep(&mut record, machine, numbers(0, Vec::new())));
        }
        let another = id(u128::MAX);
        let left_out = record.keep(another, numbers(0, Vec::new()));
        assert_eq!(left_out, ReportOutcome::NoRoom);
        assert!(keep(&mut record, id(7), numbers(PAUSE_MS, Vec::new())));
    }

    #[test]
    fn sums_grow_with_the_counters_and_never_shrink() {
        let mut record = FirewallRecord::default();
        assert!(keep(&mut record, id(1), numbers(0, dropped(1_000))));
        let early = record.keep(id(1), numbers(PAUSE_MS - 1, dropped(2_000)));
        assert_eq!(early, ReportOutcome::TooSoon);
        assert!(keep(&mut record, id(1), numbers(10_000, dropped(1_030))));
        assert!(keep(&mut record, id(2), numbers(10_000, dropped(5))));
        // A boot, and what comes after it.
        assert!(keep(&mut record, id(1), numbers(20_000, dropped(10))));
        assert!(keep(&mut record, id(1), numbers(30_000, dropped(14))));
        let totals = record.totals(Timestamp::from_ms(30_001));
        let sum = CounterSum {
            packets: 34,
            bytes: 3_400,
        };
        assert_eq!(totals.sums, [("dropped", sum)].into());
        assert_eq!((totals.reporting, totals.rules), (2, 14));
        assert_eq!(record.totals(Timestamp::from_ms(90_000)).reporting, 0);
    }

    #[test]
    fn one_report_does_not_hide_the_growth_of_others() {
        let mut record = FirewallRecord::default();
        assert!(keep(&mut record, id(1), numbers(0, dropped(0))));
        assert!(keep(&mut record, id(1), numbers(10_000, dropped(u64::MAX))));
        let totals = record.totals(Timestamp::from_ms(10_000));
        let sum = totals.sums["dropped"];
        assert_eq!(sum.packets, 10_000 * GROWTH_MAX.packets);
        assert_eq!(sum.bytes, 10_000 * GROWTH_MAX.bytes);
    }

    #[test]
    fn counters_of_other_kinds_are_bounded() {
        let mut record = FirewallRecord::default();
        let others = (0..10_000).map(|packets| counter(CounterKind::Input, "ssh", packets));
        let rules = (0..5).map(|packets| counter(CounterKind::Drop, "rule", packets));
        assert!(keep(
            &mut record,
            id(1),
            numbers(0, others.chain(rules).collect())
        ));
        let kept = record.of(id(1)).unwrap();
        assert_eq!(kept.counters.len(), OTHERS_MAX + 5);
        assert_eq!((kept.left_out, record.rule_counters), (0, 5));
    }

    #[test]
    fn what_one_firewall_can_fill_is_bounded() {
        let mut record = FirewallRecord::default();
        let rules = (0..10_000).map(|packets| counter(CounterKind::Drop, "rule", packets));
        let all = rules.chain(dropped(1)).collect();
        assert!(keep(&mut record, id(1), numbers(0, all)));
        let kept = record.of(id(1)).unwrap();
        assert_eq!(kept.counters.len(), COUNTERS_MAX);
        assert_eq!(kept.left_out, 10_002 - u32::try_from(COUNTERS_MAX).unwrap());
        assert_eq!(kept.counters[0].name, "dropped");
        assert_eq!(
            kept.counters[2].packets, 9_999,
            "those with the most packets stay"
        );
        assert_eq!(record.rule_counters, COUNTERS_MAX - 2);
    }

    #[test]
    fn counters_end_with_the_allocation() {
        let mut record = FirewallRecord::default();
        assert!(keep(&mut record, id(1), numbers(0, dropped(9))));
        let now = Timestamp::from_ms(SWEEP_MS);
        let kept = record.begin_sweep(now).unwrap();
        let ended = FirewallAllocation {
            machine: id(1),
            allocation: id(1),
        };
        assert_eq!(kept, [ended]);
        assert_eq!(record.begin_sweep(now), None, "too early");
        let next = FirewallAllocation {
            allocation: id(2),
            ..ended
        };
        record.end_sweep(&[next]);
        assert!(record.of(id(1)).is_some());
        record.end_sweep(&[ended]);
        assert_eq!(record.of(id(1)), None);
        assert_eq!(record.rule_counters, 0);
    }
}
