//! Rules that must hold after every command, wherever it is applied first; and the truth about disks,
//! which the state can only believe.
//!
//! Every node of a run applies its commands on the run's thread: the first one to reach a revision has
//! it checked, the others have to come to the same rows.

mod applied;
mod bindings;
mod clean;
mod overtaken;
mod quotas;
mod secrets;
mod tenure;

use std::cell::RefCell;
use std::collections::BTreeMap;

use control_state::{Change, Command, Op, Tables};
use proto_types::MachineId;

use self::applied::Applied;
use self::overtaken::Queue;
use self::quotas::Holdings;
use super::chassis::Disk;

/// Virtual time between two comparisons of whole states, milliseconds.
const COMPARE_EVERY_MS: u64 = 20_000;

thread_local! {
    static LEDGER: RefCell<Ledger> = RefCell::default();
}

/// Numbers that tell how much a run has proved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Commands that changed something.
    pub commands: u64,
    /// Hosts that were bound to claims.
    pub bindings: u64,
    /// Machines that were given to projects.
    pub allocations: u64,
    /// Leases that their date ended.
    pub overrun_leases: u64,
    /// The most hosts that fitted a waiting claim and went to later ones.
    pub overtaken: u32,
    /// Whole states of nodes that were compared.
    pub comparisons: u64,
}

/// All that was applied in a run.
#[derive(Debug, Default)]
struct Ledger {
    /// A checksum over the rows of each revision.
    rows: BTreeMap<u64, u64>,
    /// The digest of the whole state at some revisions.
    states: BTreeMap<u64, Vec<u8>>,
    next_comparison_ms: u64,
    disks: BTreeMap<MachineId, Disk>,
    holdings: Holdings,
    queue: Queue,
    figures: Figures,
    broken: Option<String>,
}

/// Forgets what an earlier run of this thread applied.
pub(crate) fn reset() {
    LEDGER.take();
}

/// Takes note of a command that a node has just applied.
pub(crate) fn note(tables: &Tables, command: &Command, changes: &[Change]) {
    LEDGER.with_borrow_mut(|ledger| {
        let applied = Applied {
            tables,
            command,
            changes,
        };
        if let Err(reason) = ledger.take(&applied) {
            let (revision, name) = (tables.revision(), command.op.name());
            let told = format!("revision {revision}, {name}: {reason}");
            ledger.broken.get_or_insert(told);
        }
    });
}

/// The first thing that does not hold. `None` means that all does.
pub(crate) fn broken() -> Option<String> {
    LEDGER.with_borrow(|ledger| ledger.broken.clone())
}

/// The truth about a disk.
pub(crate) fn disk(machine: MachineId) -> Disk {
    LEDGER.with_borrow(|ledger| ledger.disks.get(&machine).cloned().unwrap_or_default())
}

/// Something was written to a disk, or wiped from it.
pub(crate) fn set_disk(machine: MachineId, disk: Disk) {
    LEDGER.with_borrow_mut(|ledger| ledger.disks.insert(machine, disk));
}

/// `true` once every so often: whole states take a while to compare.
pub(crate) fn is_comparison_due(now_ms: u64) -> bool {
    LEDGER.with_borrow_mut(|ledger| {
        let is_due = now_ms >= ledger.next_comparison_ms;
        if is_due {
            ledger.next_comparison_ms = now_ms + COMPARE_EVERY_MS;
        }
        is_due
    })
}

/// Compares the whole state of a node with what others had at the same revision.
pub(crate) fn compare(node: u64, revision: u64, state: Vec<u8>) -> Result<(), String> {
    LEDGER.with_borrow_mut(|ledger| {
        ledger.figures.comparisons += 1;
        let first = ledger
            .states
            .entry(revision)
            .or_insert_with(|| state.clone());
        if *first == state {
            return Ok(());
        }
        Err(format!(
            "node {node} has another state at revision {revision} than a node before"
        ))
    })
}

/// How much was proved so far.
pub(crate) fn figures() -> Figures {
    LEDGER.with_borrow(|ledger| ledger.figures)
}

impl Ledger {
    fn take(&mut self, applied: &Applied<'_>) -> Result<(), String> {
        if matches!(applied.command.op, Op::Tick(_)) {
            tenure::check_tick(applied)?;
        }
        if applied.changes.is_empty() {
            return Ok(());
        }
        let revision = applied.tables.revision();
        let rows = applied.checksum()?;
        if let Some(first) = self.rows.get(&revision) {
            return match *first == rows {
                true => Ok(()),
                false => Err("two nodes, or one twice, came to different rows".to_owned()),
            };
        }
        self.rows.insert(revision, rows);
        self.count(applied);
        bindings::check(applied)?;
        clean::check(applied, &self.disks)?;
        tenure::check(applied)?;
        secrets::check(applied)?;
        let held = quotas::held(applied.tables);
        self.queue.check(applied, &self.holdings, &held)?;
        self.figures.overtaken = self.figures.overtaken.max(self.queue.most());
        self.holdings.check(applied, held)
    }

    fn count(&mut self, applied: &Applied<'_>) {
        let count = |all: usize| u64::try_from(all).unwrap_or(u64::MAX);
        self.figures.commands += 1;
        self.figures.bindings += count(applied.bindings().count());
        self.figures.allocations += count(applied.allocations().count());
        self.figures.overrun_leases += count(tenure::overrun(applied).count());
    }
}
