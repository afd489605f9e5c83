//! Switch back-ends: configure the ports of a switch as desired.
//!
//! A [`SwitchOs`] observes the switch ([`SwitchState`]) and applies single changes ([`Delta`]). The
//! pure function [`plan`] decides the changes and their order, alike for every back-end. Back-ends:
//! [`linux`] (bridge and VXLAN per segment through netlink) and [`stub`] (in memory, with faults on
//! demand, for tests).
//!
//! Invariants:
//! - A switch is changed step by step and never reloaded ([`SwitchOs::apply`]).
//! - A port leaves its old segment before any port enters a new one, and is brought up last
//!   ([`plan`]).
//! - A port that the intent does not name is isolated ([`plan`]).
//! - Only configured ports, and devices with our name prefixes, are changed ([`linux`]).

pub mod frr;
mod intent;
pub mod linux;
pub mod lldp;
mod place;
mod plan;
mod state;
pub mod stub;
mod vni;

use std::future::Future;

pub use intent::{Intent, PortIntent, SegmentIntent};
pub use place::PortPlace;
pub use plan::{Delta, Plan, plan};
pub use state::{PortObserved, SegmentObserved, SwitchState};
use thiserror::Error;
pub use vni::{Vni, VniError};

/// A failure of a back-end to observe or change the switch.
#[derive(Debug, Error)]
pub enum OsError {
    /// The interface does not exist.
    #[error("no interface {0}")]
    NoInterface(String),
    /// A device with a name of ours is of another kind.
    #[error("{0} exists and is not ours")]
    NotOurs(String),
    /// The kernel refused an action.
    #[error("{action}")]
    Netlink {
        /// The action.
        action: String,
        /// The kernel's error.
        #[source]
        source: Box<rtnetlink::Error>,
    },
    /// The netlink socket cannot be opened.
    #[error("cannot open the netlink socket")]
    Open(#[source] std::io::Error),
    /// A fault that a test has requested of the stub.
    #[error("fault injected: {0}")]
    Injected(String),
}

/// One kind of switch operating system.
pub trait SwitchOs: Send + Sync {
    /// Vendor for the registration: "linux", "sonic".
    fn vendor(&self) -> &'static str;

    /// Version of the operating system. Empty if unknown.
    fn version(&self) -> String;

    /// Observes the current state of the switch.
    fn observe(&self) -> impl Future<Output = Result<SwitchState, OsError>> + Send;

    /// Applies one change. Idempotent: no error if the change is in place already.
    fn apply(&self, delta: &Delta) -> impl Future<Output = Result<(), OsError>> + Send;

    /// Returns after a change that this back-end may not have made itself.
    fn changed(&self) -> impl Future<Output = ()> + Send;

    /// LLDP neighbours by port, if the operating system speaks LLDP itself. `None` means that the
    /// agent has to.
    fn neighbours(&self) -> Option<lldp::Neighbours> {
        None
    }
}
