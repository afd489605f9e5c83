//! A Redfish client, as much of it as bare metal needs: inventory, power, boot device, locator
//! light, asset tag, power consumption and the state of power supplies.
//!
//! It is our own because the published clients skip the check of the BMC's certificate, or follow
//! links to other hosts with the password, or bring an HTTP stack of their own. The transport is
//! hyper; `docs/dependencies.md` says why it is not `reqwest`.
//!
//! Invariants:
//! - The password goes only to the configured host, over a connection whose certificate was checked
//!   (by its SHA-256 or by a CA), or in the clear only with [`Trust::PlainHttp`].
//! - Every wait, every body and every collection is bounded.
//! - A session has one connection and one request at a time.
//! - Power on is `On`: a machine that is off is never "restarted".
//! - A value that the BMC does not list as allowable is not sent; the error names the allowed ones.
//!
//! Source: DMTF DSP0266 (protocol) and DSP0268 (schema guide: ComputerSystem, Manager, Chassis,
//! Power, PowerSubsystem, PowerSupply, EnvironmentMetrics, Sensor).
//!
//! Entry point: [`Session`].

mod boot_override;
mod connection;
mod endpoint;
mod error;
mod inventory;
mod json;
mod power;
mod power_links;
mod reset;
mod session;
mod system;
mod trust;

pub use boot_override::{BootOverride, BootTarget};
pub use endpoint::{Credentials, Endpoint, Timing};
pub use error::RedfishError;
pub use inventory::{Chassis, Inventory, Manager};
pub use power::{Power, PowerMetric, PowerSupply, SUPPLIES_MAX};
pub use reset::{PowerState, Reset};
pub use session::Session;
pub use system::{Led, System};
pub use trust::Trust;
