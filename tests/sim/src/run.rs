//! One run, from seed to verdict.

use control_store::sim::Bug;

use crate::drive::{Drive, agreed, simulate};
use crate::plan::Plan;
use crate::registers::RegisterWork;
use crate::{cluster, machine};

/// What all nodes have done with snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshots {
    /// Bytes that arrived.
    pub received: u64,
    /// Bytes that did not have to be sent again after a channel broke or a node crashed.
    pub kept: u64,
    /// Crashes of nodes that were receiving or installing one.
    pub interrupted: u64,
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its number.
    pub seed: u64,
    /// The bug that was put back.
    pub bug: Option<Bug>,
    /// A checksum over all that happened.
    pub trace: u64,
    /// What must not happen and did.
    pub failure: Option<String>,
    /// Acknowledged writes.
    pub writes: usize,
    /// Answered reads.
    pub reads: u64,
    /// Events that watchers were told.
    pub events: u64,
    /// What nodes did with snapshots.
    pub snapshots: Snapshots,
    /// Faults.
    pub harms: u64,
    /// How long it lasted, virtual milliseconds.
    pub virtual_ms: u64,
}

impl Report {
    /// The command that shows the same run again.
    pub fn replay(&self) -> String {
        let bug = self.bug.map(|bug| format!(" --bug {}", bug.name()));
        format!("./dev sim --seed {}{}", self.seed, bug.unwrap_or_default())
    }
}

/// Runs one seed. With `is_loud` everything that happens is printed to stderr.
pub fn run(seed: u64, bug: Option<Bug>, is_loud: bool) -> Report {
    simulate(Plan::new(seed), bug, is_loud, whole, |drive| {
        report(drive, bug)
    })
}

fn whole(drive: &mut Drive<RegisterWork>) -> Result<(), String> {
    drive.form()?;
    cluster::start_clients(&mut drive.sim, &drive.world);
    drive.suffer()?;
    drive.converge()?;
    let world = drive.world.borrow();
    let revision = agreed(&world).unwrap_or_default();
    machine::applied(|applied| world.work.oracle.check_end(revision, applied))
}

fn report(drive: &Drive<RegisterWork>, bug: Option<Bug>) -> Report {
    let world = drive.world.borrow();
    Report {
        seed: world.plan.seed,
        bug,
        trace: world.trace.hash(),
        failure: world.failure.clone(),
        writes: world.work.oracle.writes(),
        reads: world.work.oracle.reads,
        events: world.work.seen.events,
        snapshots: world.snapshots,
        harms: drive.nemesis.harms,
        virtual_ms: drive.now_ms(),
    }
}
