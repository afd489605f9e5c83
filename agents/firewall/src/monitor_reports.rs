//! The periodic reports of counters to a `FirewallMonitor`.

use std::time::{Duration, Instant};

use base_runtime::Chain;
use tracing::warn;

use crate::netlink::Kernel;
use crate::rule::RuleSet;
use crate::source::{MonitorReport, SourceSet};
use crate::state::Loaded;

/// Pause between two reports, as published.
const REPORT_PERIOD: Duration = Duration::from_secs(10);

/// When counters were reported.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MonitorReports {
    /// Time of the last report. `None` before the first.
    last: Option<Instant>,
}

impl MonitorReports {
    /// Hands the counters to the controller `monitor`, if there is one and a report is due.
    pub(crate) fn report(
        &mut self,
        wanted: Option<&Loaded>,
        in_force: &RuleSet,
        kernel: &Kernel,
        sources: &SourceSet,
    ) {
        let Some(config) = wanted.map(|wanted| &wanted.config) else {
            return;
        };
        let is_due = self.last.is_none_or(|last| last.elapsed() >= REPORT_PERIOD);
        if config.controllers.monitor.is_none() || !is_due {
            return;
        }
        match kernel.counters() {
            Ok(counters) => {
                let mut report = MonitorReport::of_counters(&counters, in_force);
                let source = config.controllers.firewall.source;
                report.is_seed_connected = sources.is_connected(source);
                sources.report_monitor(report);
            }
            Err(error) => warn!(error = %Chain(&error), "the counters cannot be read"),
        }
        self.last = Some(Instant::now());
    }
}
