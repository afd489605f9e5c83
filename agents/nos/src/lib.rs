//! Switch back-ends: what turns a desired port into a configured one.
//!
//! A [`SwitchOs`] says what the switch is ([`SwitchState`]) and carries out single changes
//! ([`Delta`]). Which changes, and in which order, is decided by the pure function [`plan`]; it is
//! the same for every back-end. Back-ends: [`linux`] (bridge and VXLAN per segment through
//! netlink) and [`stub`] (memory, with faults on demand, for tests).
//!
//! Invariants: a switch is never reloaded, it is changed step by step; a port leaves its old
//! segment before it enters the next and comes up last; a port that nobody asked for is isolated;
//! devices that do not carry our name prefix are never touched.

pub mod linux;
pub mod lldp;
mod model;
mod plan;
pub mod stub;

use std::future::Future;

pub use model::{
    Intent, NameError, Place, PortIntent, PortObserved, SegmentIntent, SegmentObserved,
    SwitchState, Vni,
};
pub use plan::{Delta, Plan, plan};
use thiserror::Error;

/// Why a back-end could not look or act.
#[derive(Debug, Error)]
pub enum OsError {
    #[error("no interface {0}")]
    NoInterface(String),
    #[error("{0} exists and is not ours")]
    NotOurs(String),
    #[error("{action}")]
    Netlink {
        action: String,
        #[source]
        source: Box<rtnetlink::Error>,
    },
    #[error("the netlink socket could not be opened")]
    Open(#[source] std::io::Error),
    #[error("fault injected: {0}")]
    Injected(String),
}

/// One kind of switch operating system.
pub trait SwitchOs: Send + Sync {
    /// What registers as the switch's vendor: "linux", "sonic".
    fn vendor(&self) -> &'static str;

    /// Version of the operating system; empty when it does not say.
    fn version(&self) -> String;

    /// What the switch is now.
    fn observe(&self) -> impl Future<Output = Result<SwitchState, OsError>> + Send;

    /// Carries out one change. Idempotent: a change that is already there is a success.
    fn apply(&self, delta: &Delta) -> impl Future<Output = Result<(), OsError>> + Send;

    /// Returns when something changed that this back-end may not have done itself.
    fn changed(&self) -> impl Future<Output = ()> + Send;

    /// Who is on which port, where the operating system speaks LLDP itself; `None` where the
    /// agent has to.
    fn neighbours(&self) -> Option<lldp::Neighbours> {
        None
    }
}
