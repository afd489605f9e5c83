//! Reads all BMCs, periodically and on request, and reports them to control.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use prost::Message;
use proto_mesh::{BmcReport, BmcServiceClient, BmcStatus};
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::fleet::Fleet;
use crate::reach::Reach;

/// BMCs read concurrently. Further ones wait.
const LOOKS_MAX: usize = 16;
/// Statuses per report. The rest goes in further reports.
const STATUSES_PER_REPORT: usize = 500;
/// Length of a report, bytes, after which the next status goes in a further report. Half the link's
/// bound on a request; one status has at most about 30 KiB.
const REPORT_LEN_MAX: usize = 512 * 1024;
/// Wait after a report that control did not accept.
const RETRY: Duration = Duration::from_secs(5);

/// Reads and reports until stopped. The first round starts at once.
pub(crate) async fn run_discovery(
    fleet: Arc<Fleet>,
    driver: Arc<dyn Driver>,
    reach: Arc<Reach>,
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
                    reach.note(fleet.reached()).await;
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

/// Splits statuses into reports by number and length.
fn reports(statuses: Vec<BmcStatus>) -> Vec<BmcReport> {
    let mut reports = Vec::new();
    let (mut report, mut len) = (BmcReport::default(), 0);
    for status in statuses {
        let status_len = status.encoded_len();
        if report.bmcs.len() >= STATUSES_PER_REPORT
            || (len + status_len > REPORT_LEN_MAX && len > 0)
        {
            reports.push(std::mem::take(&mut report));
            len = 0;
        }
        len += status_len;
        report.bmcs.push(status);
    }
    if !report.bmcs.is_empty() {
        reports.push(report);
    }
    reports
}

/// Reports to control. `true` if it accepted all statuses.
async fn tell(client: &BmcServiceClient, statuses: Vec<BmcStatus>) -> bool {
    let mut told = true;
    for report in reports(statuses) {
        match client.report(report).await {
            Ok(response) => {
                for machine in response.created {
                    tracing::info!(machine, "machine is new to control");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "report not accepted");
                told = false;
                // A control that is away would let each further report wait. One that refuses this
                // report may take the others: one bad BMC must not hide them.
                if error.is_transient() {
                    break;
                }
            }
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bmc_with_long_texts_does_not_lift_a_report_over_the_bound() {
        let status = |error: &str| BmcStatus {
            error: error.into(),
            ..BmcStatus::default()
        };
        assert_eq!(reports(Vec::new()), []);
        let mut statuses = vec![status("silent"); 1200];
        let sizes = |statuses: &[BmcStatus]| -> Vec<usize> {
            let reports = reports(statuses.to_vec());
            reports.iter().map(|report| report.bmcs.len()).collect()
        };
        assert_eq!(sizes(&statuses), [500, 500, 200]);
        statuses[1] = status(&"x".repeat(REPORT_LEN_MAX));
        assert_eq!(sizes(&statuses), [1, 1, 500, 500, 198]);
        let long = vec![status(&"x".repeat(30 << 10)); 500];
        for report in reports(long) {
            assert!(report.encoded_len() < REPORT_LEN_MAX + (10 << 10));
        }
    }
}
