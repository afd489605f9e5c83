//! What pixie needs of control, as a trait: the mesh in production, a stand-in in tests.

use std::net::Ipv4Addr;

use futures::future::BoxFuture;
use pixie_boot::{InstallerSource, Machines, Target};
use proto_types::{MacAddr, MachineId};
use serde::{Deserialize, Serialize};

/// A machine asked to boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub machine: MachineId,
    pub mac: MacAddr,
    /// DHCP option 93.
    pub arch: u16,
    /// When it asked, milliseconds since the epoch.
    pub seen_ms: u64,
    /// It was sent to its disk without control's word.
    #[serde(default)]
    pub to_disk: bool,
}

/// A one-time boot ticket.
#[derive(Clone)]
pub struct Ticket {
    pub id: String,
    pub secret: Vec<u8>,
    /// Root certificates of control, DER.
    pub roots: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket")
            .field("id", &self.id)
            .field("secret", &"<redacted>")
            .finish()
    }
}

/// A lease of a BMC, as control hears of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmcLease {
    pub mac: MacAddr,
    pub address: Ipv4Addr,
    pub expires_ms: u64,
}

/// What control wants: who boots what.
#[derive(Debug, Clone, Default)]
pub struct Desired {
    pub generation: u64,
    /// Where hammer's kernel and image come from.
    pub installer: InstallerSource,
    /// The partition's kernel command line of hammer: [`InstallerSource::commandline`].
    pub commandline: String,
    /// Where machines reach the mesh, `host:port`.
    pub control: Vec<String>,
    pub machines: Machines,
}

/// Why control did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// Nobody answered: it is worth trying again.
    #[error("control is away: {0}")]
    Away(String),
    /// Control said no: trying again changes nothing.
    #[error("control refuses: {0}")]
    Refused(String),
}

/// The calls pixie makes.
pub trait Control: Send + Sync + 'static {
    /// Tells that a machine asked to boot; the answer is what it boots now, when control says.
    fn seen(&self, seen: Seen) -> BoxFuture<'_, Result<Option<Target>, ControlError>>;

    /// Asks for a boot ticket for exactly this machine.
    fn issue_ticket(
        &self,
        machine: MachineId,
        mac: MacAddr,
    ) -> BoxFuture<'_, Result<Ticket, ControlError>>;

    /// Tells all BMC leases.
    fn report_leases(&self, leases: Vec<BmcLease>) -> BoxFuture<'_, Result<(), ControlError>>;
}
