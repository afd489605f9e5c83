use std::fmt;

use agents_update::{SharedStatus, UpdatePhase};
use base_telemetry::metrics::{Collector, DescriptorEncoder, Sheet};

/// Writes the state of self-update at each scrape.
#[derive(Debug)]
pub struct UpdateCollector(pub SharedStatus);

impl Collector for UpdateCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet::new(encoder);
        let status = self.0.get();
        let wanted = status.wanted.map(|version| version.to_string());
        let digest = status.head_digest.map(|digest| digest.to_string());
        sheet.info(
            "metalmesh_firewall_program",
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
            "metalmesh_firewall_update_phase",
            "Phase of self-update: 1 for the one that it is in",
            None,
            phases,
        )?;
        sheet.counter(
            "metalmesh_firewall_update_failures",
            "Releases that could not be fetched, or broke a rule",
            None,
            status.failures,
        )
    }
}
