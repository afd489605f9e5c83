//! Reports the ends of orders to control, each until it is acknowledged.

use std::sync::Arc;
use std::time::Duration;

use base_runtime::Backoff;
use proto_mesh::{BmcOrderDone, BmcServiceClient, Code};
use tokio_util::sync::CancellationToken;

use crate::journal::Journal;

/// Backoff between reports.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));

/// Reports until stopped.
pub(crate) async fn run_outbox(
    journal: Arc<Journal>,
    client: BmcServiceClient,
    stop: CancellationToken,
) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tell_all(&journal, &client) => {}
    }
}

async fn tell_all(journal: &Journal, client: &BmcServiceClient) {
    let mut failures = 0_u32;
    loop {
        let Some((id, end)) = journal.untold() else {
            journal.ended.notified().await;
            continue;
        };
        let done = BmcOrderDone {
            id: id.clone(),
            error: end.error,
            power_state: end.power,
            // Hex that does not decode was damaged on disk. Control counts an order for a nonce
            // that ends without a digest as failed, so an empty one is safe.
            nonce_sha256: hex::decode(end.nonce_sha256).unwrap_or_default(),
        };
        match client.order_done(done).await {
            Ok(_) => {}
            // A repeated report would be refused again and would block the ends behind it.
            Err(status) if is_final(status.code()) => {
                tracing::warn!(order = id, error = %status, "end of order refused");
            }
            Err(status) => {
                tracing::warn!(order = id, error = %status, "end of order not reported");
                tokio::time::sleep(BACKOFF.pause(failures)).await;
                failures = failures.saturating_add(1);
                continue;
            }
        }
        failures = 0;
        if let Err(error) = journal.acknowledged(&id).await {
            tracing::error!(order = id, %error, "journal not written");
        }
    }
}

fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidArgument | Code::NotFound | Code::AlreadyExists | Code::FailedPrecondition
    )
}
