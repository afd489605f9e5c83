use crate::model::{Membership, SwitchModel};
use crate::step::Step;

/// `true` if a switch in this state lets tenants meet, or reach the underlay, until a step is in
/// effect: a port is in a place that is not its own, a session or a tunnel end is there that should
/// not be, a VRF is open, or a filter is not as desired.
///
/// A missing object is none of these: it only keeps a tenant from its own.
#[must_use]
pub fn keeps_tenants_apart(step: &Step, observed: &SwitchModel) -> bool {
    match step {
        Step::Quarantine { .. }
        | Step::RemoveNeighbour { .. }
        | Step::RemoveRemote { .. }
        | Step::SetGateway { gateway: None, .. }
        | Step::PutL3mdevFirst
        | Step::EnsurePacketFilter
        | Step::EnsurePrefixList { .. }
        | Step::RemovePrefix { .. }
        | Step::SetAsPathList { .. }
        | Step::SetRouteMap { .. } => true,
        // Out of quarantine is no matter of safety; a change of privacy is.
        Step::Enter { port, .. } => {
            let seen = observed.ports.get(port);
            seen.is_some_and(|seen| seen.membership != Membership::Quarantine)
        }
        // Before its port enters the underlay it filters nothing.
        Step::SetVxlanFilter { port, .. } => {
            let seen = observed.ports.get(port);
            seen.is_some_and(|seen| seen.membership == Membership::Underlay)
        }
        // A tunnel that is more open than desired joins private ports of several switches.
        Step::EnsureSegment { vni, tunnel, .. } => {
            let seen = observed.segments.get(vni);
            seen.is_some_and(|seen| seen.tunnel < *tunnel)
        }
        Step::EnsureVrf { name, .. } => observed.vrfs.contains_key(name),
        Step::SetNeighbour { vrf, port, .. } => {
            let bgp = observed.bgp.as_ref();
            let of = bgp.and_then(|bgp| bgp.neighbours(vrf.as_ref()));
            of.is_some_and(|of| of.contains_key(port))
        }
        _ => false,
    }
}
