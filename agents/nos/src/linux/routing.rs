//! The kernel as the part of a switch beside FRR.

use super::Linux;
use crate::back_end::NosError;
use crate::frr::Routing;
use crate::observation::Observation;
use crate::router::RoutedSwitch;
use crate::step::Step;

impl RoutedSwitch for Linux {
    async fn observe_own(&self, routing: &Routing) -> Result<Observation, NosError> {
        let view = self.view().await?;
        let mut observation = view.observation(&self.config);
        let model = &mut observation.model;
        model.packet_filter = self.packet_filter().await?;
        model.vrfs = view.vrfs(routing, model.vtep).collect();
        Ok(observation)
    }

    async fn apply_own(&self, step: &Step) -> Result<(), NosError> {
        self.apply_to_kernel(step).await
    }
}
