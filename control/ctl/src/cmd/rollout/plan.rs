use std::time::Duration;

use anyhow::Result;
use clap::Args;
use proto_public::metalmesh::admin::v1::{RolloutGate, RolloutKind, RolloutServiceStartRequest};

use super::program_of;
use super::release_file::ReleaseFileArgs;
use super::wave_text::WaveText;
use crate::text::parse_duration;

/// The release of a rollout, its waves, and the gate between them.
#[derive(Debug, Args)]
pub(crate) struct RolloutPlanArgs {
    #[command(flatten)]
    release: ReleaseFileArgs,
    /// Sizes of the waves, separated by commas: a number of agents or a percentage, with those of
    /// earlier waves. A wave of all follows after the last one.
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_values = ["1", "10%", "50%"]
    )]
    waves: Vec<WaveText>,
    /// Time for which all agents of a wave must run the release and be healthy.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    healthy_for: Duration,
    /// Time from the begin of a wave after which an agent that does not run the release healthily has
    /// failed.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    patience: Duration,
    /// Most agents that may fail; with one more the rollout stops. Firewalls stop it only if those of
    /// several tenants fail: of two at a site with up to six, of three at a larger one, and of a fifth
    /// of those that were told.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    failures: u32,
}

impl RolloutPlanArgs {
    /// The request, with the release of the file.
    ///
    /// # Errors
    /// The file cannot be read, is no release of the agents' program, or breaks a rule.
    pub(crate) fn request(&self, kind: RolloutKind) -> Result<RolloutServiceStartRequest> {
        let waves = self.waves.iter().map(|wave| wave.size());
        Ok(RolloutServiceStartRequest {
            kind: kind.into(),
            release: Some(self.release.release(program_of(kind))?),
            waves: waves.collect(),
            gate: Some(RolloutGate {
                healthy_for_seconds: self.healthy_for.as_secs(),
                patience_seconds: self.patience.as_secs(),
                failures_max: self.failures,
            }),
        })
    }
}
