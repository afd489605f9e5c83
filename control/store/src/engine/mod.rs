//! The state engine: the rows of the state on disk, and the last entry that they contain.
//!
//! The engine has no log of its own: the Raft log is the log. Rows and progress are written in one
//! batch, so that after a crash the engine holds the complete state as of some earlier entry, and
//! names it. Replay goes on from there.

mod error;
pub(crate) mod rocks;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::codec::StoreCodecError;
use crate::machine::StateRow;
use crate::raft_types::{LogId, StoredMembership};

pub use error::EngineError;

/// The entry up to which the state is applied, with membership and revision as of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AppliedProgress {
    /// `None` if no entry was applied.
    pub(crate) last_applied: Option<LogId>,
    /// The last membership up to that entry.
    pub(crate) membership: StoredMembership,
    /// Number of commands that changed something.
    pub(crate) revision: u64,
}

/// Called with the key and the value of a row; an error ends the iteration.
pub(crate) type RowVisitor<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), StoreCodecError> + 'a;

/// Storage of the rows and of their progress.
pub(crate) trait StateEngine: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the progress of the rows.
    fn progress(&self) -> Result<AppliedProgress, EngineError>;
    /// Calls `each` with every row, in the order of the keys.
    fn rows(&self, each: &mut RowVisitor<'_>) -> Result<(), EngineError>;
    /// Writes rows and progress atomically. They are durable only after [`flush`](Self::flush).
    fn commit(&self, rows: &[StateRow], progress: &AppliedProgress) -> Result<(), EngineError>;
    /// Makes everything that was committed durable.
    fn flush(&self) -> Result<(), EngineError>;
    /// Makes a copy in `dir`, which must not exist, and returns the progress of the copy. The copy
    /// contains everything that was committed before the call, and all of it is durable in the
    /// engine as well.
    fn checkpoint(&self, dir: &Path) -> Result<AppliedProgress, EngineError>;
    /// Replaces all rows by the copy in `dir` and returns its progress; durable when it returns.
    fn replace(&self, dir: &Path) -> Result<AppliedProgress, EngineError>;
    /// Flushes and closes the files. Later calls fail.
    fn close(&self) -> Result<(), EngineError>;
}
