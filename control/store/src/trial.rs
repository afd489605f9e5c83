//! Trials (dry runs): a command is applied to the state of this node and rolled back at once.

use std::panic::{AssertUnwindSafe, catch_unwind};

use control_state::{Command, ErrorCode, Reply, StateError, Tables};

use crate::error::StoreError;
use crate::store::Store;

impl Store<Tables> {
    /// Tries `command` on the state that this node has applied and returns the reply that it would
    /// get. The cost is that of the command itself: nothing is copied, and readers and writers wait
    /// as long as for the command.
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
        // Caught while the lock is held, so the lock is not poisoned: a bug that only a trial
        // reaches must not stop the node. The attempt has rolled back its changes by then.
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
