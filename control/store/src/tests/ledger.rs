//! A small state machine: text by key, a command that is refused and one that panics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ApplyOutcome, StateMachine, StateRow, StoreCodecError, decode_row, encode_row};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) entries: BTreeMap<String, String>,
    revision: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum LedgerCommand {
    Put {
        key: String,
        value: String,
    },
    Remove {
        key: String,
    },
    /// Always refused.
    Refuse,
    Panic,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("refused")]
pub(crate) struct Refused;

impl StateMachine for Ledger {
    type Command = LedgerCommand;
    /// The revision after the command.
    type Reply = u64;
    type Rejection = Refused;
    /// Key and new value.
    type Change = (String, Option<String>);
    type Permit = ();

    fn apply(&mut self, command: &LedgerCommand) -> ApplyOutcome<Self> {
        let change = match command {
            LedgerCommand::Put { key, value } => {
                self.entries.insert(key.clone(), value.clone());
                (key.clone(), Some(value.clone()))
            }
            LedgerCommand::Remove { key } => {
                self.entries.remove(key);
                (key.clone(), None)
            }
            LedgerCommand::Refuse => {
                return ApplyOutcome {
                    result: Err(Refused),
                    changes: vec![],
                };
            }
            LedgerCommand::Panic => panic!("asked to"),
        };
        self.revision += 1;
        ApplyOutcome {
            result: Ok(self.revision),
            changes: vec![change],
        }
    }

    /// As if the key were remembered.
    fn is_repeatable(command: &LedgerCommand) -> bool {
        matches!(command, LedgerCommand::Put { key, .. } if key == "repeatable")
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn row(&self, (key, value): &Self::Change) -> Result<StateRow, StoreCodecError> {
        let value = value.as_ref().map(encode_row).transpose()?;
        Ok(StateRow {
            key: key.clone().into_bytes(),
            value,
        })
    }

    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreCodecError> {
        let key = String::from_utf8_lossy(key).into_owned();
        self.entries.insert(key, decode_row(value)?);
        Ok(())
    }
}
