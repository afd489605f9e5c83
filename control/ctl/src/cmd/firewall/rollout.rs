//! `metalmesh firewall rollout`: a release of the agent, in waves.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::wave_size::Size;
use proto_public::metalmesh::admin::v1::{
    AgentRelease, RolloutAgent, RolloutGate, RolloutKind, RolloutServiceAbortRequest,
    RolloutServiceGetRequest, RolloutServiceResumeRequest, RolloutServiceStartRequest, WaveSize,
};

use super::release::FirewallReleaseSetArgs;
use crate::app::App;
use crate::cmd::given;
use crate::output::print_table;
use crate::text::parse_duration;

#[derive(Debug, Subcommand)]
pub(crate) enum FirewallRolloutCommand {
    /// Tell firewalls of a release in waves: standbys first, and the next wave when all before it have
    /// run the release healthily for a time. Too many failures stop it.
    Start(Box<RolloutStartArgs>),
    /// Show the wave, the standing of each firewall, and why a rollout stopped.
    #[command(visible_alias = "describe")]
    Status,
    /// Let a stopped rollout go on: firewalls that failed are forgiven, and all of the wave get its time
    /// once more.
    Resume {
        /// Most firewalls that may fail from now on. Default: as before.
        #[arg(long, value_name = "NUMBER")]
        failures: Option<u32>,
    },
    /// End a rollout: its firewalls are told of the release from before, and run it if it permits a
    /// downgrade.
    Abort,
}

#[derive(Debug, Args)]
pub(crate) struct RolloutStartArgs {
    #[command(flatten)]
    release: FirewallReleaseSetArgs,
    /// Sizes of the waves, separated by commas: a number of firewalls or a percentage, with those of
    /// earlier waves. A wave of all follows after the last one.
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_values = ["1", "10%", "50%"]
    )]
    waves: Vec<WaveText>,
    /// Time for which all firewalls of a wave must run the release and be healthy.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    healthy_for: Duration,
    /// Time from the begin of a wave after which a firewall that does not run the release healthily has
    /// failed.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    patience: Duration,
    /// Most firewalls that may fail; with one more the rollout stops.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    failures: u32,
}

/// The size of a wave: `5` or `10%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaveText {
    Agents(u32),
    Percent(u32),
}

impl FromStr for WaveText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is not a size like 5 or 10%");
        Ok(match text.strip_suffix('%') {
            Some(percent) => Self::Percent(percent.parse().map_err(|_| bad())?),
            None => Self::Agents(text.parse().map_err(|_| bad())?),
        })
    }
}

pub(super) async fn run(app: &App, command: FirewallRolloutCommand) -> Result<()> {
    let mut client = app.client.rollouts();
    let kind = RolloutKind::Firewall.into();
    let rollout = match command {
        FirewallRolloutCommand::Status => return status(app).await,
        FirewallRolloutCommand::Start(args) => {
            let answer = client.start(args.request()?).await?;
            answer.into_inner().rollout
        }
        FirewallRolloutCommand::Resume { failures } => {
            let request = RolloutServiceResumeRequest {
                kind,
                failures_max: failures,
            };
            client.resume(request).await?.into_inner().rollout
        }
        FirewallRolloutCommand::Abort => {
            let answer = client.abort(RolloutServiceAbortRequest { kind }).await?;
            answer.into_inner().rollout
        }
    };
    app.output.one(&given(rollout)?)
}

async fn status(app: &App) -> Result<()> {
    let request = RolloutServiceGetRequest {
        kind: RolloutKind::Firewall.into(),
    };
    let answer = app.client.rollouts().get(request).await?.into_inner();
    let rollout = answer
        .rollout
        .context("there is no rollout; begin one: metalmesh firewall rollout start")?;
    app.output.one(&rollout)?;
    if !app.output.is_table() {
        return Ok(());
    }
    if !rollout.reason.is_empty() {
        outln!("\nstopped: {}", rollout.reason);
    }
    let open: Vec<Vec<String>> = rollout.agents.iter().filter_map(row).collect();
    if !open.is_empty() {
        outln!();
        print_table(&["firewall", "state", "reason"], open);
    }
    Ok(())
}

/// A row about a firewall that was told of the release and has not settled. `None` for others.
fn row(agent: &RolloutAgent) -> Option<Vec<String>> {
    let state = match (agent.told, agent.failed, agent.settled) {
        (true, true, _) => "failed",
        (true, false, false) => "waiting",
        _ => return None,
    };
    Some(vec![
        agent.agent.clone(),
        state.to_owned(),
        agent.reason.clone(),
    ])
}

impl RolloutStartArgs {
    /// The request, with the release of the file.
    ///
    /// # Errors
    /// The file cannot be read, is no release of the agent, or breaks a rule.
    fn request(&self) -> Result<RolloutServiceStartRequest> {
        let release = self.release.release()?;
        let waves = self.waves.iter().map(|wave| WaveSize {
            size: Some(match *wave {
                WaveText::Agents(agents) => Size::Agents(agents),
                WaveText::Percent(percent) => Size::Percent(percent),
            }),
        });
        Ok(RolloutServiceStartRequest {
            kind: RolloutKind::Firewall.into(),
            release: Some(AgentRelease {
                version: release.version,
                url: release.url,
                head_digest: release.head_digest,
            }),
            waves: waves.collect(),
            gate: Some(RolloutGate {
                healthy_for_seconds: self.healthy_for.as_secs(),
                patience_seconds: self.patience.as_secs(),
                failures_max: self.failures,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_number_or_a_share() {
        assert_eq!("5".parse(), Ok(WaveText::Agents(5)));
        assert_eq!("10%".parse(), Ok(WaveText::Percent(10)));
        for wrong in ["", "%", "-1", "ten", "1.5%"] {
            assert!(wrong.parse::<WaveText>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_firewalls_that_are_waited_for_or_failed_are_listed() {
        let agent = |told, settled, failed| RolloutAgent {
            agent: "fw".to_owned(),
            told,
            settled,
            failed,
            reason: "it runs 1.2.0".to_owned(),
        };
        for (agent, wanted) in [
            (agent(false, false, false), None),
            (agent(true, true, false), None),
            (agent(true, false, false), Some("waiting")),
            (agent(true, false, true), Some("failed")),
        ] {
            let found = row(&agent).map(|row| row[1].clone());
            assert_eq!(found.as_deref(), wanted, "{agent:?}");
        }
    }
}
