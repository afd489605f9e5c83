//! The firewall's place among those of its project: how far routes keep from it.
//!
//! Control says how many firewalls are preferred to this one. FRR's route map for the EVPN makes the
//! AS path longer for each of them, so that BGP takes another firewall as long as there is one. The
//! installer's configuration begins with the longest distance: no route prefers a firewall whose
//! rules are not in force yet.

mod distance;
mod frr;
mod keeper;
mod observed;

pub use distance::RouteDistance;
pub use keeper::DistanceKeeper;
pub use observed::ObservedDistance;
