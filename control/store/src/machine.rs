//! The interface between the store and the state that it replicates.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::StoreCodecError;

/// Result of one command.
#[derive(Debug)]
pub struct ApplyOutcome<M: StateMachine> {
    /// The reply, or the reason for which the command was refused. A refused command changes
    /// nothing.
    pub result: Result<M::Reply, M::Rejection>,
    /// The changed objects.
    pub changes: Vec<M::Change>,
}

/// One object in the form of the state engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    /// The key, unique over all kinds of objects.
    pub key: Vec<u8>,
    /// The encoded object; `None` means that it was deleted. See [`encode_row`].
    pub value: Option<Vec<u8>>,
}

/// A pure, deterministic state: equal commands in equal order give equal states on all nodes.
///
/// `Default` is the empty state. The store keeps it in memory and mirrors each change into the
/// state engine as a [`StateRow`].
pub trait StateMachine: Debug + Default + Send + Sync + 'static {
    /// A command that changes the state.
    type Command: Serialize + DeserializeOwned + Send + Sync + 'static;
    /// The reply to a successful command.
    type Reply: Debug + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// The reason for which a command was refused.
    type Rejection: std::error::Error + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// Names one changed object.
    type Change: Clone + Debug + Send + Sync + 'static;
    /// The proof that a caller may propose. The store cannot make one: only code that holds a
    /// permit can write.
    type Permit;

    /// Applies one command. A refused command must leave the state as it was.
    fn apply(&mut self, command: &Self::Command) -> ApplyOutcome<Self>;

    /// Decodes a command of the log. An unknown command must be an error, which stops the node: a
    /// node that skipped it would diverge from the others.
    ///
    /// # Errors
    /// When the bytes are damaged or of a newer program.
    fn read(bytes: &[u8]) -> Result<Self::Command, StoreCodecError> {
        crate::codec::decode(bytes)
    }

    /// Checks that every node of the cluster can read `command`. Called before it is proposed.
    ///
    /// # Errors
    /// The reason why it must not be proposed yet.
    fn enabled(&self, _command: &Self::Command) -> Result<(), Self::Rejection> {
        Ok(())
    }

    /// Checks that `permit` covers `command`. Called before anything else.
    ///
    /// # Errors
    /// The reason why it does not.
    fn may_change(_permit: &Self::Permit, _command: &Self::Command) -> Result<(), Self::Rejection> {
        Ok(())
    }

    /// `false` if `permit` does not cover changes of the cluster's members.
    fn may_change_members(_permit: &Self::Permit) -> bool {
        true
    }

    /// Adds the audit record of the call that `permit` was issued for to `command`. `None` means
    /// that there is nothing to record, or that the call is recorded already.
    fn recorded(&self, _permit: &Self::Permit, _command: &Self::Command) -> Option<Self::Command> {
        None
    }

    /// Notes that the command of [`recorded`](Self::recorded) was applied.
    fn was_recorded(_permit: &Self::Permit) {}

    /// `true` if `command` is idempotent: applied twice it changes the state once and gives the
    /// same reply. Such a command is proposed again after an unknown outcome.
    fn is_repeatable(_command: &Self::Command) -> bool {
        false
    }

    /// Counts the commands that changed something.
    fn revision(&self) -> u64;

    /// Restores the count of an earlier run.
    fn set_revision(&mut self, revision: u64);

    /// Encodes the object that `change` names, as it is after the change.
    ///
    /// # Errors
    /// When the object cannot be encoded, which stops the node.
    fn row(&self, change: &Self::Change) -> Result<StateRow, StoreCodecError>;

    /// Restores a row that an earlier run stored.
    ///
    /// # Errors
    /// When the row does not belong to this state; the store then does not open.
    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreCodecError>;
}

/// Encodes an object for a row: a version byte, then CBOR.
///
/// # Errors
/// When the value has no CBOR form.
pub fn encode_row<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreCodecError> {
    crate::codec::encode(value)
}

/// Decodes a value of [`encode_row`].
///
/// # Errors
/// When the bytes are damaged or of a newer version.
pub fn decode_row<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StoreCodecError> {
    crate::codec::decode(bytes)
}
