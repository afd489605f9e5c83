use super::StepError;
use crate::model::{PortName, SwitchModel, VxlanFilter};
use crate::problem::SwitchObject;

/// Sets or removes the filter of a port. The rules for all ports come first: they send packets to
/// it.
pub(super) fn set(
    model: &mut SwitchModel,
    port: &PortName,
    filter: Option<&VxlanFilter>,
) -> Result<(), StepError> {
    let filters = &mut model.packet_filter;
    if !filters.is_in_place {
        return Err(StepError::Missing(SwitchObject::PacketFilter));
    }
    match filter {
        Some(filter) => filters.firewalls.insert(port.clone(), filter.clone()),
        None => filters.firewalls.remove(port),
    };
    Ok(())
}
