//! Values by key as the store's state machine: as simple as what etcd keeps.

use std::collections::BTreeMap;

use bytes::Bytes;
use control_store::{ApplyOutcome, StateMachine, StateRow, StoreCodecError};
use serde::{Deserialize, Serialize};

/// Sets one key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Put {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
}

/// No command is refused.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum Never {}

/// Values by key.
#[derive(Debug, Default)]
pub(crate) struct Values {
    entries: BTreeMap<Bytes, Bytes>,
    revision: u64,
}

impl Values {
    pub(crate) fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.entries.get(key).cloned()
    }
}

impl StateMachine for Values {
    type Command = Put;
    /// The revision after the command.
    type Reply = u64;
    type Rejection = Never;
    /// Key and new value.
    type Change = (Bytes, Bytes);
    type Permit = ();

    fn apply(&mut self, command: &Put) -> ApplyOutcome<Self> {
        let (key, value) = (command.key.clone(), command.value.clone());
        self.entries.insert(key.clone(), value.clone());
        self.revision += 1;
        ApplyOutcome {
            result: Ok(self.revision),
            changes: vec![(key, value)],
        }
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn row(&self, (key, value): &Self::Change) -> Result<StateRow, StoreCodecError> {
        Ok(StateRow {
            key: key.to_vec(),
            value: Some(value.to_vec()),
        })
    }

    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreCodecError> {
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        self.entries.insert(key, value);
        Ok(())
    }
}
