//! The state of a site as the simulated cluster keeps it: each change is noted where it is made.

use control_state::{Change, Command, Reply, StateError, Tables};
use control_store::{ApplyOutcome, StateMachine, StateRow, StoreCodecError};

use super::ledger;

/// The tables of a site.
#[derive(Debug, Default)]
pub(crate) struct Watched(pub(crate) Tables);

impl StateMachine for Watched {
    type Command = Command;
    type Reply = Reply;
    type Rejection = StateError;
    type Change = Change;
    /// Rights are decided before a command, and have tests of their own.
    type Permit = ();

    fn apply(&mut self, command: &Command) -> ApplyOutcome<Self> {
        let ApplyOutcome { result, changes } = StateMachine::apply(&mut self.0, command);
        ledger::note(&self.0, command, &changes);
        ApplyOutcome { result, changes }
    }

    fn read(bytes: &[u8]) -> Result<Command, StoreCodecError> {
        <Tables as StateMachine>::read(bytes)
    }

    fn enabled(&self, command: &Command) -> Result<(), StateError> {
        StateMachine::enabled(&self.0, command)
    }

    fn is_repeatable(command: &Command) -> bool {
        <Tables as StateMachine>::is_repeatable(command)
    }

    fn revision(&self) -> u64 {
        self.0.revision()
    }

    fn set_revision(&mut self, revision: u64) {
        self.0.set_revision(revision);
    }

    fn row(&self, change: &Change) -> Result<StateRow, StoreCodecError> {
        StateMachine::row(&self.0, change)
    }

    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreCodecError> {
        StateMachine::load(&mut self.0, key, value)
    }
}
