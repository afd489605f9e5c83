//! Firewalls: what their agents are told and tell.

use std::sync::Once;
use std::time::Duration;

use control_presence::{CandidateEffect, ReportOutcome};
use control_state::life::{FirewallIntent, firewall_candidate, firewall_desired};
use control_state::query::firewall_report_matters;
use control_state::{
    AllocationType, FirewallRoutes, FirewallUpdate, Machine, RefusedRule, ReportFirewall,
    clip_firewall_report,
};
use control_state::{ErrorCode, StateError, Tables};
use proto_link::{LinkStatus, Peer, Sink};
use proto_mesh::{
    FirewallAddresses, FirewallCandidate, FirewallCandidateReport, FirewallCandidateReportResponse,
    FirewallCandidatesRequest, FirewallDesired, FirewallDesiredRequest, FirewallNetwork,
    FirewallRelease, FirewallReport, FirewallReportResponse, FirewallRuleSet, FirewallService,
    FirewallStatistics, FirewallStatisticsResponse,
};
use proto_types::{AllocationId, MachineId};
use tracing::warn;
use uuid::Uuid;

use crate::desired::{self, Desire, Fence, at_tables};
use crate::firewall_numbers::{effect, numbers};
use crate::parts::GatewayParts;
use crate::wakes::Concern;
use crate::{access, convert, status};

/// Least time between two looks at the rules of a firewall: a tenant that writes many revisions a
/// second costs one message for each.
const PAUSE: Duration = Duration::from_millis(50);

/// Logged once: further firewalls report every ten seconds.
static NO_ROOM: Once = Once::new();

impl FirewallService for GatewayParts {
    async fn desired(
        &self,
        peer: &Peer,
        _request: FirewallDesiredRequest,
        out: Sink<'_, FirewallDesired>,
    ) -> Result<(), LinkStatus> {
        let (project, id) = access::project_machine(peer)?;
        self.presence.heard_machine(id, self.store.now());
        let desire = Desire {
            // The allocation is compared at each look: a stream that outlives it gets nothing.
            look: || {
                at_tables(self, |tables| {
                    access::owns(tables, peer, project, id)?;
                    firewall(tables, id)?;
                    Ok(firewall_desired(tables, id))
                })
            },
            message: |fence: Fence, intent: &FirewallIntent| {
                self.sealed(peer, message(fence, intent))
            },
            concern: Concern::Firewall(id),
            beside: None,
            pause: PAUSE,
        };
        desired::stream(self, desire, out).await
    }

    async fn report(
        &self,
        peer: &Peer,
        request: FirewallReport,
    ) -> Result<FirewallReportResponse, LinkStatus> {
        let (id, allocation) = self.caller(peer)?;
        let now = self.store.now();
        self.presence.heard_machine(id, now);
        let mut op = report(id, allocation, request);
        clip_firewall_report(&mut op);
        if self.look(|tables| firewall_report_matters(tables, &op))? {
            self.propose(peer, op).await?;
        }
        Ok(FirewallReportResponse {})
    }

    async fn report_statistics(
        &self,
        peer: &Peer,
        request: FirewallStatistics,
    ) -> Result<FirewallStatisticsResponse, LinkStatus> {
        let (id, allocation) = self.caller(peer)?;
        let now = self.store.now();
        self.presence.heard_machine(id, now);
        let numbers = numbers(allocation, now, request);
        if self.presence.firewalls().keep(id, numbers) == ReportOutcome::NoRoom {
            NO_ROOM.call_once(|| warn!(firewall = %id, "no room for counters of another firewall"));
        }
        Ok(FirewallStatisticsResponse {})
    }

    async fn candidates(
        &self,
        peer: &Peer,
        _request: FirewallCandidatesRequest,
        mut out: Sink<'_, FirewallCandidate>,
    ) -> Result<(), LinkStatus> {
        let (id, allocation) = self.caller(peer)?;
        let mut inbox = self.presence.firewalls().open_inbox(id, allocation);
        while let Some(candidate) = inbox.next().await {
            self.caller(peer)?;
            let (set, content) = (&candidate.set, &candidate.content);
            let look = at_tables(self, |tables| {
                Ok(firewall_candidate(tables, id, set, content))
            });
            let (Some(intent), revision) = look? else {
                let error = "the set is not for this firewall".to_owned();
                let effect = CandidateEffect {
                    error,
                    ..CandidateEffect::default()
                };
                let firewalls = self.presence.firewalls();
                firewalls.take_effect(id, candidate.id, effect);
                continue;
            };
            let fence = Fence {
                term: self.store.term(),
                generation: revision.0,
            };
            let asked = FirewallCandidate {
                id: candidate.id.to_string(),
                desired: Some(message(fence, &intent)),
            };
            out.send(&asked).await?;
        }
        Ok(())
    }

    async fn report_candidate(
        &self,
        peer: &Peer,
        request: FirewallCandidateReport,
    ) -> Result<FirewallCandidateReportResponse, LinkStatus> {
        let (id, _) = self.caller(peer)?;
        let question = request.id.parse::<Uuid>();
        let question = question.map_err(|_| LinkStatus::invalid_argument("id must be a UUID"))?;
        let firewalls = self.presence.firewalls();
        firewalls.take_effect(id, question, effect(request));
        Ok(FirewallCandidateReportResponse {})
    }
}

impl GatewayParts {
    /// The firewall that calls, and its allocation: the one that its certificate was made for.
    fn caller(&self, peer: &Peer) -> Result<(MachineId, AllocationId), LinkStatus> {
        let (project, id) = access::project_machine(peer)?;
        let allocation = self.look(|tables| {
            access::owns(tables, peer, project, id)?;
            firewall(tables, id)
        })??;
        Ok((id, allocation))
    }
}

/// The allocation of a firewall.
fn firewall(tables: &Tables, id: MachineId) -> Result<AllocationId, LinkStatus> {
    let machine = tables.get::<Machine>(&id);
    let allocation = machine.and_then(|machine| machine.allocation.as_ref());
    match allocation {
        Some(found) if found.kind == AllocationType::Firewall => Ok(found.id),
        _ => {
            let message = format!("machine \"{id}\" is not allocated as a firewall");
            let error = StateError::new(ErrorCode::MachineForeign, message);
            Err(status::refused(&error))
        }
    }
}

fn message(fence: Fence, intent: &FirewallIntent) -> FirewallDesired {
    let networks = intent.networks.iter().map(|network| FirewallNetwork {
        network: network.network.to_string(),
        r#type: network.kind.as_str().to_owned(),
        vrf: network.vrf,
        prefixes: network.prefixes.iter().map(ToString::to_string).collect(),
        masquerade: network.masquerades,
        addresses: network.addresses.as_ref().map(|own| FirewallAddresses {
            prefixes: own.iter().map(ToString::to_string).collect(),
        }),
    });
    let sets = intent.sets.iter().map(|set| FirewallRuleSet {
        id: set.set().to_string(),
        revision: set.row.current.number,
        content: set.content().to_json(),
    });
    FirewallDesired {
        term: fence.term,
        generation: fence.generation,
        firewall: intent.machine.to_string(),
        project: intent.project.to_string(),
        allocation: intent.allocation.to_string(),
        hostname: intent.hostname.clone(),
        networks: networks.collect(),
        sets: sets.collect(),
        asn: intent.asn.0,
        distance: intent.distance,
        name_servers: intent
            .name_servers
            .iter()
            .map(ToString::to_string)
            .collect(),
        release: intent.release.as_ref().map(|release| FirewallRelease {
            version: release.version.clone(),
            url: release.url.clone(),
            head_digest: release.head_digest.to_string(),
        }),
        seal: None,
    }
}

fn report(machine: MachineId, allocation: AllocationId, report: FirewallReport) -> ReportFirewall {
    let refused = report.refused.into_iter().map(|refused| RefusedRule {
        object: refused.object,
        field: refused.field,
        problem: refused.problem,
        remedy: refused.remedy,
    });
    let sets = report.sets.into_iter();
    let routes = report.routes.map(|routes| FirewallRoutes {
        wanted: routes.wanted,
        observed: routes.observed,
        error: convert::non_empty(routes.error),
    });
    ReportFirewall {
        machine,
        allocation,
        applied_term: report.applied_term,
        applied_generation: report.applied_generation,
        applied_sets: sets.map(|set| (set.id, set.revision)).collect(),
        refused_rules: refused.collect(),
        error: convert::non_empty(report.error),
        agent_version: convert::non_empty(report.agent_version),
        routes,
        update: report.update.map(|update| FirewallUpdate {
            phase: update.phase,
            wanted: convert::non_empty(update.wanted),
            error: convert::non_empty(update.error),
        }),
    }
}
