//! The part of a desired state that a switch can have.

mod bgp;
mod numbers;
mod packet_filter;
mod policies;
mod ports;
mod segments;

use crate::capability::Capability;
use crate::model::SwitchModel;
use crate::problem::{Problem, Refusal, SwitchObject};

/// The part of a desired state that a switch can have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fitted {
    /// The state that the switch ends in.
    pub model: SwitchModel,
    /// The parts that it cannot have, in the order of their objects.
    pub problems: Vec<Problem>,
}

/// Leaves out of a desired state what the switch cannot have, object by object, and adds what is to
/// stay: VRFs and policies that are not ours, and what the desired state leaves open. What is left
/// can be said in FRR's words ([`crate::frr::Routing::to_frr`]), so that one object never holds up
/// the others.
///
/// A port whose place is refused is quarantined. A neighbour without a complete filter is left out.
#[must_use]
pub fn fit(observed: &SwitchModel, desired: &SwitchModel, capabilities: &[Capability]) -> Fitted {
    let mut fitter = Fitter {
        observed,
        desired,
        capabilities,
        model: SwitchModel::default(),
        problems: Vec::new(),
    };
    fitter.vtep();
    let mut taken = fitter.vrfs();
    fitter.segments(&mut taken);
    fitter.ports();
    fitter.packet_filter();
    fitter.policies();
    fitter.bgp();
    fitter.keep_policies_of_others();
    fitter.problems.sort();
    fitter.problems.dedup();
    Fitted {
        model: fitter.model,
        problems: fitter.problems,
    }
}

/// A desired state on its way to a fitted one.
struct Fitter<'a> {
    observed: &'a SwitchModel,
    desired: &'a SwitchModel,
    capabilities: &'a [Capability],
    model: SwitchModel,
    problems: Vec<Problem>,
}

impl Fitter<'_> {
    /// Notes that an object is refused.
    fn refuse(&mut self, object: SwitchObject, refusal: Refusal) {
        self.problems.push(Problem { object, refusal });
    }

    /// The reason to refuse an object that needs a capability. `None` if the back-end has it.
    fn lacks(&self, capability: Capability) -> Option<Refusal> {
        let has = self.capabilities.contains(&capability);
        (!has).then_some(Refusal::Unsupported(capability))
    }

    fn vtep(&mut self) {
        self.model.vtep = self.desired.vtep.or(self.observed.vtep);
        let is_new = self.model.vtep != self.observed.vtep;
        if let Some(refusal) = self.lacks(Capability::Underlay).filter(|_| is_new) {
            self.refuse(SwitchObject::Vtep, refusal);
            self.model.vtep = self.observed.vtep;
        }
    }
}
