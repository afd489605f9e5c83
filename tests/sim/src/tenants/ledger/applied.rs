//! A command that was applied, as invariants look at it.

use control_state::{Change, Claim, Command, Kind, Machine, PoolHost, Record, Tables};

/// A command and the state after it.
pub(super) struct Applied<'a> {
    pub(super) tables: &'a Tables,
    pub(super) command: &'a Command,
    pub(super) changes: &'a [Change],
}

/// An object before and after a command. `None` means that it was not there.
pub(super) struct Changed<'a, T> {
    pub(super) before: Option<&'a T>,
    pub(super) after: Option<&'a T>,
}

/// Start and factor of the checksum (FNV-1a).
const START: u64 = 0xcbf2_9ce4_8422_2325;
const FACTOR: u64 = 0x0100_0000_01b3;

fn fold(sum: u64, bytes: &[u8]) -> u64 {
    let bytes = bytes.iter();
    bytes.fold(sum, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(FACTOR)
    })
}

impl<'a> Applied<'a> {
    /// A checksum over command and rows.
    pub(super) fn checksum(&self) -> Result<u64, String> {
        let mut sum = fold(START, self.command.op.name().as_bytes());
        sum = fold(sum, &self.command.now.ms().to_be_bytes());
        for change in self.changes {
            sum = fold(sum, change.kind.as_str().as_bytes());
            sum = fold(sum, change.key.as_bytes());
            sum = match &change.record {
                Some(record) => fold(sum, &record.encode().map_err(|error| error.to_string())?),
                None => fold(sum, b"-"),
            };
        }
        Ok(sum)
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &'a Change> {
        self.changes
            .iter()
            .filter(move |change| change.kind == kind)
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = Changed<'a, PoolHost>> {
        self.of_kind(Kind::PoolHost).map(|change| Changed {
            before: change.before.as_ref().and_then(host),
            after: change.record.as_ref().and_then(host),
        })
    }

    pub(super) fn machines(&self) -> impl Iterator<Item = Changed<'a, Machine>> {
        self.of_kind(Kind::Machine).map(|change| Changed {
            before: change.before.as_ref().and_then(machine),
            after: change.record.as_ref().and_then(machine),
        })
    }

    pub(super) fn claims(&self) -> impl Iterator<Item = Changed<'a, Claim>> {
        self.of_kind(Kind::Claim).map(|change| Changed {
            before: change.before.as_ref().and_then(claim),
            after: change.record.as_ref().and_then(claim),
        })
    }

    /// Hosts that were bound by the command, as they were before and are.
    pub(super) fn bindings(&self) -> impl Iterator<Item = Changed<'a, PoolHost>> {
        self.hosts().filter(|host| {
            let claim = |host: Option<&PoolHost>| Some(host?.binding.as_ref()?.claim);
            claim(host.after).is_some() && claim(host.after) != claim(host.before)
        })
    }

    /// Machines that were given to a project by the command.
    pub(super) fn allocations(&self) -> impl Iterator<Item = &'a Machine> {
        self.machines().filter_map(|machine| {
            let allocation = |machine: Option<&Machine>| Some(machine?.allocation.as_ref()?.id);
            let is_new = allocation(machine.after) != allocation(machine.before);
            machine
                .after
                .filter(|after| is_new && after.allocation.is_some())
        })
    }
}

fn host(record: &Record) -> Option<&PoolHost> {
    match record {
        Record::PoolHost(host) => Some(host),
        _ => None,
    }
}

fn machine(record: &Record) -> Option<&Machine> {
    match record {
        Record::Machine(machine) => Some(machine),
        _ => None,
    }
}

fn claim(record: &Record) -> Option<&Claim> {
    match record {
        Record::Claim(claim) => Some(claim),
        _ => None,
    }
}
