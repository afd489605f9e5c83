//! Failures of SONiC's databases.

use std::time::Duration;

use thiserror::Error;

/// A failure to read or change a switch through SONiC's databases.
#[derive(Debug, Error)]
pub enum SonicError {
    /// Redis cannot be reached, or broke off. The address, and the system's error.
    #[error("redis at {0} is away")]
    Away(String, #[source] std::io::Error),
    /// Redis does not answer in time. Its address, and the limit.
    #[error("redis at {0} did not answer within {1:?}")]
    Silent(String, Duration),
    /// Redis refused a command, in its own words.
    #[error("redis refused: {0}")]
    Refused(String),
    /// An answer is not one of this command.
    #[error("redis answered {0} with something else")]
    Answer(&'static str),
    /// A database has more rows than the limit.
    #[error("the database has more than {0} rows of interest")]
    TooMuch(usize),
    /// SONiC has not done in time what was written. The rows or objects that are missing.
    #[error("SONiC has not confirmed {0} within {1:?}")]
    Unconfirmed(String, Duration),
    /// A row that is necessary belongs to somebody else.
    #[error("{0} in CONFIG_DB is not ours")]
    Occupied(String),
    /// The kernel's bridge cannot isolate a port. The port, and the kernel's error.
    #[error("the kernel's bridge cannot isolate {0}")]
    Kernel(String, #[source] std::io::Error),
    /// All VLANs of the agent's range are in use.
    #[error("no VLAN is free in {0} to {1}")]
    NoVlan(u16, u16),
}
