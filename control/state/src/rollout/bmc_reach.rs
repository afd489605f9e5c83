//! The BMCs that the agents of a partition reach during a rollout to them, beside those that they reached
//! when it began: from the readings that control has stored, and not from what an agent says of itself.

use std::collections::BTreeMap;

use proto_types::Timestamp;

use crate::machine::entity::{BMC_SILENT_AFTER_MS, Bmc, Machine};
use crate::tables::Tables;

/// BMCs of one partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BmcReach {
    /// Those that were reached when the rollout began.
    before: usize,
    /// Those among them that are not reached any more.
    lost: usize,
}

impl BmcReach {
    /// Counts a BMC. `since` is the begin of the rollout. One that nobody reached then says nothing of the
    /// release.
    fn count(&mut self, bmc: &Bmc, since: Timestamp) {
        let failing_since = bmc.error.as_ref().and(bmc.failing_since);
        let was_reached = match failing_since {
            Some(at) => at >= since,
            None => since.since_ms(bmc.read_at()) < BMC_SILENT_AFTER_MS,
        };
        if bmc.was_read() && was_reached {
            self.before += 1;
            self.lost += usize::from(failing_since.is_some() || bmc.unreached);
        }
    }

    /// The reason why the partition's agents are not healthy. `None` means that they reach half of the
    /// BMCs from before.
    pub(super) fn ailment(&self) -> Option<String> {
        let Self { before, lost } = self;
        let reached = before.saturating_sub(*lost);
        let is_ill = reached.saturating_mul(2) < *before;
        is_ill.then(|| {
            format!(
                "{reached} of the {before} BMCs that were reached before the rollout are reached"
            )
        })
    }
}

/// The BMCs of each partition, by its id.
pub(super) fn bmc_reach(tables: &Tables, since: Timestamp) -> BTreeMap<&str, BmcReach> {
    let mut found = BTreeMap::<&str, BmcReach>::new();
    for machine in tables.all::<Machine>() {
        if let (Some(partition), Some(bmc)) = (&machine.partition, &machine.bmc) {
            let reach = found.entry(partition.as_str()).or_default();
            reach.count(bmc, since);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begin of the rollout, milliseconds.
    const BEGIN_MS: u64 = 100_000_000;

    fn bmc(read_ms: u64, failing_since_ms: Option<u64>, unreached: bool) -> Bmc {
        Bmc {
            error: failing_since_ms.map(|_| "timeout".to_owned()),
            updated_at: Timestamp::from_ms(read_ms),
            failing_since: failing_since_ms.map(Timestamp::from_ms),
            unreached,
            ..Bmc::default()
        }
    }

    #[test]
    fn a_bmc_counts_if_it_was_reached_when_the_rollout_began() {
        let silent_ms = BEGIN_MS - BMC_SILENT_AFTER_MS;
        for (what, bmc, before, lost) in [
            ("never read", Bmc::default(), 0, 0),
            ("read", bmc(BEGIN_MS + 5, None, false), 1, 0),
            ("read before", bmc(silent_ms + 1, None, false), 1, 0),
            ("silent since", bmc(silent_ms + 1, None, true), 1, 1),
            ("silent before", bmc(silent_ms, None, true), 0, 0),
            ("fails", bmc(BEGIN_MS + 5, Some(BEGIN_MS), false), 1, 1),
            ("failed", bmc(BEGIN_MS + 5, Some(BEGIN_MS - 1), true), 0, 0),
        ] {
            let mut reach = BmcReach::default();
            reach.count(&bmc, Timestamp::from_ms(BEGIN_MS));
            assert_eq!(reach, BmcReach { before, lost }, "{what}");
        }
    }

    #[test]
    fn agents_that_lose_more_than_half_of_the_bmcs_are_not_healthy() {
        for (before, lost, is_healthy) in [
            (0, 0, true),
            (1, 0, true),
            (1, 1, false),
            (4, 2, true),
            (4, 3, false),
            (5, 2, true),
            (5, 3, false),
        ] {
            let found = BmcReach { before, lost }.ailment();
            assert_eq!(found.is_none(), is_healthy, "{before} {lost}: {found:?}");
        }
    }
}
