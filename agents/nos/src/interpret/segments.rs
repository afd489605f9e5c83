use super::StepError;
use super::ports::guarded;
use crate::model::{Gateway, Membership, Segment, SwitchModel, Tunnel, Vrf, VrfName};
use crate::problem::SwitchObject;
use crate::vni::Vni;

pub(super) fn segment(model: &mut SwitchModel, vni: Vni) -> Result<&mut Segment, StepError> {
    let missing = || StepError::Missing(SwitchObject::Segment(vni));
    model.segments.get_mut(&vni).ok_or_else(missing)
}

pub(super) fn ensure(model: &mut SwitchModel, vni: Vni, wanted: Segment) -> Result<(), StepError> {
    let vlan = wanted.vlan;
    if let Some((name, _)) = model.vrfs.iter().find(|(_, vrf)| vrf.l3_vni == Some(vni)) {
        return Err(StepError::Taken(SwitchObject::Vrf(name.clone())));
    }
    let mut others = model.segments.iter().filter(|(other, _)| **other != vni);
    let same_vlan = others.find(|(_, other)| vlan.is_some() && other.vlan == vlan);
    if let Some((other, _)) = same_vlan {
        return Err(StepError::Taken(SwitchObject::Segment(*other)));
    }
    let segment = model.segments.entry(vni).or_insert_with(|| wanted.clone());
    if segment.vlan != vlan {
        return Err(StepError::Exists(SwitchObject::Segment(vni)));
    }
    if !segment.is_intact {
        // A repair may make a new tunnel or bridge.
        *segment = wanted.clone();
    }
    segment.mtu = wanted.mtu;
    segment.tunnel = wanted.tunnel;
    if segment.tunnel == Tunnel::Absent {
        // The tunnel's remote ends go with it.
        segment.remotes.clear();
    }
    Ok(())
}

pub(super) fn remove(model: &mut SwitchModel, vni: Vni) -> Result<(), StepError> {
    let mut ports = model.ports.values();
    if ports.any(|port| port.membership.segment() == Some(vni)) {
        return Err(StepError::InUse(SwitchObject::Segment(vni)));
    }
    model.segments.remove(&vni);
    Ok(())
}

pub(super) fn set_gateway(
    model: &mut SwitchModel,
    vni: Vni,
    gateway: Option<&Gateway>,
) -> Result<(), StepError> {
    if let Some(gateway) = gateway {
        guarded(model, gateway.vrf())?;
    }
    segment(model, vni)?.gateway = gateway.cloned();
    Ok(())
}

pub(super) fn ensure_vrf(
    model: &mut SwitchModel,
    name: &VrfName,
    vrf: Vrf,
) -> Result<(), StepError> {
    let same_vni = vrf.l3_vni.filter(|vni| model.segments.contains_key(vni));
    if let Some(vni) = same_vni {
        return Err(StepError::Taken(SwitchObject::Segment(vni)));
    }
    let mut others = model.vrfs.iter().filter(|(other, _)| *other != name);
    let clash = others.find(|(_, other)| other.clashes(&vrf));
    if let Some((other, _)) = clash {
        return Err(StepError::Taken(SwitchObject::Vrf(other.clone())));
    }
    let found = model.vrfs.get(name);
    if found.is_some_and(|found| !found.is_same_device(&vrf)) {
        return Err(StepError::Exists(SwitchObject::Vrf(name.clone())));
    }
    model.vrfs.insert(name.clone(), vrf);
    Ok(())
}

pub(super) fn remove_vrf(model: &mut SwitchModel, name: &VrfName) -> Result<(), StepError> {
    let routed = Membership::Routed(name.clone());
    let has_port = model.ports.values().any(|port| port.membership == routed);
    let mut gateways = model.segments.values().filter_map(|s| s.gateway.as_ref());
    let has_gateway = gateways.any(|gateway| gateway.vrf() == name);
    let bgp = model.bgp.as_ref();
    if has_port || has_gateway || bgp.is_some_and(|bgp| bgp.vrfs.contains_key(name)) {
        return Err(StepError::InUse(SwitchObject::Vrf(name.clone())));
    }
    model.vrfs.remove(name);
    Ok(())
}
