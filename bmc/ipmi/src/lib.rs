//! An IPMI 2.0 client over the network (RMCP+), as much of it as bare metal needs.
//!
//! What: sessions with cipher suites 17 and 3, chassis power and boot device, identify LED,
//! device id, system GUID, FRU, the BMC's own MAC address, sensors of power supplies, and DCMI's
//! asset tag and power reading.
//! Why our own: the published crates block a thread for each BMC and know no suite 17.
//!
//! Invariants: the pure parts ([`packet`], [`rakp`], [`managed`], [`fru`], [`dcmi::Piece`], the
//! decoders of [`power`] and [`sdr`]) do no I/O and never panic on what a BMC sends; a [`Session`]
//! bounds every wait and every retry; a password is never printed.
//!
//! Source: Intelligent Platform Management Interface Specification 2.0 rev. 1.1 ("the
//! specification" below), sections 13 (LAN interface), 22 (messaging), 28 (chassis), 33 and 35
//! (sensors), 34 (FRU).
//!
//! Entry point: [`Session::connect`].

mod chassis;
mod credentials;
pub mod dcmi;
mod device;
mod error;
pub mod fru;
pub mod managed;
pub mod packet;
pub mod power;
pub mod rakp;
pub mod sdr;
mod session;
mod suite;

pub use chassis::{BootDevice, BootOverride, ChassisStatus, Identify, PowerControl};
pub use credentials::Credentials;
pub use device::{DeviceId, SystemGuid};
pub use error::IpmiError;
pub use session::{Session, Timing};
pub use suite::CipherSuite;
