use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agents_update::running_version;
use base_runtime::{Backoff, Chain};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::resource::escaped;
use super::{Kubeconfig, KubernetesClient};
use crate::source::MonitorReport;

/// Pause before a report that could not be written is replaced by a newer one.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_secs(120));

/// Writes reports into the `FirewallMonitor` with the firewall's name. The
/// firewall-controller-manager creates it.
#[derive(Debug)]
pub(super) struct MonitorWriter {
    kubeconfig: PathBuf,
    path: String,
}

impl MonitorWriter {
    pub(super) fn new(kubeconfig: PathBuf, namespace: &str, name: &str) -> Self {
        Self {
            kubeconfig,
            path: format!(
                "/apis/firewall.metal-stack.io/v2/namespaces/{}/firewallmonitors/{}",
                escaped(namespace),
                escaped(name)
            ),
        }
    }

    /// Writes each report until it is stopped.
    pub(super) async fn run(
        self,
        mut reports: watch::Receiver<Option<Arc<MonitorReport>>>,
        stop: CancellationToken,
    ) {
        let mut failures = 0;
        loop {
            let report = reports.borrow_and_update().clone();
            let pause = match report {
                None => Duration::ZERO,
                Some(report) => match self.write(&report).await {
                    Ok(()) => {
                        failures = 0;
                        Duration::ZERO
                    }
                    Err(reason) => {
                        // Once: the next reports will fail in the same way.
                        if failures == 0 {
                            warn!(reason, "the FirewallMonitor cannot be written");
                        }
                        failures += 1;
                        BACKOFF.pause(failures)
                    }
                },
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = stop.cancelled() => return,
            }
            tokio::select! {
                changed = reports.changed() => if changed.is_err() { return },
                () = stop.cancelled() => return,
            }
        }
    }

    async fn write(&self, report: &MonitorReport) -> Result<(), String> {
        let kubeconfig = Kubeconfig::load(&self.kubeconfig);
        let kubeconfig = kubeconfig.map_err(|error| Chain(&error).to_string())?;
        let now = OffsetDateTime::now_utc();
        let patch = monitor_patch(report, now)?;
        let client = KubernetesClient::new(kubeconfig);
        let what = "patch firewallmonitors.firewall.metal-stack.io";
        let written = client.merge_patch(&self.path, what, &patch).await;
        written.map_err(|error| Chain(&error).to_string())
    }
}

/// The fields that a report changes.
fn monitor_patch(report: &MonitorReport, now: OffsetDateTime) -> Result<Value, String> {
    // Kubernetes has whole seconds.
    let now = now.replace_nanosecond(0).unwrap_or(now);
    let now = now.format(&Rfc3339).map_err(|error| error.to_string())?;
    let stats = serde_json::to_value(report).map_err(|error| error.to_string())?;
    let mut status = json!({
        "message": "",
        "controllerVersion": running_version(),
        "distanceSupported": false,
        "lastRun": now,
        "stats": stats,
    });
    if report.is_seed_connected
        && let Some(fields) = status.as_object_mut()
    {
        fields.insert("lastRunAgainstSeed".to_owned(), json!(now));
    }
    Ok(json!({ "controllerStatus": status }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::CounterValue;
    use crate::rule::RuleSet;

    #[test]
    fn a_report_has_the_published_fields() {
        let value = CounterValue {
            packets: 2,
            bytes: 100,
        };
        let names = [
            "cwnp/egress/web/0",
            "dropped",
            "internal_in",
            "external_out",
        ];
        let counters = names.map(|name| (name.to_owned(), value));
        let mut report = MonitorReport::of_counters(&counters.into(), &RuleSet::default());
        report.is_seed_connected = true;
        let now = OffsetDateTime::from_unix_timestamp(1_000_000_000).unwrap();
        let counter = json!({ "bytes": 100, "packets": 2 });
        assert_eq!(
            monitor_patch(&report, now).unwrap(),
            json!({ "controllerStatus": {
                "message": "",
                "controllerVersion": env!("CARGO_PKG_VERSION"),
                "distanceSupported": false,
                "lastRun": "2001-09-09T01:46:40Z",
                "lastRunAgainstSeed": "2001-09-09T01:46:40Z",
                "stats": {
                    "rules": {
                        "accept": { "cwnp/egress/web/0": counter },
                        "drop": { "dropped": counter },
                    },
                    "devices": {
                        "internal": { "in": 100, "out": 0 },
                        "external": { "in": 0, "out": 100 },
                    },
                },
            }})
        );
    }
}
