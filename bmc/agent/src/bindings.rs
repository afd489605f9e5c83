//! The bindings of machines to claims that orders came from, on disk: orders of earlier ones are
//! refused, however late they arrive.

use std::collections::BTreeMap;
use std::sync::Arc;

use agents_kit::{KitError, StateDir};
use base_runtime::Chain;
use parking_lot::Mutex;
use proto_types::MachineId;
use serde::{Deserialize, Serialize};

/// Machines in the file, more than an agent has BMCs. Beyond it the machine whose binding was raised
/// longest ago is forgotten.
const MACHINES_MAX: usize = 20_000;
const FILE: &str = "bindings.json";

/// A binding of a machine to a claim, as control counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Binding {
    // The derived order compares the fields in this order.
    /// The count that the epoch belongs to. Control begins a later one when it was restored from a
    /// backup, or forgot the machine: its epochs would go back otherwise.
    pub era: u64,
    /// Number of the binding. 0 means that the machine was not bound yet.
    pub epoch: u64,
}

/// The highest binding of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Highest {
    binding: Binding,
    /// Grows with each raise of any machine.
    turn: u64,
}

/// The highest binding of each machine.
#[derive(Debug)]
pub(crate) struct Bindings {
    dir: StateDir,
    highest: Mutex<BTreeMap<MachineId, Highest>>,
    /// One writer at a time, in order.
    writing: tokio::sync::Mutex<()>,
}

/// `true` if a binding is higher than the known one. A machine that was never bound has no earlier
/// binding to be guarded against, and needs no place in the file.
fn is_higher(known: Option<Binding>, binding: Binding) -> bool {
    known.map_or(binding.epoch > 0, |known| known < binding)
}

/// Raises the bindings to those that orders tell. `false` means that none is higher.
fn raise_all(highest: &mut BTreeMap<MachineId, Highest>, told: &[(MachineId, Binding)]) -> bool {
    let mut turn = highest.values().map(|one| one.turn).max().unwrap_or(0);
    let first = turn;
    for (machine, binding) in told {
        let known = highest.get(machine).map(|one| one.binding);
        if is_higher(known, *binding) {
            turn = turn.saturating_add(1);
            let raised = Highest {
                binding: *binding,
                turn,
            };
            highest.insert(*machine, raised);
        }
    }
    while highest.len() > MACHINES_MAX {
        let oldest = highest.iter().min_by_key(|(_, one)| one.turn);
        let Some(oldest) = oldest.map(|(machine, _)| *machine) else {
            break;
        };
        highest.remove(&oldest);
    }
    turn > first
}

impl Bindings {
    /// Opens the file.
    ///
    /// # Errors
    /// [`KitError`] if it cannot be read: without it an order of an earlier binding might be carried
    /// out.
    pub(crate) fn open(dir: StateDir) -> Result<Arc<Self>, KitError> {
        let highest = match dir.read(FILE)? {
            None => BTreeMap::new(),
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| KitError::Damaged {
                path: dir.path().join(FILE),
                reason: error.to_string(),
            })?,
        };
        Ok(Arc::new(Self {
            dir,
            highest: Mutex::new(highest),
            writing: tokio::sync::Mutex::new(()),
        }))
    }

    fn known(&self, machine: MachineId) -> Option<Binding> {
        self.highest.lock().get(&machine).map(|one| one.binding)
    }

    /// Raises the bindings to those that orders tell. They are on disk when this returns; on failure
    /// none is raised.
    pub(crate) async fn raise(&self, told: &[(MachineId, Binding)]) -> Result<(), KitError> {
        let is_news =
            |(machine, binding): &(MachineId, Binding)| is_higher(self.known(*machine), *binding);
        if !told.iter().any(is_news) {
            return Ok(());
        }
        let _writing = self.writing.lock().await;
        let mut next = self.highest.lock().clone();
        if raise_all(&mut next, told) {
            self.put(&next).await?;
            *self.highest.lock() = next;
        }
        Ok(())
    }

    /// Notes the binding of an order that is about to begin. `None` comes from a control that tells
    /// no bindings: its orders are taken.
    ///
    /// # Errors
    /// The reason why the order must not begin: it is of an earlier binding, or its own is not on
    /// disk, so that a restart would forget it.
    pub(crate) async fn admit(
        &self,
        machine: MachineId,
        binding: Option<Binding>,
    ) -> Result<(), String> {
        let Some(own) = binding else { return Ok(()) };
        let noted = self.raise(&[(machine, own)]).await;
        noted.map_err(|error| format!("not started: {}", Chain(&error)))?;
        let Some(known) = self.known(machine).filter(|known| own < *known) else {
            return Ok(());
        };
        let of_before = match own.era < known.era {
            true => ", of before control was restored or forgot the machine",
            false => "",
        };
        Err(format!(
            "not carried out: the order is of binding {}{of_before}, and this agent has orders of \
             binding {} of machine {machine} already",
            own.epoch, known.epoch
        ))
    }

    /// Replaces the file. The caller holds the lock `writing`.
    async fn put(&self, highest: &BTreeMap<MachineId, Highest>) -> Result<(), KitError> {
        let damaged = |error: String| KitError::Damaged {
            path: self.dir.path().join(FILE),
            reason: error,
        };
        let bytes = serde_json::to_vec(highest).map_err(|error| damaged(error.to_string()))?;
        let dir = self.dir.clone();
        tokio::task::spawn_blocking(move || dir.write(FILE, &bytes))
            .await
            .map_err(|error| damaged(error.to_string()))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(number: usize) -> MachineId {
        format!("6f1c0001-0000-4000-8000-{number:012x}")
            .parse()
            .unwrap()
    }

    fn binding(era: u64, epoch: u64) -> Binding {
        Binding { era, epoch }
    }

    fn open(path: &std::path::Path) -> Arc<Bindings> {
        Bindings::open(StateDir::open(path).unwrap()).unwrap()
    }

    /// Each order arrives after those above it, at an agent that was restarted in between or not.
    #[tokio::test]
    async fn orders_of_earlier_bindings_are_refused_also_after_a_restart() {
        for restarts in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("state");
            let mut bindings = open(&path);
            for (what, number, told, is_taken) in [
                ("a control that tells none", 1, None, true),
                ("never bound", 1, Some((100, 0)), true),
                ("the second binding", 1, Some((100, 2)), true),
                ("the same", 1, Some((100, 2)), true),
                ("the first one, late", 1, Some((100, 1)), false),
                ("before any, late", 1, Some((100, 0)), false),
                ("another machine", 2, Some((100, 1)), true),
                ("an older control", 1, None, true),
                ("a higher one", 1, Some((100, 7)), true),
                ("of before it", 1, Some((100, 6)), false),
                ("a restored control counts again", 1, Some((200, 3)), true),
                ("of before the restore", 1, Some((100, 7)), false),
                ("of before the restore, higher", 1, Some((100, 8)), false),
                ("since the restore, earlier", 1, Some((200, 2)), false),
                ("forgotten and new", 1, Some((300, 0)), true),
                ("of before it was forgotten", 1, Some((200, 9)), false),
            ] {
                if restarts {
                    bindings = open(&path);
                }
                let told = told.map(|(era, epoch)| binding(era, epoch));
                let admitted = bindings.admit(machine(number), told).await;
                assert_eq!(admitted.is_ok(), is_taken, "{what}: {admitted:?}");
            }
        }
    }

    #[tokio::test]
    async fn the_refusal_names_machine_and_both_bindings() {
        let dir = tempfile::tempdir().unwrap();
        let bindings = open(&dir.path().join("state"));
        bindings
            .admit(machine(1), Some(binding(100, 2)))
            .await
            .unwrap();
        let refused = bindings
            .admit(machine(1), Some(binding(100, 1)))
            .await
            .unwrap_err();
        assert_eq!(
            refused,
            format!(
                "not carried out: the order is of binding 1, and this agent has orders of binding \
                 2 of machine {} already",
                machine(1)
            )
        );
        let of_before = bindings
            .admit(machine(1), Some(binding(50, 9)))
            .await
            .unwrap_err();
        assert!(
            of_before.contains("before control was restored"),
            "{of_before}"
        );
    }

    #[tokio::test]
    async fn a_binding_that_cannot_be_written_lets_no_order_begin() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let bindings = open(&path);
        // A directory in its place: the file cannot be replaced.
        std::fs::create_dir(path.join(FILE)).unwrap();
        let refused = bindings
            .admit(machine(1), Some(binding(100, 2)))
            .await
            .unwrap_err();
        assert!(refused.starts_with("not started: "), "{refused}");
        std::fs::remove_dir(path.join(FILE)).unwrap();
        bindings
            .admit(machine(1), Some(binding(100, 1)))
            .await
            .unwrap();
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        let state = StateDir::open(&path).unwrap();
        state.write(FILE, b"{\"x\"").unwrap();
        let opened = Bindings::open(state);
        assert!(
            matches!(opened, Err(KitError::Damaged { .. })),
            "{opened:?}"
        );
    }

    #[test]
    fn beyond_the_bound_the_longest_unchanged_machine_is_forgotten() {
        let mut highest = BTreeMap::new();
        let all = (0..MACHINES_MAX).map(|number| (machine(number), binding(1, 1)));
        let all: Vec<_> = all.collect();
        assert!(raise_all(&mut highest, &all));
        assert!(!raise_all(&mut highest, &all), "nothing is higher");
        let more = [
            (machine(0), binding(1, 2)),
            (machine(MACHINES_MAX), binding(1, 1)),
        ];
        assert!(raise_all(&mut highest, &more));
        assert_eq!(highest.len(), MACHINES_MAX);
        assert!(!highest.contains_key(&machine(1)));
        assert!(highest.contains_key(&machine(0)));
        let bytes = serde_json::to_vec(&highest).unwrap();
        assert!(bytes.len() < 4 << 20, "{}", bytes.len());
    }
}
