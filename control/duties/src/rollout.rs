//! Rollouts of agents' releases: begins waves, records failures, and stops or finishes a rollout when
//! the state says that it is due.

use std::time::Duration;

use control_authz::{Permit, SystemActor};
use control_presence::Presence;
use control_state::query::AgentSight;
use control_state::{Command, Reply, Rollout, RolloutState, StateError, StepRollout, due_rollout};
use control_store::{ProposeError, Store, StoreError};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::silence::SilenceLog;

/// Interval between two looks at the rollouts.
const ROUND: Duration = Duration::from_secs(2);

/// Steps rollouts until stopped.
pub(crate) async fn run(store: Store, presence: Presence, stop: CancellationToken) {
    let mut silence = SilenceLog::default();
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = rounds.tick() => {}
        }
        if !store.is_leader() {
            // Agents have their sessions with the leader: another one begins to count anew.
            silence = SilenceLog::default();
            continue;
        }
        if let Err(error) = act(&store, &presence, &mut silence).await {
            tracing::warn!(error = %error, "a step of a rollout did not come through");
        }
    }
}

async fn act(
    store: &Store,
    presence: &Presence,
    silence: &mut SilenceLog,
) -> Result<(), ProposeError<StateError>> {
    let silent = silence.look(store, presence).await;
    let sight = AgentSight {
        now: store.now(),
        silent: silent.map_err(ProposeError::<_>::from)?,
    };
    let due = store.read_local(|tables| due_rollout(tables, &sight));
    let Some(kind) = due.map_err(ProposeError::<_>::from)? else {
        return Ok(());
    };
    let permit = Permit::system(SystemActor::Reconcile);
    let AgentSight { now, silent } = sight;
    let silent = silent.into_iter().filter(|(of, _)| *of == kind);
    let silent = silent.map(|(_, agent)| agent).collect();
    let command = Command::new(now, "reconcile", StepRollout { kind, silent });
    match store.propose(&permit, &command).await {
        // Another node leads by now and steps by its own clock.
        Err(ProposeError::Store(StoreError::NotLeader { .. } | StoreError::ShutDown)) => Ok(()),
        Err(error) => Err(error),
        Ok(Reply::Rollout(rollout)) => {
            log(&rollout);
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

fn log(rollout: &Rollout) {
    let (kind, version) = (rollout.kind.as_str(), &rollout.release.version);
    match &rollout.state {
        RolloutState::Running => {
            let (wave, told) = (rollout.wave, rollout.told.len());
            tracing::info!(kind, %version, wave, told, "a rollout goes on");
        }
        RolloutState::Stopped { reason } => {
            tracing::warn!(kind, %version, %reason, "a rollout stopped");
        }
        RolloutState::Done => tracing::info!(kind, %version, "a rollout is complete"),
    }
}
