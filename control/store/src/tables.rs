//! The control plane's own state, [`Tables`], as the store's state machine.

use control_authz::Permit;
use control_state::{Change, Command, Kind, Reply, StateError, Tables};

use crate::codec::{CodecError, VERSION};
use crate::machine::{Outcome, Row, StateMachine};

impl StateMachine for Tables {
    type Command = Command;
    type Reply = Reply;
    type Rejection = StateError;
    type Change = Change;
    type Permit = Permit;

    fn apply(&mut self, command: &Command) -> Outcome<Self> {
        let control_state::Outcome {
            result,
            changes,
            revision: _,
        } = control_state::apply(self, command);
        Outcome { result, changes }
    }

    fn revision(&self) -> u64 {
        Self::revision(self)
    }

    fn set_revision(&mut self, revision: u64) {
        Self::set_revision(self, revision);
    }

    /// The key is `kind/key`; the value a version byte and the record's CBOR.
    fn row(&self, change: &Change) -> Result<Row, CodecError> {
        let key = format!("{}/{}", change.kind, change.key).into_bytes();
        let Some(record) = &change.record else {
            return Ok(Row { key, value: None });
        };
        let mut value = vec![VERSION];
        value.extend(
            record
                .encode()
                .map_err(|e| CodecError::Encode(e.to_string()))?,
        );
        Ok(Row {
            key,
            value: Some(value),
        })
    }

    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), CodecError> {
        let unreadable = |reason: String| CodecError::Decode(reason);
        let (version, record) = value.split_first().ok_or(CodecError::Empty)?;
        if *version != VERSION {
            return Err(CodecError::Version { got: *version });
        }
        let kind = key.split(|b| *b == b'/').next().unwrap_or_default();
        let kind: Kind = String::from_utf8_lossy(kind)
            .parse()
            .map_err(|e: StateError| unreadable(e.to_string()))?;
        Self::load(self, kind, record).map_err(|e| unreadable(e.to_string()))
    }
}
