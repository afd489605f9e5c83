//! FRR: a canonical configuration, and a driver that changes a running FRR by deltas.
//!
//! A back-end makes an [`FrrConfig`] from its desired state and gives it to [`Frr`]:
//!
//! ```no_run
//! # async fn reconcile(desired: &agents_nos::frr::FrrConfig) -> Result<(), agents_nos::frr::FrrError> {
//! use agents_nos::frr::{Frr, Vtysh};
//! let frr = Frr::new(Vtysh::default());
//! let observed = frr.observe().await?; // drift: diff(&observed, desired) is not empty
//! let now = frr.apply(&observed, desired).await?; // verified; keep it for the next time
//! # Ok(()) }
//! ```
//!
//! [`Routing`] is the part of a switch's model that FRR keeps: [`Routing::to_frr`] makes the
//! configuration of it, [`Routing::from_frr`] reads it back.
//! [`diff`] is the plan alone, for a dry run; [`render`] the text for FRR's start. Everything but
//! [`Frr`] is pure.
//!
//! Ours are: lists, route-maps and peer groups named `MM-…` ([`ObjectName`]); VRFs named `Vrf`
//! and a number, with the BGP instances in them; the instance in the default VRF; and of both the
//! unnumbered neighbours. All other lines are [`Observed::foreign`], and stay.
//!
//! Invariants:
//! - Equal meaning is an equal value, so that an unchanged state is an empty delta.
//! - `parse` of what FRR shows after `render` is the same configuration.
//! - A neighbour has its filters before it exchanges a route; who leaves goes first ([`diff`]).
//! - FRR is never reloaded; a session that a delta does not name stays up.
//! - vtysh's return codes prove nothing: [`Frr::apply`] reads the running configuration back.
//!
//! Filters of neighbours are route-maps which use prefix lists: FRR judges routes again when a list
//! in a route-map grows, but not when one that is bound to a neighbour directly does. It would
//! wait 5 s; [`Frr::apply`] asks for it at once.
//!
//! The order with the kernel: to add, VRF device, then FRR; to remove, FRR, then the device, then
//! [`Frr::forget_vrf`].

pub mod announced;
mod delta;
mod diff;
mod driver;
mod error;
pub mod failures;
mod model;
mod numbers;
mod object;
mod observed;
mod parse;
mod refresh;
mod render;
pub mod sessions;
mod settings;
mod translate;
pub mod vnis;
mod vty;
mod vtysh;

pub use delta::{Block, FrrDelta};
pub use diff::diff;
pub use driver::Frr;
pub use error::FrrError;
pub use model::{
    Action, AsPathKey, AsPathRegex, AsPathRule, Asn, BgpInstance, BgpVrf, CommunityKey,
    CommunityKind, CommunityRegex, CommunityRule, ConfigError, Description, Family, FrrConfig,
    InterfaceName, Neighbour, ObjectName, PeerFamily, PeerGroup, PeerSettings, PerFamily, PerIp,
    PrefixEntry, PrefixListKey, PrefixRule, Redistribute, Remote, RemoteAs, RouteMapEntry,
    RouteMapKey, Timers, VrfName, WordError,
};
pub use object::FrrObject;
pub use observed::{ForeignLine, Observed};
pub use parse::parse;
pub use refresh::{Direction, Peer, Refresh};
pub use render::render;
pub use translate::{Routing, RoutingError, RuleFault};
pub(crate) use translate::{check_name, check_neighbour, check_route_map};
pub use vtysh::Vtysh;
