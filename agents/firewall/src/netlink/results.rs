use crate::plan::Change;

/// Packets and bytes that a counter has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CounterValue {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Changes that were made.
    pub changes: Vec<Change>,
    /// Generation of the kernel's rules in which the table was verified.
    pub generation: u32,
}
