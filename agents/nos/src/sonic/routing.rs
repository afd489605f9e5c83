//! The databases as the part of a switch beside FRR.

use super::Sonic;
use super::names::LOOPBACK;
use crate::back_end::NosError;
use crate::frr::{InterfaceName, Routing};
use crate::observation::Observation;
use crate::router::RoutedSwitch;
use crate::step::Step;

/// The interface whose addresses the default VRF announces.
#[expect(clippy::expect_used, reason = "a constant")]
pub(super) fn loopback() -> InterfaceName {
    InterfaceName::new(LOOPBACK).expect("the name of an interface")
}

impl RoutedSwitch for Sonic {
    async fn observe_own(&self, routing: &Routing) -> Result<Observation, NosError> {
        let seen = self.snapshot().await?;
        let mut observation = seen.observation(|name| self.config.is_port(name));
        for (name, vrf) in &mut observation.model.vrfs {
            // SONiC maps the VNI for the ASIC, and FRR for its routes: both have to.
            vrf.is_intact &= routing.l3_vnis.get(name) == vrf.l3_vni.as_ref();
        }
        Ok(observation)
    }

    async fn apply_own(&self, step: &Step) -> Result<(), NosError> {
        self.apply_to_databases(step).await
    }
}
