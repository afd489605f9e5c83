use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use proto_public::metalmesh::admin::v1::{
    Rollout, RolloutAgent, RolloutKind, RolloutServiceGetRequest, RolloutState,
};

use super::name_of;
use crate::app::App;
use crate::output::print_table;
use crate::text::parse_duration;

/// Pause between two looks at a rollout that is waited for.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct RolloutStatusArgs {
    /// Wait until the rollout is done; one that stops is an error.
    #[arg(long)]
    wait: bool,
    /// Longest time to wait.
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = parse_duration, requires = "wait")]
    timeout: Duration,
}

/// Shows a rollout, after it has ended if that is asked for.
///
/// # Errors
/// There is none, or it stopped while it was waited for.
pub(crate) async fn status(app: &App, kind: RolloutKind, args: &RolloutStatusArgs) -> Result<()> {
    let began = Instant::now();
    let rollout = loop {
        let rollout = read(app, kind).await?;
        if !args.wait || rollout.state() != RolloutState::Running {
            break rollout;
        }
        ensure!(
            began.elapsed() < args.timeout,
            "the rollout is in wave {} after {} s; see: metalmesh rollout {} show",
            rollout.wave,
            args.timeout.as_secs(),
            name_of(kind)
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    show(app, kind, &rollout)?;
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
async fn read(app: &App, kind: RolloutKind) -> Result<Rollout> {
    let request = RolloutServiceGetRequest { kind: kind.into() };
    let answer = app.client.rollouts().get(request).await?.into_inner();
    let site = answer.site_release.map_or_else(String::new, |site| {
        format!(", and the release of all agents is {}", site.version)
    });
    answer.rollout.with_context(|| {
        let name = name_of(kind);
        format!("there is no rollout{site}; begin one: metalmesh rollout {name} set")
    })
}

fn show(app: &App, kind: RolloutKind, rollout: &Rollout) -> Result<()> {
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
        let agent = match kind {
            RolloutKind::Firewall => "firewall",
            _ => "agent",
        };
        print_table(&[agent, "state", "reason"], open);
    }
    Ok(())
}

/// A row about an agent that was told of the release and has not settled. `None` for others.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_agents_that_are_waited_for_or_failed_are_listed() {
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
