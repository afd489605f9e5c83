//! `metalmesh firewall rollout`: a release of the agent, in waves.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{
    AgentRelease, Rollout, RolloutAgent, RolloutGate, RolloutKind, RolloutServiceAbortRequest,
    RolloutServiceGetRequest, RolloutServiceResumeRequest, RolloutServiceStartRequest,
    RolloutState,
};

use super::release::FirewallReleaseSetArgs;
use super::wave_text::WaveText;
use crate::app::App;
use crate::cmd::given;
use crate::output::print_table;
use crate::text::parse_duration;

/// Pause between two looks at a rollout that is waited for.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, Subcommand)]
pub(crate) enum FirewallRolloutCommand {
    /// Tell firewalls of a release in waves: standbys first, and the next wave when all before it have
    /// run the release healthily for a time. Too many failures stop it.
    Start(Box<RolloutStartArgs>),
    /// Show the wave, the standing of each firewall, and why a rollout stopped.
    #[command(visible_alias = "describe")]
    Status(RolloutStatusArgs),
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
pub(crate) struct RolloutStatusArgs {
    /// Wait until the rollout is done; one that stops is an error.
    #[arg(long)]
    wait: bool,
    /// Longest time to wait.
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = parse_duration, requires = "wait")]
    timeout: Duration,
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

pub(super) async fn run(app: &App, command: FirewallRolloutCommand) -> Result<()> {
    let mut client = app.client.rollouts();
    let kind = RolloutKind::Firewall.into();
    let rollout = match command {
        FirewallRolloutCommand::Status(args) => return status(app, &args).await,
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

async fn status(app: &App, args: &RolloutStatusArgs) -> Result<()> {
    let began = Instant::now();
    let rollout = loop {
        let rollout = read(app).await?;
        if !args.wait || rollout.state() != RolloutState::Running {
            break rollout;
        }
        ensure!(
            began.elapsed() < args.timeout,
            "the rollout is in wave {} after {} s; see: metalmesh firewall rollout status",
            rollout.wave,
            args.timeout.as_secs()
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    show(app, &rollout)?;
    ensure!(
        !args.wait || rollout.state() == RolloutState::Done,
        "the rollout stopped: {}",
        rollout.reason
    );
    Ok(())
}

/// Reads the rollout.
///
/// # Errors
/// There is none.
async fn read(app: &App) -> Result<Rollout> {
    let request = RolloutServiceGetRequest {
        kind: RolloutKind::Firewall.into(),
    };
    let answer = app.client.rollouts().get(request).await?.into_inner();
    answer
        .rollout
        .context("there is no rollout; begin one: metalmesh firewall rollout start")
}

fn show(app: &App, rollout: &Rollout) -> Result<()> {
    app.output.one(rollout)?;
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
        let waves = self.waves.iter().map(|wave| wave.size());
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
