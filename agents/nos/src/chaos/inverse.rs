use crate::model::{Membership, SwitchModel};
use crate::step::Step;

/// The step that takes a change back. `None` if a switch would not lose the change by itself, or if
/// there is no single step back.
pub(super) fn inverse(step: &Step, before: &SwitchModel) -> Option<Step> {
    let back = match step {
        Step::SetAdmin { port, up } => Step::SetAdmin {
            port: port.clone(),
            up: !up,
        },
        Step::SetMtu { port, .. } => Step::SetMtu {
            port: port.clone(),
            mtu: before.ports.get(port)?.mtu?,
        },
        Step::Enter { port, .. } => Step::Quarantine { port: port.clone() },
        Step::Quarantine { port } => {
            let place = before.ports.get(port)?.membership.clone();
            let is_place = !matches!(place, Membership::Quarantine | Membership::Foreign(_));
            is_place.then(|| Step::Enter {
                port: port.clone(),
                place,
            })?
        }
        Step::EnsureSegment { vni, .. } if !before.segments.contains_key(vni) => {
            Step::RemoveSegment { vni: *vni }
        }
        Step::AddRemote { vni, remote } => Step::RemoveRemote {
            vni: *vni,
            remote: *remote,
        },
        Step::RemoveRemote { vni, remote } => Step::AddRemote {
            vni: *vni,
            remote: *remote,
        },
        Step::EnsureVrf { name, .. } if !before.vrfs.contains_key(name) => {
            Step::RemoveVrf { name: name.clone() }
        }
        Step::SetNeighbour { vrf, port, .. } => Step::RemoveNeighbour {
            vrf: vrf.clone(),
            port: port.clone(),
        },
        Step::AddPrefix { list, rule } => Step::RemovePrefix {
            list: list.clone(),
            rule: *rule,
        },
        Step::RemovePrefix { list, rule } => Step::AddPrefix {
            list: list.clone(),
            rule: *rule,
        },
        _ => return None,
    };
    Some(back)
}
