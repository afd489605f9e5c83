//! Reports to control about the program that runs.

use std::time::Duration;

use proto_mesh::{UpdateReport, UpdateServiceClient};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::status::UpdateStatus;

/// Pause before a report that control did not take is sent again.
const RETRY: Duration = Duration::from_secs(10);
/// Interval of reports without news: control may have been restored from a backup.
const REPEAT: Duration = Duration::from_secs(300);

/// The report of a status. `ailment` is the reason why the agent does not do its work.
pub(super) fn report(status: UpdateStatus, ailment: Option<String>) -> UpdateReport {
    let digest = status.head_digest.map(|digest| digest.to_string());
    let wanted = status.wanted.map(|version| version.to_string());
    UpdateReport {
        version: status.version.to_string(),
        head_digest: digest.unwrap_or_default(),
        wanted: wanted.unwrap_or_default(),
        phase: status.phase.name().to_owned(),
        error: status.last_error,
        ailment: ailment.unwrap_or_default(),
    }
}

/// Sends the newest report, again when it changes, until `stop`.
pub(super) async fn send(
    client: UpdateServiceClient,
    mut reports: watch::Receiver<Option<UpdateReport>>,
    stop: CancellationToken,
) {
    loop {
        let newest = reports.borrow_and_update().clone();
        let mut pause = REPEAT;
        if let Some(report) = newest
            && let Err(error) = client.report(report).await
        {
            // An older control has no such service; without a session nobody takes it.
            debug!(%error, "a report about the program was not taken");
            pause = RETRY;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = reports.changed() => if changed.is_err() { return },
            () = sleep(pause) => {}
        }
    }
}
