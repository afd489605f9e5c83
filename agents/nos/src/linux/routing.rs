//! Steps that change FRR, and what FRR adds to the observed switch.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Linux;
use super::gate::{self, Gate};
use super::view::View;
use crate::back_end::NosError;
use crate::frr::{self, Frr, FrrError, FrrObject, Observed, Routing};
use crate::interpret::interpret;
use crate::model::{SwitchModel, VrfName};
use crate::observation::Observation;
use crate::step::Step;

/// Attempts to change FRR. It refuses to remove an instance until bgpd has heard from zebra that
/// its VNI has gone.
const ATTEMPTS: usize = 10;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// Age at which a reading of FRR's configuration is repeated: a change by hand is to be seen within
/// 5 s, also during a long pass.
const READING_MAX: Duration = Duration::from_secs(5);

/// The routing daemon of a switch.
#[derive(Debug)]
pub(super) struct Router {
    frr: Frr,
    /// The last reading. `None` after a change that is not verified.
    last: Mutex<Option<Arc<Reading>>>,
    gate: Mutex<Gate>,
}

/// FRR's running configuration as it was read.
#[derive(Debug)]
struct Reading {
    observed: Observed,
    /// The meaning of the configuration.
    routing: Routing,
    at: Instant,
}

/// The parts of a switch that a step changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    Kernel,
    Frr,
    /// The kernel first: a VRF exists before FRR names its VNI.
    KernelThenFrr,
    /// FRR first: it gives up a VRF before its device goes.
    FrrThenKernel,
}

impl Parts {
    fn of(step: &Step) -> Self {
        match step {
            Step::EnsureVrf { .. } => Self::KernelThenFrr,
            Step::RemoveVrf { .. } => Self::FrrThenKernel,
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
            _ => Self::Kernel,
        }
    }
}

impl Router {
    pub(super) fn new(frr: Frr) -> Self {
        Self {
            frr,
            last: Mutex::new(None),
            gate: Mutex::new(Gate::default()),
        }
    }

    /// The daemon itself.
    pub(super) fn frr(&self) -> &Frr {
        &self.frr
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

    /// Reads the configuration.
    async fn read(&self) -> Result<Arc<Reading>, NosError> {
        let observed = self.frr.observe().await?;
        Ok(self.keep(observed))
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
        last.filter(|reading| reading.at.elapsed() < READING_MAX)
    }

    /// Keeps what has just been read.
    fn keep(&self, observed: Observed) -> Arc<Reading> {
        let reading = Arc::new(Reading {
            routing: Routing::from_frr(&observed.config),
            observed,
            at: Instant::now(),
        });
        *self.last.lock() = Some(Arc::clone(&reading));
        reading
    }

    /// Drops the last reading: FRR may have another configuration from now on.
    fn discard(&self) {
        *self.last.lock() = None;
    }
}

impl Linux {
    /// The switch with what its routing daemon keeps.
    pub(super) async fn observe_all(&self, router: &Router) -> Result<Observation, NosError> {
        let reading = router.read().await?;
        Ok(self.with_routing(&self.view().await?, &reading.routing))
    }

    /// The switch after steps: the kernel as it is now, FRR as its last change was verified.
    pub(super) async fn observe_kernel(&self, router: &Router) -> Result<Observation, NosError> {
        let reading = router.last().await?;
        Ok(self.with_routing(&self.view().await?, &reading.routing))
    }

    fn with_routing(&self, view: &View, routing: &Routing) -> Observation {
        let mut observation = view.observation(&self.config);
        let model = &mut observation.model;
        model.vrfs = view.vrfs(routing, model.vtep).collect();
        model.policies.clone_from(&routing.policies);
        model.bgp.clone_from(&routing.bgp);
        observation
    }

    /// Applies steps in their order. Steps in a row that change the same part are one change of
    /// FRR, which keeps the order among them by itself.
    pub(super) async fn apply_routed(
        &self,
        router: &Router,
        steps: &[Step],
    ) -> Result<(), NosError> {
        for run in steps.chunk_by(|one, next| Parts::of(one) == Parts::of(next)) {
            let Some(first) = run.first() else { continue };
            match Parts::of(first) {
                Parts::Kernel => self.change_kernel(router, run).await?,
                Parts::Frr => self.change_frr(router, run).await?,
                Parts::KernelThenFrr => {
                    self.change_kernel(router, run).await?;
                    self.change_frr(router, run).await?;
                }
                Parts::FrrThenKernel => {
                    self.change_frr(router, run).await?;
                    self.remove_vrfs(router, run).await?;
                }
            }
        }
        Ok(())
    }

    /// Checks steps against the switch: none may break an invariant.
    async fn change_kernel(&self, router: &Router, steps: &[Step]) -> Result<(), NosError> {
        let reading = router.last().await?;
        let view = self.view().await?;
        let mut model = self.with_routing(&view, &reading.routing).model;
        for step in steps {
            if gate::is_gated(&model, step) {
                router.pass_gate().await?;
            }
            interpret(&mut model, step)?;
            self.apply_to_kernel(step).await?;
        }
        Ok(())
    }

    /// Changes FRR from its last reading. The driver reads the configuration back and compares it
    /// with the desired one, so that a reading which is no longer true is found out: then once more
    /// from a new one.
    async fn change_frr(&self, router: &Router, steps: &[Step]) -> Result<(), NosError> {
        let mut attempt = 1;
        loop {
            let is_kept = router.kept().is_some();
            let reading = router.last().await?;
            let view = self.view().await?;
            let mut model = self.with_routing(&view, &reading.routing).model;
            let desired = after(&mut model, steps)?.to_frr()?;
            if desired == reading.observed.config {
                return Ok(());
            }
            // Also if a time limit cuts this future here.
            router.discard();
            match router.frr.apply(&reading.observed, &desired).await {
                Ok(now) => {
                    router.keep(now);
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

    async fn remove_vrfs(&self, router: &Router, steps: &[Step]) -> Result<(), NosError> {
        for step in steps {
            self.apply_to_kernel(step).await?;
        }
        for step in steps {
            if let Step::RemoveVrf { name } = step {
                forget(router, name).await;
            }
        }
        router.discard();
        Ok(())
    }
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

/// Lets FRR forget the section of a VRF whose device has gone. It stays until zebra has heard of
/// that, and does no harm.
async fn forget(router: &Router, name: &VrfName) {
    let Ok(vrf) = frr::VrfName::new(name.as_ref()) else {
        return;
    };
    for _ in 0..ATTEMPTS {
        match router.frr.forget_vrf(vrf).await {
            Ok(()) => return,
            Err(error) => tracing::debug!(vrf = %name, error = %error, "FRR keeps the VRF"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
