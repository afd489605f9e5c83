//! Reports the leases of BMCs to control: at each change and periodically.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::state::Shared;

/// Interval of reports without a change. It repairs a report that control has lost.
const PERIOD: Duration = Duration::from_secs(60);
/// Wait after a failed report.
const RETRY: Duration = Duration::from_secs(5);

/// Reports until stopped.
pub(crate) async fn run_reports(shared: Arc<Shared>, stop: CancellationToken) {
    let mut wait = Duration::ZERO;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            // A change during a report leaves a permit and causes another report at once.
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
