//! Rollouts of agents' releases in waves.

use control_convert::{parse, required, time};
use control_gate::Caller;
use control_gate::refusal::{invalid, of_state};
use control_state::query::{AgentSight, judged_agents, release_of_site, rollout};
use control_state::{
    self as state, AbortRollout, AgentStanding, ClearRelease, JudgedAgent, PauseRollout, Reply,
    ResumeRollout, StartRollout, Tables,
};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::rollout_service_server::RolloutService;
use proto_public::metalmesh::admin::v1::wave_size::Size;
use proto_release::ReleaseVersion;
use tonic::{Request, Status};

use super::firewall_release::check_url;
use crate::services::{ApiResult, Services, ok};

/// The standing of an agent that a rollout is not for.
const NEWCOMER: &str =
    "it came after the begin; it is told of the release when the rollout is done";

#[tonic::async_trait]
impl RolloutService for Services {
    async fn get(
        &self,
        request: Request<mesh::RolloutServiceGetRequest>,
    ) -> ApiResult<mesh::RolloutServiceGetResponse> {
        let caller = Caller::of(&request)?;
        let kind = kind(request.get_ref().kind())?;
        let sight = AgentSight {
            now: self.gate.now(),
            ..AgentSight::default()
        };
        let found = self.gate.read(&caller, |tables| {
            let found = rollout(tables, kind);
            let found = found.map(|found| shown(found, agents(tables, found, &sight)));
            let site = release_of_site(tables, kind);
            Ok((found, site.map(|site| shown_release(&site.release))))
        });
        let (rollout, site_release) = found.await?;
        ok(mesh::RolloutServiceGetResponse {
            rollout,
            site_release,
        })
    }

    async fn start(
        &self,
        request: Request<mesh::RolloutServiceStartRequest>,
    ) -> ApiResult<mesh::RolloutServiceStartResponse> {
        let caller = Caller::of(&request)?;
        let op = start(request.into_inner())?;
        let reply = self.gate.propose(&caller, op).await?;
        let started = reply.rollout().map_err(of_state)?;
        ok(mesh::RolloutServiceStartResponse {
            rollout: Some(shown(&started, Vec::new())),
        })
    }

    async fn pause(
        &self,
        request: Request<mesh::RolloutServicePauseRequest>,
    ) -> ApiResult<mesh::RolloutServicePauseResponse> {
        let caller = Caller::of(&request)?;
        let op = PauseRollout {
            kind: kind(request.get_ref().kind())?,
        };
        let reply = self.gate.propose(&caller, op).await?;
        let paused = reply.rollout().map_err(of_state)?;
        ok(mesh::RolloutServicePauseResponse {
            rollout: Some(shown(&paused, Vec::new())),
        })
    }

    async fn resume(
        &self,
        request: Request<mesh::RolloutServiceResumeRequest>,
    ) -> ApiResult<mesh::RolloutServiceResumeResponse> {
        let caller = Caller::of(&request)?;
        let op = ResumeRollout {
            kind: kind(request.get_ref().kind())?,
            failures_max: request.get_ref().failures_max,
        };
        let reply = self.gate.propose(&caller, op).await?;
        let resumed = reply.rollout().map_err(of_state)?;
        ok(mesh::RolloutServiceResumeResponse {
            rollout: Some(shown(&resumed, Vec::new())),
        })
    }

    async fn abort(
        &self,
        request: Request<mesh::RolloutServiceAbortRequest>,
    ) -> ApiResult<mesh::RolloutServiceAbortResponse> {
        let caller = Caller::of(&request)?;
        let op = AbortRollout {
            kind: kind(request.get_ref().kind())?,
        };
        let reply = self.gate.propose(&caller, op).await?;
        let aborted = reply.rollout().map_err(of_state)?;
        ok(mesh::RolloutServiceAbortResponse {
            rollout: Some(shown(&aborted, Vec::new())),
        })
    }

    async fn clear(
        &self,
        request: Request<mesh::RolloutServiceClearRequest>,
    ) -> ApiResult<mesh::RolloutServiceClearResponse> {
        let caller = Caller::of(&request)?;
        let op = ClearRelease {
            kind: kind(request.get_ref().kind())?,
        };
        let release = match self.gate.propose(&caller, op).await? {
            Reply::None => None,
            reply => {
                let cleared = reply.site_release().map_err(of_state)?;
                Some(shown_release(&cleared.release))
            }
        };
        ok(mesh::RolloutServiceClearResponse { release })
    }
}

fn kind(kind: mesh::RolloutKind) -> Result<state::RolloutKind, Status> {
    match kind {
        mesh::RolloutKind::Firewall => Ok(state::RolloutKind::Firewall),
        mesh::RolloutKind::Core => Ok(state::RolloutKind::Core),
        mesh::RolloutKind::Bmc => Ok(state::RolloutKind::Bmc),
        mesh::RolloutKind::Pixie => Ok(state::RolloutKind::Pixie),
        mesh::RolloutKind::Unspecified => {
            Err(invalid("kind", "must be firewall, core, bmc or pixie"))
        }
    }
}

/// The command of a wanted rollout.
///
/// # Errors
/// `invalid_argument` with the field.
fn start(request: mesh::RolloutServiceStartRequest) -> Result<StartRollout, Status> {
    let kind = kind(request.kind())?;
    let release = required("release", request.release)?;
    let version: ReleaseVersion = release
        .version
        .parse()
        .map_err(|_| invalid("release.version", "must be a version such as 1.3.0"))?;
    check_url(&release.url)?;
    let waves = request.waves.into_iter().map(|wave| match wave.size {
        Some(Size::Agents(agents)) => Ok(state::WaveSize::Agents(agents)),
        Some(Size::Percent(percent)) => Ok(state::WaveSize::Percent(percent)),
        None => Err(invalid("waves", "must have a size each")),
    });
    let gate = required("gate", request.gate)?;
    Ok(StartRollout {
        kind,
        release: state::AgentRelease {
            version: version.to_string(),
            url: release.url,
            head_digest: parse("release.head_digest", &release.head_digest)?,
        },
        waves: waves.collect::<Result<_, Status>>()?,
        gate: state::RolloutGate {
            healthy_for_ms: gate.healthy_for_seconds.saturating_mul(1_000),
            patience_ms: gate.patience_seconds.saturating_mul(1_000),
            failures_max: gate.failures_max,
        },
    })
}

/// All agents with their standing.
fn agents(
    tables: &Tables,
    rollout: &state::Rollout,
    sight: &AgentSight,
) -> Vec<mesh::RolloutAgent> {
    let judged = judged_agents(tables, rollout, sight).into_iter();
    let shown = judged.map(|judged| {
        let JudgedAgent {
            agent, standing, ..
        } = judged;
        let failure = rollout.failed.get(&agent).cloned();
        let (settled, reason) = match standing {
            _ if !rollout.is_for(&agent) => (false, NEWCOMER.to_owned()),
            AgentStanding::Settled => (true, String::new()),
            AgentStanding::OnTheWay(reason) | AgentStanding::Refused(reason) => (false, reason),
        };
        mesh::RolloutAgent {
            agent: agent.to_string(),
            told: rollout.told.contains(&agent),
            settled,
            failed: failure.is_some(),
            reason: failure.unwrap_or(reason),
        }
    });
    shown.collect()
}

fn shown_release(release: &state::AgentRelease) -> mesh::AgentRelease {
    mesh::AgentRelease {
        version: release.version.clone(),
        url: release.url.clone(),
        head_digest: release.head_digest.to_string(),
    }
}

fn shown(rollout: &state::Rollout, agents: Vec<mesh::RolloutAgent>) -> mesh::Rollout {
    let (state, reason) = match &rollout.state {
        state::RolloutState::Running => (mesh::RolloutState::Running, String::new()),
        state::RolloutState::Stopped { reason } => (mesh::RolloutState::Stopped, reason.clone()),
        state::RolloutState::Done => (mesh::RolloutState::Done, String::new()),
    };
    let kind = match rollout.kind {
        state::RolloutKind::Firewall => mesh::RolloutKind::Firewall,
        state::RolloutKind::Core => mesh::RolloutKind::Core,
        state::RolloutKind::Bmc => mesh::RolloutKind::Bmc,
        state::RolloutKind::Pixie => mesh::RolloutKind::Pixie,
    };
    let waves = rollout.waves.iter().map(|size| mesh::WaveSize {
        size: Some(match *size {
            state::WaveSize::Agents(agents) => Size::Agents(agents),
            state::WaveSize::Percent(percent) => Size::Percent(percent),
        }),
    });
    mesh::Rollout {
        kind: kind.into(),
        release: Some(shown_release(&rollout.release)),
        waves: waves.collect(),
        gate: Some(mesh::RolloutGate {
            healthy_for_seconds: rollout.gate.healthy_for_ms / 1_000,
            patience_seconds: rollout.gate.patience_ms / 1_000,
            failures_max: rollout.gate.failures_max,
        }),
        state: state.into(),
        reason,
        wave: rollout.wave,
        wave_since: time(rollout.wave_since),
        settled_since: rollout.settled_since.and_then(time),
        agents,
        started_by: rollout.started_by.clone(),
        started_at: time(rollout.started_at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> mesh::RolloutServiceStartRequest {
        mesh::RolloutServiceStartRequest {
            kind: mesh::RolloutKind::Firewall.into(),
            release: Some(mesh::AgentRelease {
                version: "v1.3.0".to_owned(),
                url: "https://releases.example.com/x".to_owned(),
                head_digest: format!("sha256:{}", "ab".repeat(32)),
            }),
            waves: vec![mesh::WaveSize {
                size: Some(Size::Percent(10)),
            }],
            gate: Some(mesh::RolloutGate {
                healthy_for_seconds: 600,
                patience_seconds: 3600,
                failures_max: 1,
            }),
        }
    }

    #[test]
    fn a_rollout_is_taken_as_it_is_written() {
        let op = start(wanted()).unwrap();
        assert_eq!(op.release.version, "1.3.0");
        assert_eq!(op.waves, [state::WaveSize::Percent(10)]);
        assert_eq!(op.gate.healthy_for_ms, 600_000);
    }

    #[test]
    fn a_missing_part_is_named() {
        let mut sizeless = wanted();
        sizeless.waves = vec![mesh::WaveSize { size: None }];
        for (wrong, field) in [
            (
                mesh::RolloutServiceStartRequest {
                    kind: 0,
                    ..wanted()
                },
                "kind",
            ),
            (
                mesh::RolloutServiceStartRequest {
                    release: None,
                    ..wanted()
                },
                "release",
            ),
            (
                mesh::RolloutServiceStartRequest {
                    gate: None,
                    ..wanted()
                },
                "gate",
            ),
            (sizeless, "waves"),
        ] {
            let refused = start(wrong).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::InvalidArgument);
            assert!(refused.message().contains(field), "{field}: {refused}");
        }
    }
}
