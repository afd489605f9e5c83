//! Self-update of the agents of switches, BMCs and boot servers: what they are told and tell.

use std::time::Duration;

use control_state::query::{agent_release, agent_report_matters};
use control_state::{AgentKey, AgentRelease, ReportAgent, RolloutKind, clip_agent_report};
use proto_link::{LinkStatus, Peer, Sink};
use proto_mesh::{
    UpdateDesired, UpdateDesiredRequest, UpdateReport, UpdateReportResponse, UpdateService,
};

use crate::access;
use crate::desired::{self, Desire, Fence, at_tables};
use crate::parts::GatewayParts;
use crate::wakes::Concern;

/// Least time between two looks at the release of an agent.
const PAUSE: Duration = Duration::from_millis(50);

impl UpdateService for GatewayParts {
    async fn desired(
        &self,
        peer: &Peer,
        _request: UpdateDesiredRequest,
        out: Sink<'_, UpdateDesired>,
    ) -> Result<(), LinkStatus> {
        let (kind, agent) = access::agent_of_rollouts(peer)?;
        let concern = Concern::Program(kind, agent.clone());
        let desire = Desire {
            look: || {
                at_tables(self, |tables| {
                    // No release is a state as well: it ends the one that was told before.
                    Ok(Some(agent_release(tables, kind, &agent)))
                })
            },
            message: |fence: Fence, release: &Option<AgentRelease>| {
                message(fence, release.as_ref())
            },
            concern,
            beside: None,
            pause: PAUSE,
        };
        desired::stream(self, desire, out).await
    }

    async fn report(
        &self,
        peer: &Peer,
        request: UpdateReport,
    ) -> Result<UpdateReportResponse, LinkStatus> {
        let (kind, agent) = access::agent_of_rollouts(peer)?;
        let mut op = report(access::actor(peer), kind, agent, request);
        clip_agent_report(&mut op);
        if self.look(|tables| agent_report_matters(tables, &op))? {
            self.propose(peer, op).await?;
        }
        Ok(UpdateReportResponse {})
    }
}

fn message(fence: Fence, release: Option<&AgentRelease>) -> UpdateDesired {
    UpdateDesired {
        term: fence.term,
        generation: fence.generation,
        release: release.map(|release| proto_mesh::AgentRelease {
            version: release.version.clone(),
            url: release.url.clone(),
            head_digest: release.head_digest.to_string(),
        }),
    }
}

fn report(
    identity: String,
    kind: RolloutKind,
    agent: AgentKey,
    request: UpdateReport,
) -> ReportAgent {
    let some = |text: String| (!text.is_empty()).then_some(text);
    ReportAgent {
        identity,
        kind,
        agent,
        version: request.version,
        phase: request.phase,
        wanted: some(request.wanted),
        error: some(request.error),
        ailment: some(request.ailment),
    }
}
