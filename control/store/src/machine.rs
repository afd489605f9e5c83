//! What the store asks of the state it keeps.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::StoreCodecError;

/// What one command gave.
#[derive(Debug)]
pub struct ApplyOutcome<M: StateMachine> {
    /// The answer, or why the command was refused. A refused command changes nothing.
    pub result: Result<M::Reply, M::Rejection>,
    /// The objects that are different now.
    pub changes: Vec<M::Change>,
}

/// One object as it lies in the state engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    /// Unique over all kinds of objects.
    pub key: Vec<u8>,
    /// The encoded object, `None` when it is gone. See [`encode_row`].
    pub value: Option<Vec<u8>>,
}

/// A pure, deterministic state: equal commands in equal order give equal states on all nodes.
///
/// `Default` is the empty state. The store keeps it in memory and mirrors each change into the
/// state engine as a [`StateRow`].
pub trait StateMachine: Debug + Default + Send + Sync + 'static {
    /// What changes the state.
    type Command: Serialize + DeserializeOwned + Send + Sync + 'static;
    /// What a successful command answers.
    type Reply: Debug + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// Why a command was refused.
    type Rejection: std::error::Error + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// Names one changed object.
    type Change: Clone + Debug + Send + Sync + 'static;
    /// The proof that somebody may propose. The store only asks that there is one: who cannot
    /// make it cannot write.
    type Permit;

    /// Applies one command. A refused command must leave the state as it was.
    fn apply(&mut self, command: &Self::Command) -> ApplyOutcome<Self>;

    /// Reads a command out of the log. One that this program does not know must be an error, which
    /// stops the node: left out, it would make the node differ from the others.
    ///
    /// # Errors
    /// When the bytes are damaged or of a newer program.
    fn read(bytes: &[u8]) -> Result<Self::Command, StoreCodecError> {
        crate::codec::decode(bytes)
    }

    /// Whether every node of the cluster can read `command`; asked before it is proposed.
    ///
    /// # Errors
    /// Why it must not be proposed yet.
    fn enabled(&self, _command: &Self::Command) -> Result<(), Self::Rejection> {
        Ok(())
    }

    /// Asked before anything else: `permit` is one to change something with, and covers `command`.
    ///
    /// # Errors
    /// Why it is not.
    fn may_change(_permit: &Self::Permit, _command: &Self::Command) -> Result<(), Self::Rejection> {
        Ok(())
    }

    /// `false` if `permit` does not cover changes of the cluster's members.
    fn may_change_members(_permit: &Self::Permit) -> bool {
        true
    }

    /// `command` together with the record of the call that `permit` was given for; none when there
    /// is nothing to record, or it was recorded already.
    fn recorded(&self, _permit: &Self::Permit, _command: &Self::Command) -> Option<Self::Command> {
        None
    }

    /// What [`recorded`](Self::recorded) made was applied.
    fn was_recorded(_permit: &Self::Permit) {}

    /// Whether carrying `command` out twice is as good as once, and answers the same: then it is
    /// proposed again when nobody knows what became of it.
    fn is_repeatable(_command: &Self::Command) -> bool {
        false
    }

    /// Counts the commands that changed something.
    fn revision(&self) -> u64;

    /// Takes back the count that an earlier run had.
    fn set_revision(&mut self, revision: u64);

    /// How the object that `change` names is stored after the change.
    ///
    /// # Errors
    /// When the object cannot be encoded, which stops the node.
    fn row(&self, change: &Self::Change) -> Result<StateRow, StoreCodecError>;

    /// Takes back a row that an earlier run stored.
    ///
    /// # Errors
    /// When the row is not one of this state's, which refuses the start.
    fn load(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreCodecError>;
}

/// The form in which objects are stored: a version byte, then CBOR.
///
/// # Errors
/// When the value has no CBOR form.
pub fn encode_row<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreCodecError> {
    crate::codec::encode(value)
}

/// Reads what [`encode_row`] wrote.
///
/// # Errors
/// When the bytes are damaged or of a newer version.
pub fn decode_row<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StoreCodecError> {
    crate::codec::decode(bytes)
}
