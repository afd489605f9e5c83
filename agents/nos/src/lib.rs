//! Switch back-ends: configure the ports of a switch as desired.
//!
//! A [`Nos`] observes the switch ([`Observation`]) and applies single steps ([`Step`]). One type,
//! [`model::SwitchModel`], is the desired and the observed state. The pure functions [`plan`], which
//! decides steps and order, and [`interpret`], which says what a step means, are alike for every
//! back-end. [`run_pass`] applies a plan and verifies it, [`find_drift`] tells what somebody else
//! changed. Back-ends: [`linux`] (bridges, VXLAN and VRFs through netlink, BGP and EVPN through
//! FRR), [`sonic`] (CONFIG_DB through redis, and FRR likewise), and for tests [`stub`] (in memory,
//! with faults on demand) and [`chaos`] (another one with faults by seed).
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
//! - A step goes only after an observation shows those in effect that it depends on; a failed one
//!   holds those, and nothing else ([`Dependencies`], [`schedule`]).
//! - What a switch cannot have is reported object by object, and the rest is planned ([`fit`]).
//! - VRFs and policies of others stay ([`fit`]). Only configured ports, and devices with our name
//!   prefixes, are changed ([`linux`]).

mod back_end;
mod capability;
pub mod chaos;
mod dependency;
mod describe;
mod drift;
mod effect;
mod fit;
pub mod frr;
mod interpret;
pub mod linux;
pub mod lldp;
pub mod model;
mod observation;
mod pass;
mod plan;
mod problem;
mod router;
mod safety;
pub mod sonic;
mod step;
pub mod stub;
mod telemetry;
mod vni;

pub use back_end::{Nos, NosError};
pub use capability::Capability;
pub use dependency::Dependencies;
pub use describe::describe;
pub use drift::{Drift, find_drift, steps_to_hold};
pub use effect::is_in_effect;
pub use fit::{Fitted, fit};
pub use interpret::{StepError, interpret};
pub use model::{Membership, SwitchModel};
pub use observation::{Observation, PortLink};
pub use pass::{
    FailedStep, Failure, HeldStep, Limits, Passed, Schedule, observe, run_pass, schedule,
};
pub use plan::{Plan, plan};
pub use problem::{Problem, Refusal, SwitchObject};
pub use safety::keeps_tenants_apart;
pub use step::Step;
pub use telemetry::{EvpnSizes, LinkCounters, Optics, PortTelemetry, Telemetry};
pub use vni::{Vni, VniError};
