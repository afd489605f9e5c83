//! Reads all BMCs, periodically and on request, and reports them to control.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use proto_mesh::{BmcReport, BmcServiceClient, BmcStatus};
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::fleet::Fleet;

/// BMCs read concurrently. Further ones wait.
const LOOKS_MAX: usize = 16;
/// Statuses per message, because the link's bound on a request is 1 MiB. The rest goes in further
/// messages.
const STATUSES_PER_REPORT: usize = 500;
/// Wait after a report that control did not accept.
const RETRY: Duration = Duration::from_secs(5);

/// Reads and reports until stopped. The first round starts at once.
pub(crate) async fn run_discovery(
    fleet: Arc<Fleet>,
    driver: Arc<dyn Driver>,
    client: BmcServiceClient,
    interval: Duration,
    stop: CancellationToken,
) {
    let work = async {
        let mut next_look = tokio::time::Instant::now();
        loop {
            let mut told = true;
            tokio::select! {
                () = tokio::time::sleep_until(next_look) => {
                    look_at_all(&fleet, driver.as_ref()).await;
                    next_look = tokio::time::Instant::now() + interval;
                    told = tell(&client, fleet.statuses()).await;
                }
                () = fleet.look.notified() => next_look = tokio::time::Instant::now(),
                () = fleet.tell.notified() => told = tell(&client, fleet.statuses()).await,
            }
            if !told {
                tokio::time::sleep(RETRY).await;
                fleet.tell.notify_one();
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

async fn look_at_all(fleet: &Fleet, driver: &dyn Driver) {
    let targets = fleet.targets();
    stream::iter(&targets)
        .for_each_concurrent(LOOKS_MAX, |target| async move {
            let result = driver.read(target).await;
            match &result {
                Ok(reading) => tracing::debug!(
                    bmc = %target.address, power = reading.power.as_str(), "BMC read"
                ),
                Err(error) => tracing::warn!(bmc = %target.address, %error, "BMC not read"),
            }
            fleet.record(target.address, result);
        })
        .await;
    tracing::info!(bmcs = targets.len(), "all BMCs read");
    fleet.looked.notify_waiters();
}

/// Reports to control. `true` if it accepted all statuses.
async fn tell(client: &BmcServiceClient, statuses: Vec<BmcStatus>) -> bool {
    for bmcs in statuses.chunks(STATUSES_PER_REPORT) {
        match client
            .report(BmcReport {
                bmcs: bmcs.to_vec(),
            })
            .await
        {
            Ok(response) => {
                for machine in response.created {
                    tracing::info!(machine, "machine is new to control");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "report not accepted");
                return false;
            }
        }
    }
    true
}
