use std::net::Ipv4Addr;

use proto_types::Asn;

use super::StepError;
use crate::model::{Bgp, BgpNeighbour, PortName, SwitchModel, VrfName};
use crate::problem::SwitchObject;
use crate::step::Step;

pub(super) fn interpret(model: &mut SwitchModel, step: &Step) -> Result<(), StepError> {
    match step {
        Step::EnsureBgp {
            asn,
            router_id,
            is_draining,
        } => {
            ensure(model, *asn, *router_id)?;
            bgp(model)?.is_draining = *is_draining;
            Ok(())
        }
        Step::RemoveBgp => remove(model),
        Step::EnsureBgpVrf { vrf } => ensure_vrf(model, vrf),
        Step::RemoveBgpVrf { vrf } => remove_vrf(model, vrf),
        Step::SetNeighbour {
            vrf,
            port,
            neighbour,
        } => set_neighbour(model, vrf.as_ref(), port, neighbour),
        Step::RemoveNeighbour { vrf, port } => {
            let bgp = model.bgp.as_mut();
            if let Some(of) = bgp.and_then(|bgp| bgp.neighbours_mut(vrf.as_ref())) {
                of.remove(port);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn bgp(model: &mut SwitchModel) -> Result<&mut Bgp, StepError> {
    let missing = StepError::Missing(SwitchObject::Bgp);
    model.bgp.as_mut().ok_or(missing)
}

fn ensure(model: &mut SwitchModel, asn: Asn, router_id: Ipv4Addr) -> Result<(), StepError> {
    let wanted = Bgp::new(asn, router_id).map_err(|_| StepError::Missing(SwitchObject::Bgp))?;
    match &mut model.bgp {
        Some(bgp) if bgp.asn() != asn => return Err(StepError::Exists(SwitchObject::Bgp)),
        Some(bgp) => {
            bgp.take_router_id(&wanted);
            bgp.is_intact = true;
        }
        none => *none = Some(wanted),
    }
    Ok(())
}

fn remove(model: &mut SwitchModel) -> Result<(), StepError> {
    let bgp = model.bgp.as_ref();
    if bgp.is_some_and(|bgp| !bgp.vrfs.is_empty() || !bgp.underlay.is_empty()) {
        return Err(StepError::InUse(SwitchObject::Bgp));
    }
    model.bgp = None;
    Ok(())
}

fn ensure_vrf(model: &mut SwitchModel, vrf: &VrfName) -> Result<(), StepError> {
    if !model.vrfs.contains_key(vrf) {
        return Err(StepError::Missing(SwitchObject::Vrf(vrf.clone())));
    }
    bgp(model)?.vrfs.entry(vrf.clone()).or_default();
    Ok(())
}

fn remove_vrf(model: &mut SwitchModel, vrf: &VrfName) -> Result<(), StepError> {
    let Some(bgp) = &mut model.bgp else {
        return Ok(());
    };
    if bgp.vrfs.get(vrf).is_some_and(|of| !of.is_empty()) {
        return Err(StepError::InUse(SwitchObject::BgpVrf(vrf.clone())));
    }
    bgp.vrfs.remove(vrf);
    Ok(())
}

fn set_neighbour(
    model: &mut SwitchModel,
    vrf: Option<&VrfName>,
    port: &PortName,
    neighbour: &BgpNeighbour,
) -> Result<(), StepError> {
    let object = || SwitchObject::Neighbour {
        vrf: vrf.cloned(),
        port: port.clone(),
    };
    let unfiltered = || StepError::Unfiltered(object());
    let filters = neighbour.filters().ok_or_else(unfiltered)?;
    for name in filters {
        let map = model.policies.route_maps.get(name);
        let missing = || StepError::Missing(SwitchObject::RouteMap(name.clone()));
        if !model.policies.has_lists_of(map.ok_or_else(missing)?) {
            return Err(unfiltered());
        }
    }
    if !model.is_bound(vrf, port) {
        return Err(unfiltered());
    }
    let missing = || match vrf {
        None => StepError::Missing(SwitchObject::Bgp),
        Some(vrf) => StepError::Missing(SwitchObject::BgpVrf(vrf.clone())),
    };
    let of = bgp(model)?.neighbours_mut(vrf).ok_or_else(missing)?;
    of.insert(port.clone(), neighbour.clone());
    Ok(())
}
