use super::StepError;
use crate::model::{Membership, Port, PortName, SwitchModel, VrfName};
use crate::problem::SwitchObject;

pub(super) fn port<'a>(
    model: &'a mut SwitchModel,
    name: &PortName,
) -> Result<&'a mut Port, StepError> {
    let missing = || StepError::Missing(SwitchObject::Port(name.clone()));
    model.ports.get_mut(name).ok_or_else(missing)
}

pub(super) fn quarantine(model: &mut SwitchModel, name: &PortName) -> Result<(), StepError> {
    // FRR frees a neighbour some time after its interface: a port that left with its neighbour
    // would take the session along into its next place.
    if model.neighbour_on(name).is_some() {
        return Err(StepError::InUse(SwitchObject::Port(name.clone())));
    }
    port(model, name)?.membership = Membership::Quarantine;
    Ok(())
}

pub(super) fn enter(
    model: &mut SwitchModel,
    name: &PortName,
    place: &Membership,
) -> Result<(), StepError> {
    match place {
        Membership::Segment { vni, .. } if !model.segments.contains_key(vni) => {
            return Err(StepError::Missing(SwitchObject::Segment(*vni)));
        }
        Membership::Routed(vrf) => guarded(model, vrf)?,
        _ => {}
    }
    let port = port(model, name)?;
    let can_enter = match (&port.membership, place) {
        (_, Membership::Quarantine | Membership::Foreign(_)) => false,
        (Membership::Quarantine, _) => true,
        (Membership::Segment { vni: from, .. }, Membership::Segment { vni, .. }) => from == vni,
        (from, to) => from == to,
    };
    if !can_enter {
        return Err(StepError::NotQuarantined(SwitchObject::Port(name.clone())));
    }
    port.membership = place.clone();
    Ok(())
}

/// Checks that a VRF is there and keeps its ports off the underlay.
pub(super) fn guarded(model: &SwitchModel, name: &VrfName) -> Result<(), StepError> {
    let object = || SwitchObject::Vrf(name.clone());
    let vrf = model.vrfs.get(name);
    let vrf = vrf.ok_or_else(|| StepError::Missing(object()))?;
    if !vrf.has_unreachable_default || !model.is_l3mdev_first {
        return Err(StepError::Unguarded(object()));
    }
    Ok(())
}
