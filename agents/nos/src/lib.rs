//! Switch back-ends: configure the ports of a switch as desired.
//!
//! A [`Nos`] observes the switch ([`Observation`]) and applies single steps ([`Step`]). One type,
//! [`model::SwitchModel`], is the desired and the observed state. The pure functions [`plan`], which
//! decides steps and order, and [`interpret`], which says what a step means, are alike for every
//! back-end. Back-ends: [`linux`] (bridges, VXLAN and VRFs through netlink, BGP and EVPN through
//! FRR) and [`stub`] (in memory, with faults on demand, for tests).
//!
//! Invariants:
//! - A switch is changed step by step and never reloaded ([`Nos::apply`]).
//! - Neighbours leave before their port, and a port leaves its old place before any port enters a
//!   new one ([`plan`]).
//! - A port enters only a place that exists, a neighbour only with filters that exist; ports are
//!   brought up after both ([`interpret`] refuses other steps).
//! - An isolated port is in quarantine, never without master: it would be routed in the default VRF
//!   ([`model::Membership`]).
//! - A port that the desired state does not name is quarantined ([`fit`]).
//! - What a switch cannot have is reported object by object, and the rest is planned ([`fit`]).
//! - VRFs and policies of others stay ([`fit`]). Only configured ports, and devices with our name
//!   prefixes, are changed ([`linux`]).

mod back_end;
mod capability;
mod fit;
pub mod frr;
mod interpret;
pub mod linux;
pub mod lldp;
pub mod model;
mod observation;
mod plan;
mod problem;
mod step;
pub mod stub;
mod vni;

pub use back_end::{Nos, NosError};
pub use capability::Capability;
pub use fit::{Fitted, fit};
pub use interpret::{StepError, interpret};
pub use model::{Membership, SwitchModel};
pub use observation::{Observation, PortLink};
pub use plan::{Plan, plan};
pub use problem::{Problem, Refusal, SwitchObject};
pub use step::Step;
pub use vni::{Vni, VniError};
