//! Transitions of claims.
//!
//! Everything that a command makes possible happens in the same command: a claim is bound in the
//! entry of the log that frees its host. [`follow`] runs after each command and looks at the
//! machines and hosts that it wrote.

mod bind;
mod checks;
pub(crate) mod claim;
mod conditions;
pub(crate) mod due;
mod follow;
pub(crate) mod power;
mod provision;
mod settle;
mod verify;
mod write;

pub(crate) use follow::follow;
