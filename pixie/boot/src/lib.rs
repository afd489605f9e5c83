//! What a client boots: the pure decisions of pixie.
//!
//! DHCP message in, DHCP message out ([`Network::answer`], [`Network::answer_as_proxy`]); machine
//! in, iPXE script out ([`script`]); boot ticket wanted, yes or why not ([`BootLog`]).
//!
//! No sockets, no files, no clock: the caller passes `now_ms` (milliseconds since the epoch) and
//! writes down what changed. So every rule is tested by a table.
//!
//! Invariants:
//! - one Ethernet address holds at most one lease, one IP address at most one Ethernet address;
//! - an address that was acknowledged is not given to another client before its time has ended;
//! - only a client that names itself `PXEClient`, `HTTPClient` or iPXE is told a boot file;
//! - a machine that boots the installer gets the one that control wants, or none yet
//!   ([`InstallerSource`]);
//! - a boot yields at most one ticket, and only to the address that booted.
//!
//! Rules come from RFC 2131 (DHCP), RFC 4578 (PXE options), the PXE 2.1 specification (ProxyDHCP)
//! and UEFI 2.10 §24.7 (HTTP boot).

mod answer;
mod bootlog;
mod client;
mod installer;
mod lease;
mod machines;
mod network;
pub mod script;

pub use answer::{Answer, NoAnswer};
pub use bootlog::{BOOT_VALID_MS, BOOTS_MAX, BootLog, TicketRefusal};
pub use client::{BmcMatch, Client, ClientClass};
pub use installer::{Installer, InstallerSource, InstallerUrls};
pub use lease::{Lease, LeaseBook, LeaseError, Pool};
pub use machines::{Machine, Machines, Target};
pub use network::{BootFiles, Network, Range, RangeError};
