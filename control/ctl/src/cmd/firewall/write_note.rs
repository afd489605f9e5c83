//! Data that goes with a write of rules.

/// Comment and condition of a write.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteNote {
    pub(super) comment: String,
    /// The revision that the writer read. `None` means any.
    pub(super) expected: Option<u64>,
}
