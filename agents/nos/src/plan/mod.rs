//! The steps from one state to another, and their order.

mod build;
mod kept;
mod leave;
mod remove;

use kept::Kept;

use crate::capability::Capability;
use crate::fit::{Fitted, fit};
use crate::model::SwitchModel;
use crate::problem::Problem;
use crate::step::Step;

/// The steps from the observed to the desired state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Steps in the order to apply them. Empty if the switch is as desired.
    pub steps: Vec<Step>,
    /// Parts of the desired state that this switch cannot have.
    pub problems: Vec<Problem>,
}

/// Plans the steps from the observed to the desired state, as far as the switch can have it
/// ([`fit`]).
///
/// The order keeps tenants apart after every step:
/// 1. Ports go down, neighbours leave, ports leave, gateways leave. All of them before anything
///    enters: an exchange of two tenants' ports would otherwise have both in one place for a moment.
/// 2. Tunnel ends and prefixes that must pass nothing more are cut.
/// 3. BGP instances that end are removed, and segments and VRFs whose VLAN, VNI or table is needed.
/// 4. VRFs, segments, gateways, filters of packets and routes, and BGP instances are made.
/// 5. Ports enter, neighbours enter, and only then ports come up, those of the underlay first.
/// 6. Leftovers are removed. They come after the ports, because one that the switch does not give
///    up must not keep a tenant's port down.
#[must_use]
pub fn plan(observed: &SwitchModel, desired: &SwitchModel, capabilities: &[Capability]) -> Plan {
    let Fitted { model, problems } = fit(observed, desired, capabilities);
    let steps = steps_to(observed, &model);
    Plan { steps, problems }
}

/// The steps from an observed to a fitted state, in the order of [`plan`].
pub(crate) fn steps_to(observed: &SwitchModel, target: &SwitchModel) -> Vec<Step> {
    let change = Kept { observed, target };
    let mut steps = Vec::new();
    leave::plan(&change, &mut steps);
    remove::plan_early(&change, &mut steps);
    build::plan(&change, &mut steps);
    remove::plan_late(&change, &mut steps);
    steps
}
