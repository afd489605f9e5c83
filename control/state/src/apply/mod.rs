//! The one way to change the tables.

use proto_errors::{Error, ErrorCode};

use crate::change::Change;
use crate::command::{COMMAND_VERSION, Command, Op};
use crate::reply::Reply;
use crate::tables::{Tables, Tx};

/// What came of a command.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Outcome {
    /// The answer; an error left the tables as they were.
    pub result: Result<Reply, Error>,
    /// What changed, in the order of kind and key; empty when nothing did.
    pub changes: Vec<Change>,
    /// Revision of the tables after it.
    pub revision: u64,
}

/// Carries out a command, wholly or not at all.
pub fn apply(tables: &mut Tables, command: &Command) -> Outcome {
    let mut tx = Tx::new(tables, command.now, &command.actor);
    let result = if command.version > COMMAND_VERSION {
        Err(Error::new(
            ErrorCode::UnsupportedVersion,
            format!(
                "command version {} is newer than {COMMAND_VERSION}",
                command.version
            ),
        ))
    } else {
        dispatch(&mut tx, &command.op)
    };
    let changes = if result.is_ok() {
        tx.commit()
    } else {
        tx.abort();
        Vec::new()
    };
    Outcome {
        result,
        changes,
        revision: tables.revision(),
    }
}

fn dispatch(_tx: &mut Tx<'_>, op: &Op) -> Result<Reply, Error> {
    Err(Error::new(
        ErrorCode::Unimplemented,
        format!("{} is not built yet", op.name()),
    ))
}
