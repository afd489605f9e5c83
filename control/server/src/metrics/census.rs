//! Numbers of machines by partition and state.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use base_telemetry::metrics::{Collector, DescriptorEncoder, Label, Sheet};
use control_state::{Availability, EventLog, Liveliness, Machine, Tables, query};
use control_store::Store;
use proto_types::{MachineId, PartitionId};

/// Machines counted under one lock of the state. Writes wait no longer than this takes.
const AT_ONCE: usize = 512;
/// Maximum partitions with a label of their own. Machines of others count as `other`, which bounds the
/// number of time series.
const PARTITIONS_MAX: usize = 100;

/// Counts the machines at each scrape.
#[derive(Debug)]
pub(super) struct Census(pub(super) Store);

/// Numbers of machines by partition and label value.
type CountsByPartition = BTreeMap<(String, &'static str), u64>;

/// The result of one count.
#[derive(Debug, Default)]
struct MachineCounts {
    phases: CountsByPartition,
    liveliness: CountsByPartition,
    availability: CountsByPartition,
    allocated: CountsByPartition,
}

impl MachineCounts {
    fn add(&mut self, machine: &Machine, log: Option<&EventLog>, partitions: &[PartitionId]) {
        let partition = match &machine.partition {
            None => "none".to_owned(),
            Some(id) if partitions.contains(id) => id.to_string(),
            Some(_) => "other".to_owned(),
        };
        let mut count = |by: fn(&mut Self) -> &mut CountsByPartition, name| {
            *by(self).entry((partition.clone(), name)).or_default() += 1;
        };
        count(|counts| &mut counts.phases, machine.phase.as_str());
        count(|counts| &mut counts.liveliness, liveliness(log));
        count(|counts| &mut counts.availability, availability(machine));
        if machine.allocation.is_some() {
            count(|counts| &mut counts.allocated, "");
        }
    }
}

fn liveliness(log: Option<&EventLog>) -> &'static str {
    match log.map(|log| log.liveliness) {
        Some(Liveliness::Alive) => "alive",
        Some(Liveliness::Dead) => "dead",
        Some(Liveliness::Unknown) => "unknown",
        Some(Liveliness::Unspecified) | None => "never_heard",
    }
}

fn availability(machine: &Machine) -> &'static str {
    match machine.condition.state {
        Availability::Available => "available",
        Availability::Tainted => "tainted",
        Availability::Locked => "locked",
    }
}

impl Census {
    fn partitions(&self) -> Vec<PartitionId> {
        let all = |t: &Tables| {
            let partitions = t.all::<control_state::Partition>();
            let ids = partitions.map(|partition| partition.id.clone());
            ids.take(PARTITIONS_MAX).collect()
        };
        self.0.read_local(all).unwrap_or_default()
    }

    /// Counts all machines, `AT_ONCE` under each lock.
    fn look(&self, partitions: &[PartitionId]) -> MachineCounts {
        let mut found = MachineCounts::default();
        let mut after: Bound<MachineId> = Bound::Unbounded;
        loop {
            let piece = self.0.read_local(|tables| {
                let machines = tables.table::<Machine>().range((after, Bound::Unbounded));
                let mut last = None;
                for (id, machine) in machines.take(AT_ONCE) {
                    let log = tables.get::<EventLog>(id).map(AsRef::as_ref);
                    found.add(&machine.value, log, partitions);
                    last = Some(*id);
                }
                last
            });
            match piece {
                Ok(Some(last)) => after = Bound::Excluded(last),
                Ok(None) | Err(_) => return found,
            }
        }
    }

    fn orders(&self, partitions: &[PartitionId]) -> BTreeMap<String, u64> {
        let read = self.0.read_local(|tables| {
            let mut open: BTreeMap<String, u64> = BTreeMap::new();
            for (partition, count) in query::open_orders(tables) {
                let label = match partitions.contains(partition) {
                    true => partition.to_string(),
                    false => "other".to_owned(),
                };
                *open.entry(label).or_default() += u64::try_from(count).unwrap_or(u64::MAX);
            }
            open
        });
        read.unwrap_or_default()
    }
}

fn labelled(by: CountsByPartition, name: &'static str) -> impl Iterator<Item = (Vec<Label>, f64)> {
    by.into_iter().map(move |((partition, value), count)| {
        let mut labels = vec![("partition", Cow::Owned(partition))];
        if !name.is_empty() {
            labels.push((name, Cow::Borrowed(value)));
        }
        (labels, super::node::float(count))
    })
}

impl Collector for Census {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet::new(encoder);
        let partitions = self.partitions();
        let found = self.look(&partitions);
        sheet.gauges(
            "metalmesh_machines",
            "Machines by where they stand in their life",
            None,
            labelled(found.phases, "phase"),
        )?;
        sheet.gauges(
            "metalmesh_machines_liveliness",
            "Machines by whether they give signs of life",
            None,
            labelled(found.liveliness, "liveliness"),
        )?;
        sheet.gauges(
            "metalmesh_machines_availability",
            "Machines by whether users may have them",
            None,
            labelled(found.availability, "availability"),
        )?;
        sheet.gauges(
            "metalmesh_machines_allocated",
            "Machines that a project has",
            None,
            labelled(found.allocated, ""),
        )?;
        let open = self.orders(&partitions);
        sheet.gauges(
            "metalmesh_bmc_orders_open",
            "Orders to BMCs that have not ended",
            None,
            open.into_iter().map(|(partition, count)| {
                let labels = vec![("partition", Cow::Owned(partition))];
                (labels, super::node::float(count))
            }),
        )
    }
}
