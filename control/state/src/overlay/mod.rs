//! The switches for their operators: the differences between desired and observed state, the
//! changes that a command would cause, and the way of a packet. Derived from the tables; nothing is
//! stored, and no switch is asked.

mod difference;
mod forecast;
mod outcome;
mod trace;
mod trace_firewall;
mod trace_link;
mod trace_walk;

pub use difference::{Difference, DifferenceState, differences};
pub use forecast::{FabricChange, forecast};
pub use outcome::PlannedChange;
pub use trace::{PacketTrace, TraceHop};
pub use trace_walk::trace_packet;

use crate::desired::PortPlace;
use crate::switch::entity::ObservedPlace;
use proto_types::{VNI_MAX, Vni};

/// A desired place in words.
fn desired_place(place: PortPlace, vni: Vni) -> String {
    match place {
        PortPlace::Segment if vni == Vni::NONE => "isolated".to_owned(),
        PortPlace::Segment => format!("segment {vni}"),
        PortPlace::Bridged => format!("segment of VRF {vni}"),
        PortPlace::Routed => format!("VRF {vni}"),
        PortPlace::Underlay => "underlay".to_owned(),
    }
}

/// An observed place in words. The gateway keeps a VNI that contradicts the place as the highest.
fn observed_place(place: ObservedPlace, vni: Vni) -> String {
    match place {
        ObservedPlace::Segment if vni == Vni::NONE => "isolated".to_owned(),
        ObservedPlace::Segment => format!("segment {vni}"),
        ObservedPlace::Routed if vni.get() == VNI_MAX => "unknown VRF".to_owned(),
        ObservedPlace::Routed => format!("VRF {vni}"),
        ObservedPlace::Underlay => "underlay".to_owned(),
        ObservedPlace::Other => "device of another program".to_owned(),
    }
}

/// `true` if an observed place is the desired one. The gateway keeps a port in the segment of a VRF
/// with that VRF.
fn is_place(place: PortPlace, observed: ObservedPlace) -> bool {
    matches!(
        (place, observed),
        (
            PortPlace::Segment | PortPlace::Bridged,
            ObservedPlace::Segment
        ) | (PortPlace::Routed, ObservedPlace::Routed)
            | (PortPlace::Underlay, ObservedPlace::Underlay)
    )
}

/// An administrative state in words.
fn up_or_down(is_up: bool) -> &'static str {
    if is_up { "up" } else { "down" }
}
