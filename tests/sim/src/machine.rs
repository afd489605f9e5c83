//! What the simulated cluster keeps: numbers under a few keys, and a checksum of all that was ever
//! applied, by which two histories can be told apart.

use std::cell::RefCell;
use std::collections::BTreeMap;

use control_store::{
    ApplyOutcome, StateMachine, StateRow, StoreCodecError, decode_row, encode_row,
};
use serde::{Deserialize, Serialize};

/// The row of the checksum; keys are smaller.
const DIGEST_KEY: u8 = 255;
/// Sixteen bytes of filling each.
const FILLING: usize = 128;

/// Writes `value`, which no other command ever writes, under `key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Put {
    pub(crate) key: u8,
    pub(crate) value: u64,
    /// What the proposer's clock showed, milliseconds; part of the checksum.
    pub(crate) at_ms: u64,
}

/// A key and its new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Changed {
    pub(crate) key: u8,
    pub(crate) value: u64,
}

/// Makes rows so long that a snapshot takes a while on its way, and shows any damage.
fn filling(value: u64) -> String {
    format!("{value:016x}").repeat(FILLING)
}

/// Nothing is refused.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[error("never")]
pub(crate) struct Never;

/// The state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    values: BTreeMap<u8, u64>,
    digest: u64,
    revision: u64,
}

impl Registers {
    pub(crate) fn get(&self, key: u8) -> Option<u64> {
        self.values.get(&key).copied()
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }
}

/// How many commands made `state`.
pub(crate) fn revision(state: &Registers) -> u64 {
    state.revision
}

impl StateMachine for Registers {
    type Command = Put;
    /// The revision after the command.
    type Reply = u64;
    type Rejection = Never;
    type Change = Changed;
    type Permit = ();

    fn apply(&mut self, command: &Put) -> ApplyOutcome<Self> {
        let Put { key, value, at_ms } = *command;
        self.values.insert(key, value);
        self.revision += 1;
        for number in [u64::from(key), value, at_ms] {
            self.digest = (self.digest ^ number)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29);
        }
        note(self.revision, self.digest, command);
        let digest = Changed {
            key: DIGEST_KEY,
            value: self.digest,
        };
        ApplyOutcome {
            result: Ok(self.revision),
            changes: vec![Changed { key, value }, digest],
        }
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn row(&self, change: &Changed) -> Result<StateRow, StoreCodecError> {
        Ok(StateRow {
            key: vec![change.key],
            value: Some(encode_row(&(change.value, filling(change.value)))?),
        })
    }

    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreCodecError> {
        let (value, filled): (u64, String) = decode_row(value)?;
        if filled != filling(value) {
            return Err(StoreCodecError::Decode(format!(
                "{value} is filled wrongly"
            )));
        }
        match key {
            [DIGEST_KEY] => self.digest = value,
            [key] => drop(self.values.insert(*key, value)),
            _ => {}
        }
        Ok(())
    }
}

/// Everything that any node of this run has applied.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    by_revision: BTreeMap<u64, (u64, Put)>,
    /// Two nodes, or one node twice, applied different commands as the same one.
    pub(crate) conflict: Option<String>,
}

impl Applied {
    /// The command that made `revision`.
    pub(crate) fn at(&self, revision: u64) -> Option<&Put> {
        self.by_revision.get(&revision).map(|(_, put)| put)
    }

    /// What `key` is at `revision`.
    pub(crate) fn value_at(&self, revision: u64, key: u8) -> Option<u64> {
        let older = self.by_revision.range(..=revision).rev();
        older
            .map(|(_, (_, put))| put)
            .find(|put| put.key == key)
            .map(|put| put.value)
    }

    pub(crate) fn digest_at(&self, revision: u64) -> Option<u64> {
        self.by_revision.get(&revision).map(|(digest, _)| *digest)
    }

    pub(crate) fn commands(&self) -> impl Iterator<Item = (u64, &Put)> {
        self.by_revision.iter().map(|(at, (_, put))| (*at, put))
    }
}

thread_local! {
    static APPLIED: RefCell<Applied> = RefCell::default();
}

/// Forgets what an earlier run of this thread applied.
pub(crate) fn reset() {
    APPLIED.take();
}

/// What this run has applied so far.
pub(crate) fn applied<T>(look: impl FnOnce(&Applied) -> T) -> T {
    APPLIED.with_borrow(look)
}

fn note(revision: u64, digest: u64, command: &Put) {
    APPLIED.with_borrow_mut(|applied| {
        let first = applied
            .by_revision
            .entry(revision)
            .or_insert((digest, *command));
        if *first != (digest, *command) && applied.conflict.is_none() {
            applied.conflict = Some(format!(
                "revision {revision} was made by {:?} and by {command:?}, or their past differs",
                first.1
            ));
        }
    });
}
