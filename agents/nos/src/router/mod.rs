//! The routing daemon beside the part of a switch that a back-end changes by itself.
//!
//! A back-end with FRR is a [`RoutedSwitch`]: it observes and changes its own part, and
//! [`Router`] adds what FRR keeps, decides which part each step changes and in which order, and
//! checks each step against the whole switch.

mod gate;
mod reading;
mod routed_switch;
mod telemetry;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
pub(crate) use routed_switch::RoutedSwitch;
use tokio::time::Instant;

use self::gate::Gate;
use self::reading::Reading;
use crate::back_end::NosError;
use crate::frr::{self, Frr, FrrError, FrrObject, InterfaceName, Routing, Vtysh};
use crate::interpret::interpret;
use crate::model::{SwitchModel, VrfName};
use crate::observation::Observation;
use crate::step::Step;

/// Attempts to change FRR. It refuses to remove an instance until bgpd has heard from zebra that
/// its VNI has gone.
const ATTEMPTS: usize = 10;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// The routing daemon of a switch.
#[derive(Debug)]
pub(crate) struct Router {
    frr: Frr,
    /// The interface whose addresses the default VRF announces.
    loopback: InterfaceName,
    /// The last reading. `None` after a change that is not verified.
    last: Mutex<Option<Arc<Reading>>>,
    gate: Mutex<Gate>,
}

/// The parts of a switch that a step changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    /// The back-end's own: a kernel, or a database.
    Own,
    Frr,
    /// Its own first: a VRF exists before FRR names its VNI.
    OwnThenFrr,
    /// FRR first: it gives up a VRF before its device goes.
    FrrThenOwn,
}

impl Parts {
    fn of(step: &Step) -> Self {
        match step {
            Step::EnsureVrf { .. } => Self::OwnThenFrr,
            Step::RemoveVrf { .. } => Self::FrrThenOwn,
            Step::EnsureBgp { .. }
            | Step::RemoveBgp
            | Step::EnsureBgpVrf { .. }
            | Step::RemoveBgpVrf { .. }
            | Step::SetNeighbour { .. }
            | Step::RemoveNeighbour { .. }
            | Step::EnsurePrefixList { .. }
            | Step::AddPrefix { .. }
            | Step::RemovePrefix { .. }
            | Step::RemovePrefixList { .. }
            | Step::SetAsPathList { .. }
            | Step::RemoveAsPathList { .. }
            | Step::SetRouteMap { .. }
            | Step::RemoveRouteMap { .. } => Self::Frr,
            _ => Self::Own,
        }
    }
}

impl Router {
    /// The daemon behind a shell, on a switch whose loopback has this name.
    pub(crate) fn new(vtysh: Vtysh, loopback: InterfaceName) -> Self {
        Self {
            frr: Frr::new(vtysh),
            loopback,
            last: Mutex::new(None),
            gate: Mutex::new(Gate::default()),
        }
    }

    /// The switch with what its routing daemon keeps.
    pub(crate) async fn observe(
        &self,
        switch: &impl RoutedSwitch,
    ) -> Result<Observation, NosError> {
        let reading = self.read().await?;
        with_routing(switch, &reading.routing).await
    }

    /// The switch after steps: the back-end's part as it is now, FRR as its last change was
    /// verified.
    pub(crate) async fn observe_applied(
        &self,
        switch: &impl RoutedSwitch,
    ) -> Result<Observation, NosError> {
        let reading = self.last().await?;
        with_routing(switch, &reading.routing).await
    }

    /// Applies steps in their order. Steps in a row that change the same part are one change of
    /// FRR, which keeps the order among them by itself.
    pub(crate) async fn apply(
        &self,
        switch: &impl RoutedSwitch,
        steps: &[Step],
    ) -> Result<(), NosError> {
        for run in steps.chunk_by(|one, next| Parts::of(one) == Parts::of(next)) {
            let Some(first) = run.first() else { continue };
            match Parts::of(first) {
                Parts::Own => self.change_switch(switch, run).await?,
                Parts::Frr => self.change_frr(switch, run).await?,
                Parts::OwnThenFrr => {
                    self.change_switch(switch, run).await?;
                    self.change_frr(switch, run).await?;
                }
                Parts::FrrThenOwn => {
                    self.change_frr(switch, run).await?;
                    self.remove_vrfs(switch, run).await?;
                }
            }
        }
        Ok(())
    }

    /// Reads the configuration.
    async fn read(&self) -> Result<Arc<Reading>, NosError> {
        let observed = self.frr.observe().await?;
        Ok(self.keep(Reading::new(observed, &self.loopback)))
    }

    /// The last reading, or a new one if there is none or it is old.
    async fn last(&self) -> Result<Arc<Reading>, NosError> {
        match self.kept() {
            Some(reading) => Ok(reading),
            None => self.read().await,
        }
    }

    fn kept(&self) -> Option<Arc<Reading>> {
        let last = self.last.lock().clone();
        last.filter(|reading| reading.is_fresh())
    }

    fn keep(&self, reading: Reading) -> Arc<Reading> {
        let reading = Arc::new(reading);
        *self.last.lock() = Some(Arc::clone(&reading));
        reading
    }

    /// Drops the last reading: FRR may have another configuration from now on.
    fn discard(&self) {
        *self.last.lock() = None;
    }

    /// Refuses until the fabric is there.
    async fn pass_gate(&self) -> Result<(), NosError> {
        if self.gate.lock().is_open() {
            return Ok(());
        }
        let sessions = self.frr.sessions().await?;
        let mut gate = self.gate.lock();
        gate.look(&sessions, Instant::now());
        if gate.is_open() {
            return Ok(());
        }
        Err(NosError::NoFabric(gate::SETTLE))
    }

    /// Checks steps against the switch: none may break an invariant.
    async fn change_switch(
        &self,
        switch: &impl RoutedSwitch,
        steps: &[Step],
    ) -> Result<(), NosError> {
        let reading = self.last().await?;
        let mut model = with_routing(switch, &reading.routing).await?.model;
        for step in steps {
            if gate::is_gated(&model, step) {
                self.pass_gate().await?;
            }
            interpret(&mut model, step)?;
            switch.apply_own(step).await?;
        }
        Ok(())
    }

    /// Changes FRR from its last reading. The driver reads the configuration back and compares it
    /// with the desired one, so that a reading which is no longer true is found out: then once more
    /// from a new one.
    async fn change_frr(&self, switch: &impl RoutedSwitch, steps: &[Step]) -> Result<(), NosError> {
        let mut attempt = 1;
        loop {
            let is_kept = self.kept().is_some();
            let reading = self.last().await?;
            let mut model = with_routing(switch, &reading.routing).await?.model;
            let desired = after(&mut model, steps)?.to_frr_with(&self.loopback)?;
            if desired == reading.observed.config {
                return Ok(());
            }
            // Also if a time limit cuts this future here.
            self.discard();
            match self.frr.apply(&reading.observed, &desired).await {
                Ok(now) => {
                    self.keep(Reading::new(now, &self.loopback));
                    return Ok(());
                }
                Err(error) if attempt < ATTEMPTS && is_early(&error) => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) if is_kept => tracing::debug!(error = %error, "FRR is read again"),
                Err(error) => return Err(error.into()),
            }
            attempt += 1;
        }
    }

    async fn remove_vrfs(
        &self,
        switch: &impl RoutedSwitch,
        steps: &[Step],
    ) -> Result<(), NosError> {
        for step in steps {
            switch.apply_own(step).await?;
        }
        for step in steps {
            if let Step::RemoveVrf { name } = step {
                self.forget(name).await;
            }
        }
        self.discard();
        Ok(())
    }

    /// Lets FRR forget the section of a VRF whose device has gone. It stays until zebra has heard
    /// of that, and does no harm.
    async fn forget(&self, name: &VrfName) {
        let Ok(vrf) = frr::VrfName::new(name.as_ref()) else {
            return;
        };
        for _ in 0..ATTEMPTS {
            match self.frr.forget_vrf(vrf).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(vrf = %name, error = %error, "FRR keeps the VRF"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// A switch with what its routing daemon keeps.
async fn with_routing(
    switch: &impl RoutedSwitch,
    routing: &Routing,
) -> Result<Observation, NosError> {
    let mut observation = switch.observe_own(routing).await?;
    observation.model.policies.clone_from(&routing.policies);
    observation.model.bgp.clone_from(&routing.bgp);
    Ok(observation)
}

/// The part of FRR after steps.
fn after(model: &mut SwitchModel, steps: &[Step]) -> Result<Routing, NosError> {
    for step in steps {
        interpret(model, step)?;
    }
    Ok(Routing::of(model))
}

/// `true` if FRR refuses for the moment.
fn is_early(error: &FrrError) -> bool {
    matches!(
        error,
        FrrError::Refused {
            object: FrrObject::Instance(_) | FrrObject::Vrf(_),
            ..
        }
    )
}
