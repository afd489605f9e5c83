use std::fmt;

use base_telemetry::metrics::{Collector, DescriptorEncoder, Sheet};

use crate::phase::UpdatePhase;
use crate::status::SharedStatus;

/// Writes the state of self-update at each scrape: `PREFIX_program_info`, `PREFIX_update_phase` and
/// `PREFIX_update_failures_total`.
#[derive(Debug)]
pub struct UpdateCollector {
    /// Begin of the names, such as `metalmesh_agent`.
    pub prefix: &'static str,
    /// The state.
    pub status: SharedStatus,
}

impl Collector for UpdateCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet::new(encoder);
        let prefix = self.prefix;
        let status = self.status.get();
        let wanted = status.wanted.map(|version| version.to_string());
        let digest = status.head_digest.map(|digest| digest.to_string());
        sheet.info(
            &format!("{prefix}_program"),
            "Version and digest of the program that runs, and the wanted version",
            &[
                ("version", status.version.to_string().into()),
                ("digest", digest.unwrap_or_default().into()),
                ("wanted", wanted.unwrap_or_default().into()),
            ],
        )?;
        let phases = UpdatePhase::ALL.map(|phase| {
            let is_now = if phase == status.phase { 1.0 } else { 0.0 };
            (vec![("phase", phase.name().into())], is_now)
        });
        sheet.gauges(
            &format!("{prefix}_update_phase"),
            "Phase of self-update: 1 for the one that it is in",
            None,
            phases,
        )?;
        sheet.counter(
            &format!("{prefix}_update_failures"),
            "Releases that could not be fetched, or broke a rule",
            None,
            status.failures,
        )
    }
}

#[cfg(test)]
mod tests {
    use base_telemetry::metrics::prometheus_client::encoding::text::encode;

    use super::*;
    use crate::phase::ProgramRole;
    use crate::status::UpdateStatus;

    #[test]
    fn a_scrape_has_release_phase_and_failures() {
        let status = UpdateStatus {
            version: "1.2.0".parse().unwrap(),
            head_digest: None,
            role: ProgramRole::Confirmed,
            wanted: Some("1.3.0".parse().unwrap()),
            phase: UpdatePhase::Failed,
            last_error: String::new(),
            failures: 3,
            failed: Vec::new(),
        };
        let mut registry = base_telemetry::metrics::registry("metalmesh-core", "1");
        registry.register_collector(Box::new(UpdateCollector {
            prefix: "metalmesh_agent",
            status: SharedStatus::new(status),
        }));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "metalmesh_agent_program_info{version=\"1.2.0\",digest=\"\",wanted=\"1.3.0\"} 1",
            "metalmesh_agent_update_phase{phase=\"failed\"} 1.0",
            "metalmesh_agent_update_phase{phase=\"current\"} 0.0",
            "metalmesh_agent_update_failures_total 3",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
