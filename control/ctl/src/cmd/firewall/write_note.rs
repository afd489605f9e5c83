/// The words that are written beside the rules.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteNote {
    pub(super) comment: String,
    /// The revision that the writer read. `None` means any.
    pub(super) expected: Option<u64>,
}
