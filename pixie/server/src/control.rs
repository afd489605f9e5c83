//! The calls to control, as a trait: the mesh in production, a stand-in in tests.

use std::net::Ipv4Addr;

use futures::future::BoxFuture;
use pixie_boot::Target;
use proto_types::{MacAddr, MachineId};

pub use crate::boot::{Seen, SwitchPort, Ticket};
pub use crate::desired::Desired;

/// A lease of a BMC in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmcLease {
    pub mac: MacAddr,
    pub address: Ipv4Addr,
    pub expires_ms: u64,
}

/// The reason why a call to control failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// Control did not answer. A retry may succeed.
    #[error("control is away: {0}")]
    Away(String),
    /// Control refused the call. A retry does not help.
    #[error("control refuses: {0}")]
    Refused(String),
}

/// The calls to control.
pub trait Control: Send + Sync + 'static {
    /// Reports that a machine boots. The answer is its boot target; `None` means that control does
    /// not name one.
    fn seen(&self, seen: Seen) -> BoxFuture<'_, Result<Option<Target>, ControlError>>;

    /// Requests a boot ticket for exactly this machine.
    fn issue_ticket(
        &self,
        machine: MachineId,
        mac: MacAddr,
    ) -> BoxFuture<'_, Result<Ticket, ControlError>>;

    /// Reports all leases of BMCs.
    fn report_leases(&self, leases: Vec<BmcLease>) -> BoxFuture<'_, Result<(), ControlError>>;
}
