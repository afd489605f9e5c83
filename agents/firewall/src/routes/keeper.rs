use std::time::Duration;

use base_runtime::Chain;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::distance::RouteDistance;
use super::frr::{self, FrrError};
use super::observed::ObservedDistance;

/// Pause between two looks at FRR, which begins with the installer's distance when it is restarted.
const LOOK_PERIOD: Duration = Duration::from_secs(10);

/// Keeps FRR's distance as it is wanted, in a task of its own: rules do not wait for FRR.
#[derive(Debug)]
pub struct DistanceKeeper {
    wanted: watch::Sender<Option<RouteDistance>>,
    observed: watch::Receiver<Option<ObservedDistance>>,
}

impl DistanceKeeper {
    /// Starts to follow what is wanted. FRR is left alone until a distance is.
    pub fn start(tasks: &mut JoinSet<()>, stop: CancellationToken) -> Self {
        let (wanted, newest) = watch::channel(None);
        let (sender, observed) = watch::channel(None);
        tasks.spawn(keep(newest, sender, stop));
        Self { wanted, observed }
    }

    /// Says which distance is wanted. `None` leaves FRR as it is.
    pub fn want(&self, distance: Option<RouteDistance>) {
        self.wanted.send_if_modified(|wanted| {
            let is_new = *wanted != distance;
            *wanted = distance;
            is_new
        });
    }

    /// The distance that FRR had at the last look. `None` before the first one.
    #[must_use]
    pub fn observed(&self) -> Option<ObservedDistance> {
        self.observed.borrow().clone()
    }
}

async fn keep(
    mut newest: watch::Receiver<Option<RouteDistance>>,
    observed: watch::Sender<Option<ObservedDistance>>,
    stop: CancellationToken,
) {
    let mut is_failing = false;
    loop {
        let wanted = *newest.borrow_and_update();
        if let Some(wanted) = wanted {
            let done = tokio::select! {
                done = set(wanted) => done,
                () = stop.cancelled() => return,
            };
            if let (Err(error), false) = (&done, is_failing) {
                warn!(error = %Chain(error), "the distance of routes cannot be set; trying again");
            }
            is_failing = done.is_err();
            observed.send_replace(Some(ObservedDistance::of(wanted, &done)));
        }
        tokio::select! {
            changed = timeout(LOOK_PERIOD, newest.changed()) => {
                // The sender is gone only when the agent ends.
                if matches!(changed, Ok(Err(_))) {
                    return;
                }
            }
            () = stop.cancelled() => return,
        }
    }
}

/// Makes FRR's distance the wanted one, if it is another. Returns the number of AS numbers that FRR
/// has afterwards.
async fn set(wanted: RouteDistance) -> Result<usize, FrrError> {
    let found = frr::read().await?;
    if found == wanted.prepended() {
        return Ok(found);
    }
    frr::write(wanted).await?;
    info!(distance = wanted.distance, "the distance of routes is set");
    // That vtysh took the command is no proof that bgpd has it.
    frr::read().await
}
