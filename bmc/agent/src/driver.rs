//! The operations on a BMC, independent of its protocol. A trait, so that orders are tested without
//! a BMC.

use futures::future::BoxFuture;
use proto_types::MachineId;
use tokio::time::Instant;

use crate::config::Target;

pub use crate::action::{Action, Power};

/// The state read from a BMC.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// Possible UUIDs of the machine, the likeliest first. IPMI does not define the byte order.
    pub machines: Vec<MachineId>,
    /// "redfish" or "ipmi".
    pub interface: &'static str,
    /// The port that answered.
    pub port: u16,
    pub mac: String,
    /// The user that it was read as.
    pub user: String,
    pub bmc_version: String,
    pub bios_version: String,
    pub power: Power,
    /// "on", "off", "blinking" or empty.
    pub led: &'static str,
    pub fru: proto_mesh::Fru,
    /// Power consumption and supplies. Empty means that the BMC does not report them. `None` means
    /// that they could not be read this time, which never fails a reading.
    pub draw: Option<proto_mesh::PowerDraw>,
}

/// The reason why an operation on a BMC failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// The BMC was not reached; nothing was done.
    #[error("{0}")]
    Unreached(String),
    /// The BMC stopped answering during the operation, which may have taken effect.
    #[error("{0}")]
    Unsure(String),
    /// The BMC refused, or the machine does not support the operation.
    #[error("{0}")]
    Refused(String),
}

/// Reads BMCs and operates machines through them.
pub trait Driver: Send + Sync + 'static {
    /// Reads a BMC and the machine behind it.
    fn read<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<Reading, DriveError>>;

    /// Starts an operation once and waits until it shows, at most until `until`. Returns the power
    /// state afterwards.
    fn act<'a>(
        &'a self,
        target: &'a Target,
        action: Action,
        until: Instant,
    ) -> BoxFuture<'a, Result<Power, DriveError>>;
}
