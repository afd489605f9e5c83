//! The meaning of steps.

mod bgp;
mod error;
mod packet_filter;
mod policies;
mod ports;
mod segments;

pub use error::StepError;

use crate::model::{Segment, SwitchModel};
use crate::step::Step;

/// Changes a model as a step changes a switch. A refused step changes nothing.
///
/// # Errors
/// When the step would break an invariant of the switch, or needs an object that does not exist.
pub fn interpret(model: &mut SwitchModel, step: &Step) -> Result<(), StepError> {
    match step {
        Step::SetAdmin { port, up } => {
            ports::port(model, port)?.admin_up = *up;
            Ok(())
        }
        Step::SetMtu { port, mtu } => {
            ports::port(model, port)?.mtu = Some(*mtu);
            Ok(())
        }
        Step::Quarantine { port } => ports::quarantine(model, port),
        Step::Enter { port, place } => ports::enter(model, port, place),
        Step::EnsureSegment {
            vni,
            vlan,
            mtu,
            tunnel,
        } => {
            let wanted = Segment {
                vlan: *vlan,
                tunnel: *tunnel,
                ..Segment::new(*mtu)
            };
            segments::ensure(model, *vni, wanted)
        }
        Step::RemoveSegment { vni } => segments::remove(model, *vni),
        Step::AddRemote { vni, remote } => {
            segments::segment(model, *vni)?.remotes.insert(*remote);
            Ok(())
        }
        Step::RemoveRemote { vni, remote } => {
            segments::segment(model, *vni)?.remotes.remove(remote);
            Ok(())
        }
        Step::SetGateway { vni, gateway } => segments::set_gateway(model, *vni, gateway.as_ref()),
        Step::PutL3mdevFirst => {
            model.is_l3mdev_first = true;
            Ok(())
        }
        Step::EnsureVrf { name, vrf } => segments::ensure_vrf(model, name, *vrf),
        Step::RemoveVrf { name } => segments::remove_vrf(model, name),
        Step::SetVtep { address } => {
            model.vtep = Some(*address);
            Ok(())
        }
        Step::EnsurePacketFilter => {
            model.packet_filter.is_in_place = true;
            Ok(())
        }
        Step::SetVxlanFilter { port, filter } => packet_filter::set(model, port, Some(filter)),
        Step::RemoveVxlanFilter { port } => packet_filter::set(model, port, None),
        Step::EnsureBgp { .. }
        | Step::RemoveBgp
        | Step::EnsureBgpVrf { .. }
        | Step::RemoveBgpVrf { .. }
        | Step::SetNeighbour { .. }
        | Step::RemoveNeighbour { .. } => bgp::interpret(model, step),
        Step::EnsurePrefixList { .. }
        | Step::AddPrefix { .. }
        | Step::RemovePrefix { .. }
        | Step::RemovePrefixList { .. }
        | Step::SetAsPathList { .. }
        | Step::RemoveAsPathList { .. }
        | Step::SetRouteMap { .. }
        | Step::RemoveRouteMap { .. } => policies::interpret(model, step),
    }
}
