use std::future::Future;

use crate::back_end::NosError;
use crate::frr::Routing;
use crate::observation::Observation;
use crate::step::Step;

/// The part of a switch beside FRR.
pub(crate) trait RoutedSwitch: Sync {
    /// Observes the part, with the VRFs as far as it agrees with `routing`, which FRR keeps of
    /// them. Policies and BGP are added to it.
    fn observe_own(
        &self,
        routing: &Routing,
    ) -> impl Future<Output = Result<Observation, NosError>> + Send;

    /// Applies a step, or its part that is not FRR's. The step has been checked against the whole
    /// switch.
    fn apply_own(&self, step: &Step) -> impl Future<Output = Result<(), NosError>> + Send;
}
