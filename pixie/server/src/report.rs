//! Tells control the leases of BMCs: when one changes, and now and then.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::state::Shared;

const PERIOD: Duration = Duration::from_secs(60);
/// After a failure.
const RETRY: Duration = Duration::from_secs(5);

/// Reports until stopped.
pub(crate) async fn run_reports(shared: Arc<Shared>, stop: CancellationToken) {
    let mut wait = Duration::ZERO;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = shared.bmc_leases_changed.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
        let leases = shared.bmc_leases();
        let count = leases.len();
        wait = match shared.control.report_leases(leases).await {
            Ok(()) => {
                shared.control_answered();
                PERIOD
            }
            Err(error) => {
                tracing::warn!(%error, count, "BMC leases not reported");
                RETRY
            }
        };
    }
}
