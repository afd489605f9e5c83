//! Trials: what a command would answer, found out on this node and taken back at once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use control_state::{Command, ErrorCode, Reply, StateError, Tables};

use crate::error::StoreError;
use crate::store::Store;

impl Store<Tables> {
    /// What `command` would answer by what this node has applied. It costs what the command
    /// changes: nothing is copied. Readers and writers wait as long as for the command itself.
    ///
    /// # Errors
    /// When the state machine panicked before. A trial that panics leaves the state as it was.
    pub fn attempt_local(
        &self,
        command: &Command,
    ) -> Result<Result<Reply, StateError>, StoreError> {
        let mut state = self.0.shared.state.write().map_err(|_| {
            StoreError::Fatal("the state machine panicked; its state cannot be trusted".to_owned())
        })?;
        // Caught while the lock is held, which therefore is not poisoned.
        let tried = catch_unwind(AssertUnwindSafe(|| {
            control_state::check_enabled(&state, command)?;
            control_state::attempt(&mut state, command)
        }));
        Ok(tried.unwrap_or_else(|_| {
            let what = "the command cannot be tried";
            Err(StateError::new(ErrorCode::Internal, what))
        }))
    }
}
