//! A Redfish client, as much of it as bare metal needs: inventory, power, boot device, locator
//! light, asset tag, what a machine draws and the state of its power supplies.
//!
//! Why our own: the published clients skip the check of the BMC's certificate, or follow links to
//! other hosts with the password in hand, or bring an HTTP stack of their own.
//!
//! Invariants:
//! - the password goes only to the configured host, over a connection whose certificate was
//!   checked (by its SHA-256 or by a CA), or in the clear only when [`Trust::PlainHttp`] says so;
//! - every wait, every body and every collection is bounded;
//! - power on is `On`: a machine that is off is never "restarted";
//! - a value that the BMC does not list as allowable is not sent: the error names what it allows.
//!
//! Source: DMTF DSP0266 (protocol) and DSP0268 (schema guide: ComputerSystem, Manager, Chassis,
//! Power, PowerSubsystem, PowerSupply, EnvironmentMetrics, Sensor).
//!
//! Entry point: [`Session`].

mod connection;
mod error;
mod inventory;
mod json;
mod power;
mod session;
mod system;
mod trust;

pub use connection::{Credentials, Endpoint, Timing};
pub use error::RedfishError;
pub use inventory::{Chassis, Inventory, Manager};
pub use power::{Power, PowerMetric, PowerSupply, SUPPLIES_MAX};
pub use session::Session;
pub use system::{BootOverride, BootTarget, Led, PowerState, Reset, System};
pub use trust::Trust;
