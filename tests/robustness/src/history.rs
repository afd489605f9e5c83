//! What clients asked and were told, with the times of both.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A value of a register; each is written at most once, 0 is what it begins with.
pub type Value = u64;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Set the register. The outcome may be unknown.
    Write(Value),
    /// What a read was told.
    Read(Value),
}

/// One call on one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Who called; told when a history is not good.
    pub client: usize,
    /// Which register.
    pub key: usize,
    /// What.
    pub action: Action,
    /// When the call was sent, on the history's own clock.
    pub invoked: u64,
    /// When its answer came; `None` if it may take effect at any later time, or never.
    pub answered: Option<u64>,
}

/// Collects operations. The clock counts events: only their order matters.
#[derive(Debug, Default)]
pub struct History {
    clock: AtomicU64,
    ops: Mutex<Vec<Op>>,
}

impl History {
    /// The next moment.
    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes a finished or abandoned operation.
    pub fn push(&self, op: Op) {
        self.ops
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(op);
    }

    /// All operations so far.
    pub fn ops(&self) -> Vec<Op> {
        self.ops
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
