//! The rows of the state on disk, and the entry up to which they are applied.

mod error;
pub(crate) mod rocks;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::codec::StoreCodecError;
use crate::machine::StateRow;
use crate::raft_types::{LogId, StoredMembership};

pub use error::EngineError;

/// How far the state has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AppliedProgress {
    pub(crate) last_applied: Option<LogId>,
    pub(crate) membership: StoredMembership,
    /// The state machine's count of commands that changed something.
    pub(crate) revision: u64,
}

/// Is shown the key and the value of a row.
pub(crate) type RowVisitor<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), StoreCodecError> + 'a;

/// Keeps rows and how far they have come.
pub(crate) trait StateEngine: std::fmt::Debug + Send + Sync + 'static {
    /// How far the rows have come.
    fn progress(&self) -> Result<AppliedProgress, EngineError>;
    /// Shows every row to `each`.
    fn rows(&self, each: &mut RowVisitor<'_>) -> Result<(), EngineError>;
    /// Writes rows and progress as one; durable only after [`flush`](Self::flush).
    fn commit(&self, rows: &[StateRow], progress: &AppliedProgress) -> Result<(), EngineError>;
    /// Makes all that was committed durable.
    fn flush(&self) -> Result<(), EngineError>;
    /// Makes a copy in `dir`, which must not exist, and returns how far the copy has come. The
    /// copy contains everything committed before, and everything in it is durable here too.
    fn checkpoint(&self, dir: &Path) -> Result<AppliedProgress, EngineError>;
    /// Becomes the copy in `dir`; durable when it returns.
    fn replace(&self, dir: &Path) -> Result<AppliedProgress, EngineError>;
    /// Flushes and lets go of the files.
    fn close(&self) -> Result<(), EngineError>;
}
