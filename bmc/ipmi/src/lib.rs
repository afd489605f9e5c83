//! An IPMI 2.0 client over the network (RMCP+), as much of it as bare metal needs.
//!
//! It covers sessions with cipher suites 17 and 3, chassis power and boot device, identify light,
//! device id, system GUID, FRU, the BMC's own MAC address, sensors of power supplies, and DCMI's
//! asset tag and power reading. It is our own because the published crates block a thread for each
//! BMC and do not support suite 17.
//!
//! Invariants:
//! - The pure parts ([`packet`], [`rakp`], [`managed`], [`fru`], [`dcmi::Piece`], the decoders of
//!   [`power`] and [`sdr`]) do no I/O and never panic on bytes from a BMC.
//! - A [`Session`] bounds every wait, every retry and every stray packet.
//! - A password is never printed, and it never travels: both sides only prove that they know it.
//! - Within a session only encrypted and authenticated packets are accepted.
//!
//! Source: Intelligent Platform Management Interface Specification 2.0 rev. 1.1 ("the
//! specification" below), sections 13 (LAN interface), 22 (messaging), 28 (chassis), 33 and 35
//! (sensors), 34 (FRU).
//!
//! Entry point: [`Session::connect`].

mod boot;
mod chassis;
mod credentials;
pub mod dcmi;
mod device;
mod error;
pub mod fru;
pub mod managed;
mod message;
pub mod packet;
pub mod power;
pub mod rakp;
pub mod sdr;
mod session;
mod suite;
mod supply_states;

pub use boot::{BootDevice, BootOverride};
pub use chassis::{ChassisStatus, Identify, PowerControl};
pub use credentials::Credentials;
pub use device::{DeviceId, SystemGuid};
pub use error::IpmiError;
pub use session::{Session, Timing};
pub use suite::CipherSuite;
