//! What really happened to each machine, held against what control does with it.
//!
//! - A machine is one tenancy's at a time.
//! - A machine that is allocated has only disks that were wiped since anybody could write to them.
//! - An installation is begun once for each attempt, and only on the machine that it is for.
//! - A tenant's disks are wiped only after the tenant gave the machine back, and its power is cut
//!   only then or when somebody asked for it.
//! - Where the partition demands it, a machine joins with what its own BMC holds, and with each such
//!   nonce once.
//! - A BMC carries out a restart as often as it was ordered, and hears its own agent only.
//!
//! The first violation ends the run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Notes kept of one machine.
const NOTES_MAX: usize = 60;

/// Something that must never be.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) what: String,
    pub(crate) machine: Uuid,
    /// What happened to the machine, oldest first.
    pub(crate) history: Vec<String>,
}

/// Who has a machine, as its tenant knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tenancy {
    None,
    Has(Uuid),
    /// The tenant asked to give it back.
    Leaves(Uuid),
}

/// What is on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// From before the run.
    Unknown,
    Clean,
    Of(Uuid),
}

#[derive(Debug)]
struct Fact {
    uuid: Uuid,
    tenancy: Tenancy,
    disks: Vec<Content>,
    /// Attempts of allocations that were begun here, and in which boot.
    installs: BTreeSet<(Uuid, u32, Uuid)>,
    /// Nonces that it joined with.
    nonces: BTreeSet<String>,
    restarts_ordered: u64,
    restarts_done: u64,
    notes: VecDeque<String>,
}

/// All machines' histories and the checks that were made.
#[derive(Debug)]
pub(crate) struct Truth {
    began: Instant,
    facts: Vec<Mutex<Fact>>,
    /// On which machine an allocation was installed.
    places: Mutex<BTreeMap<Uuid, usize>>,
    checks: Mutex<BTreeMap<&'static str, u64>>,
    violation: Mutex<Option<Violation>>,
    /// Cancelled by the first violation.
    pub(crate) violated: CancellationToken,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Truth {
    pub(crate) fn new(machines: impl Iterator<Item = Uuid>, disks: usize) -> Self {
        let fact = |uuid| Fact {
            uuid,
            tenancy: Tenancy::None,
            disks: vec![Content::Unknown; disks],
            installs: BTreeSet::new(),
            nonces: BTreeSet::new(),
            restarts_ordered: 0,
            restarts_done: 0,
            notes: VecDeque::new(),
        };
        Self {
            began: Instant::now(),
            facts: machines.map(|uuid| Mutex::new(fact(uuid))).collect(),
            places: Mutex::default(),
            checks: Mutex::default(),
            violation: Mutex::default(),
            violated: CancellationToken::new(),
        }
    }

    /// How often each invariant was checked.
    pub(crate) fn checks(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.checks).clone()
    }

    /// The first violation.
    pub(crate) fn violation(&self) -> Option<Violation> {
        lock(&self.violation).clone()
    }

    /// Whether some tenant has the machine now.
    pub(crate) fn is_taken(&self, machine: usize) -> bool {
        let is_taken = |fact: &Mutex<Fact>| matches!(lock(fact).tenancy, Tenancy::Has(_));
        self.facts.get(machine).is_some_and(is_taken)
    }

    /// Something worth telling, should it come to that.
    pub(crate) fn note(&self, machine: usize, note: impl Into<String>) {
        self.with(machine, |fact, at| fact.note(at, note.into()));
    }

    /// What happened to a machine, oldest first.
    pub(crate) fn history(&self, machine: usize) -> Vec<String> {
        let of = |fact: &Mutex<Fact>| lock(fact).notes.iter().cloned().collect();
        self.facts.get(machine).map(of).unwrap_or_default()
    }

    /// Control let a machine join that has to show what its BMC holds.
    pub(crate) fn joined(&self, machine: usize, shown: &str, held: &str) {
        self.with(machine, |fact, at| {
            fact.note(at, "joined with its BMC's nonce".into());
            if shown.is_empty() || shown != held {
                let what = format!("joined with \"{shown}\" while its BMC holds \"{held}\"");
                self.violated(fact, what);
            } else if !fact.nonces.insert(shown.to_owned()) {
                self.violated(fact, format!("joined with \"{shown}\" a second time"));
            }
            self.count("no machine joined without its BMC's nonce");
        });
    }

    /// Control said that a tenant has the machine now.
    pub(crate) fn allocated(&self, machine: usize, allocation: Uuid) {
        self.with(machine, |fact, at| {
            fact.note(at, format!("allocated as {allocation}"));
            if let Tenancy::Has(other) = fact.tenancy
                && other != allocation
            {
                self.violated(
                    fact,
                    format!("allocated as {allocation} while it is {other}"),
                );
            }
            self.count("no double allocation");
            // Its installation may have begun before the tenant had the answer.
            let mine = [Content::Clean, Content::Of(allocation)];
            if let Some(disk) = fact.disks.iter().position(|disk| !mine.contains(disk)) {
                let found = fact.disks.get(disk).copied();
                self.violated(
                    fact,
                    format!("allocated with disk {disk} not wiped: {found:?}"),
                );
            }
            self.count("no dirty machine offered");
            fact.tenancy = Tenancy::Has(allocation);
        });
        self.placed(machine, allocation);
    }

    /// The tenant asks to give it back.
    pub(crate) fn leaves(&self, machine: usize) {
        self.with(machine, |fact, at| {
            fact.note(at, "its tenant gives it back".into());
            if let Tenancy::Has(allocation) = fact.tenancy {
                fact.tenancy = Tenancy::Leaves(allocation);
            }
        });
    }

    /// Somebody put another disk in the place of one; what is on it nobody knows.
    pub(crate) fn replaced(&self, machine: usize, disk: usize) {
        self.with(machine, |fact, at| {
            fact.note(at, format!("disk {disk} replaced"));
            if let Some(content) = fact.disks.get_mut(disk) {
                *content = Content::Unknown;
            }
        });
    }

    /// A disk was wiped on control's order.
    pub(crate) fn wiped(&self, machine: usize, disk: usize) {
        self.with(machine, |fact, at| {
            fact.note(at, format!("disk {disk} wiped"));
            let content = fact.disks.get(disk).copied();
            if let (Tenancy::Has(tenant), Some(Content::Of(owner))) = (fact.tenancy, content)
                && tenant == owner
            {
                self.violated(fact, format!("disk {disk} of tenant {tenant} was wiped"));
            }
            self.count("no tenant's disk wiped");
            if let Some(content) = fact.disks.get_mut(disk) {
                *content = Content::Clean;
            }
        });
    }

    /// An installation begins on control's order: from now on the disks may hold its data.
    ///
    /// A machine that loses its power before it could say that it had begun is told the same
    /// attempt again in its next boot.
    pub(crate) fn installs(&self, machine: usize, (allocation, attempt): (Uuid, u32), boot: Uuid) {
        self.with(machine, |fact, at| {
            fact.note(
                at,
                format!("install order of {allocation}, attempt {attempt}"),
            );
            if !fact.installs.insert((allocation, attempt, boot)) {
                self.violated(
                    fact,
                    format!("attempt {attempt} of {allocation} was begun twice"),
                );
            }
            self.count("no order executed twice");
            let mine = [Content::Clean, Content::Of(allocation)];
            if fact.disks.iter().any(|disk| !mine.contains(disk)) {
                self.violated(
                    fact,
                    format!("{allocation} is installed beside others' data"),
                );
            }
            match fact.tenancy {
                Tenancy::Has(other) if other != allocation => {
                    self.violated(fact, format!("{allocation} is installed over {other}"));
                }
                _ => {}
            }
            fact.disks.fill(Content::Of(allocation));
        });
        self.placed(machine, allocation);
    }

    /// An allocation is on one machine, whoever says so.
    fn placed(&self, machine: usize, allocation: Uuid) {
        let place = *lock(&self.places).entry(allocation).or_insert(machine);
        self.count("no order executed by the wrong agent");
        if place != machine {
            self.with(machine, |fact, _| {
                self.violated(
                    fact,
                    format!("{allocation} is on machine number {place} as well"),
                );
            });
        }
    }

    /// Somebody asked for a restart by the BMC.
    pub(crate) fn restart_ordered(&self, machine: usize) {
        self.with(machine, |fact, at| {
            fact.note(at, "a restart by its BMC is ordered".into());
            fact.restarts_ordered += 1;
        });
    }

    /// The BMC restarts it.
    pub(crate) fn restarted(&self, machine: usize) {
        self.with(machine, |fact, at| {
            fact.note(at, "restarted by its BMC".into());
            fact.restarts_done += 1;
            if fact.restarts_done > fact.restarts_ordered {
                let (done, ordered) = (fact.restarts_done, fact.restarts_ordered);
                self.violated(fact, format!("restarted {done} times on {ordered} orders"));
            }
            self.count("no order executed twice");
        });
    }

    /// The BMC cuts the power; control orders that of its own accord only to take a machine back.
    pub(crate) fn powered_off(&self, machine: usize) {
        self.with(machine, |fact, at| {
            fact.note(at, "switched off by its BMC".into());
            if let Tenancy::Has(tenant) = fact.tenancy {
                self.violated(fact, format!("switched off under tenant {tenant}"));
            }
            self.count("no tenant switched off");
        });
    }

    /// A BMC was asked by somebody; `is_own` when it was its partition's agent.
    pub(crate) fn bmc_asked(&self, machine: usize, user: &str, is_own: bool) {
        self.count("no BMC asked by another partition's agent");
        if !is_own {
            self.with(machine, |fact, _| {
                self.violated(fact, format!("its BMC was asked by {user}"));
            });
        }
    }

    /// Something at the end that does not add up.
    pub(crate) fn settled(&self, machine: usize, wrong: Option<String>) {
        self.count("machines add up");
        if let Some(wrong) = wrong {
            self.with(machine, |fact, _| self.violated(fact, wrong));
        }
    }

    /// The public API shows of every machine what its BMC tells.
    pub(crate) fn power_is_shown(&self) {
        for _ in &self.facts {
            self.count("power as the BMC tells it");
        }
    }

    fn with(&self, machine: usize, work: impl FnOnce(&mut Fact, f64)) {
        let at = self.began.elapsed().as_secs_f64();
        if let Some(fact) = self.facts.get(machine) {
            work(&mut lock(fact), at);
        }
    }

    fn count(&self, check: &'static str) {
        *lock(&self.checks).entry(check).or_default() += 1;
    }

    fn violated(&self, fact: &Fact, what: String) {
        let mut first = lock(&self.violation);
        first.get_or_insert_with(|| Violation {
            what,
            machine: fact.uuid,
            history: fact.notes.iter().cloned().collect(),
        });
        self.violated.cancel();
    }
}

impl Fact {
    fn note(&mut self, at: f64, note: String) {
        if self.notes.len() == NOTES_MAX {
            self.notes.pop_front();
        }
        self.notes.push_back(format!("{at:9.3} s  {note}"));
    }
}

#[cfg(test)]
#[path = "truth_tests.rs"]
mod tests;
