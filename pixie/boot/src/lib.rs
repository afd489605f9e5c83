//! The decisions of pixie, without I/O: the answer to each boot client.
//!
//! A DHCP message is answered with a DHCP message ([`Network::answer`],
//! [`Network::answer_as_proxy`]), a machine with an iPXE script ([`script`]), the request for a boot
//! ticket with a permission or a refusal ([`BootLog`]).
//!
//! No sockets, no files, no clock: the caller passes `now_ms` (milliseconds since the epoch) and
//! persists changes. So every rule is tested by a table.
//!
//! Invariants:
//! - An Ethernet address holds at most one lease, and an IP address has at most one holder.
//! - An acknowledged address is not given to another client before its lease has expired.
//! - Only a client that names itself `PXEClient`, `HTTPClient` or iPXE is sent a boot file.
//! - A machine that boots the installer gets the one that control wants, or none yet
//!   ([`InstallerSource`]).
//! - A boot yields at most one ticket, and only to the address that booted.
//! - A request over a relay is answered only if the relay is that of a known switch, and speaks of
//!   its own port.
//!
//! Rules come from RFC 2131 (DHCP), RFC 4578 (PXE options), the PXE 2.1 specification (ProxyDHCP)
//! and UEFI 2.10 §24.7 (HTTP boot).

mod answer;
mod bootlog;
mod client;
mod installer;
mod lease;
mod lease_book;
mod machines;
mod network;
mod range;
mod relay;
mod relayed_ports;
pub mod script;

pub use answer::{Answer, NoAnswer};
pub use bootlog::{BOOT_VALID_MS, BOOTS_MAX, BootLog, TicketRefusal};
pub use client::{BmcMatch, Client, ClientClass};
pub use installer::{Installer, InstallerSource, InstallerUrls};
pub use lease::{Lease, LeaseError, Pool};
pub use lease_book::LeaseBook;
pub use machines::{Machine, Machines, Target};
pub use network::{BootFiles, Network};
pub use range::{PoolRange, Range, RangeError};
pub use relay::{RelayRefusal, RelayedPort, Relays, check_direct, link_of};
pub use relayed_ports::RelayedPorts;
