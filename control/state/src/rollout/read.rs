//! Reads of rollouts: the release that an agent is told of, and the standing of all agents.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto_types::{MachineId, Timestamp};

use crate::firewall::entity::FirewallRelease;
use crate::firewall::fault::lacks_agent;
use crate::firewall::health::ailment;
use crate::firewall::read::{firewall_allocation, own_status};
use crate::firewall::standby::firewall_distance;
use crate::identity::entity::Identity;
use crate::machine::entity::{Machine, Phase};
use crate::rollout::bmc_reach::bmc_reach;
use crate::rollout::entity::{
    AgentKey, AgentProgram, AgentRelease, Rollout, RolloutKind, RolloutState, SiteRelease,
};
use crate::rollout::judged::{AgentStanding, JudgedAgent};
use crate::rollout::standing::ReportedProgram;
use crate::tables::Tables;
use crate::tenancy::entity::Project;

/// The leader's sight beside the state when it judges agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentSight {
    /// The time.
    pub now: Timestamp,
    /// Agents that have had no session for a while, by their kinds: agents of several kinds may have one
    /// name. Firewalls are judged by their signs of life.
    pub silent: BTreeSet<(RolloutKind, AgentKey)>,
}

/// The rollout of a kind of agents. `None` means that there is none, and has been none.
pub fn rollout(tables: &Tables, kind: RolloutKind) -> Option<&Arc<Rollout>> {
    tables.get::<Rollout>(&kind.as_str().to_owned())
}

/// The rollout that has reached an agent, and tells it of its release.
fn reaching<'a>(
    tables: &'a Tables,
    kind: RolloutKind,
    agent: &AgentKey,
) -> Option<&'a Arc<Rollout>> {
    // The release of a finished rollout is the site's, which may have been changed since.
    rollout(tables, kind)
        .filter(|rollout| rollout.state != RolloutState::Done && rollout.told.contains(agent))
}

/// The release that a firewall is told of: that of a rollout that has reached it, else the site's.
/// `None` means that its agent keeps its program.
pub(crate) fn firewall_release(
    tables: &Tables,
    machine: MachineId,
) -> Option<Arc<FirewallRelease>> {
    match reaching(tables, RolloutKind::Firewall, &machine.into()) {
        Some(rollout) => Some(Arc::new(site_release(rollout))),
        None => tables
            .get::<FirewallRelease>(&FirewallRelease::SITE.to_owned())
            .cloned(),
    }
}

/// The release that another agent is told of, as [`firewall_release`].
pub fn agent_release(tables: &Tables, kind: RolloutKind, agent: &AgentKey) -> Option<AgentRelease> {
    match reaching(tables, kind, agent) {
        Some(rollout) => Some(rollout.release.clone()),
        None => release_of_site(tables, kind).map(|site| site.release),
    }
}

/// The release of the site for agents of a kind. `None` means that they are told of none.
pub fn release_of_site(tables: &Tables, kind: RolloutKind) -> Option<SiteRelease> {
    match kind {
        RolloutKind::Firewall => {
            let site = tables.get::<FirewallRelease>(&FirewallRelease::SITE.to_owned())?;
            Some(SiteRelease {
                kind,
                release: AgentRelease {
                    version: site.version.clone(),
                    url: site.url.clone(),
                    head_digest: site.head_digest.clone(),
                },
                set_by: site.set_by.clone(),
                set_at: site.set_at,
            })
        }
        RolloutKind::Core | RolloutKind::Bmc | RolloutKind::Pixie => {
            let site = tables.get::<SiteRelease>(&kind.as_str().to_owned())?;
            Some(SiteRelease::clone(site))
        }
    }
}

/// The release of a rollout, as the site's.
pub(crate) fn site_release(rollout: &Rollout) -> FirewallRelease {
    let AgentRelease {
        version,
        url,
        head_digest,
    } = rollout.release.clone();
    FirewallRelease {
        name: FirewallRelease::SITE.to_owned(),
        version,
        url,
        head_digest,
        set_by: rollout.started_by.clone(),
        set_at: rollout.started_at,
    }
}

/// All agents of a rollout, in the order in which they get the release.
pub fn judged_agents(tables: &Tables, rollout: &Rollout, sight: &AgentSight) -> Vec<JudgedAgent> {
    match rollout.kind {
        RolloutKind::Firewall => firewalls(tables, &rollout.release),
        RolloutKind::Core | RolloutKind::Bmc | RolloutKind::Pixie => {
            site_agents(tables, rollout, sight)
        }
    }
}

/// The agents of the site that have reported their program: healthy ones first.
fn site_agents(tables: &Tables, rollout: &Rollout, sight: &AgentSight) -> Vec<JudgedAgent> {
    let programs = tables.all::<AgentProgram>().filter(|program| {
        let identity = tables.get::<Identity>(&program.identity);
        // One that was told and is away has failed: it may be away because of the release.
        let is_told = rollout.told.contains(&program.agent);
        program.kind == rollout.kind
            && identity.is_some_and(|identity| {
                identity.revoked_at.is_none() && (is_told || identity.is_live(sight.now))
            })
    });
    let reach = match rollout.kind {
        RolloutKind::Bmc => bmc_reach(tables, rollout.started_at),
        RolloutKind::Firewall | RolloutKind::Core | RolloutKind::Pixie => BTreeMap::new(),
    };
    let judged = programs.map(|program| {
        let named = (program.kind, program.agent.clone());
        let ailment = match sight.silent.contains(&named) {
            true => Some("it has no session with control".to_owned()),
            false => program.ailment.clone().or_else(|| {
                let partition = program.agent.partition()?;
                reach.get(partition)?.ailment()
            }),
        };
        let is_unwell = ailment.is_some();
        let reported = ReportedProgram {
            version: Some(&program.version),
            phase: &program.phase,
            wanted: program.wanted.as_deref(),
            error: program.error.as_deref(),
        };
        let standing = reported.standing(&rollout.release, ailment);
        let judged = JudgedAgent {
            agent: program.agent.clone(),
            tenant: None,
            standing,
        };
        (reluctance(&judged.standing, is_unwell), judged)
    });
    ordered(judged.collect())
}

/// Agents by their rank, and then by their keys.
fn ordered<R: Ord>(mut ranked: Vec<(R, JudgedAgent)>) -> Vec<JudgedAgent> {
    ranked.sort_by(|(rank, judged), (other_rank, other)| {
        (rank, &judged.agent).cmp(&(other_rank, &other.agent))
    });
    ranked.into_iter().map(|(_, judged)| judged).collect()
}

/// The firewalls that run an agent. Healthy ones come first, so that a wave is not held by one that was
/// not well before; and standbys before the active one, so that a project keeps a firewall with the
/// earlier program until its standbys have proven the new one.
fn firewalls(tables: &Tables, release: &AgentRelease) -> Vec<JudgedAgent> {
    let machines = tables.all::<Machine>().filter_map(|machine| {
        let allocation = firewall_allocation(tables, machine.id)?;
        let is_agents = machine.phase == Phase::Running && !lacks_agent(tables, machine);
        let project = tables.get::<Project>(&allocation.project);
        let tenant = project.map(|project| project.tenant.clone());
        is_agents.then_some((machine, tenant))
    });
    let judged = machines.map(|(machine, tenant)| {
        let standing = firewall_standing(tables, machine, release);
        let distance = firewall_distance(tables, machine.id);
        let is_unwell = ailment(tables, machine).is_some();
        let rank = (reluctance(&standing, is_unwell), Reverse(distance));
        let judged = JudgedAgent {
            agent: machine.id.into(),
            tenant,
            standing,
        };
        (rank, judged)
    });
    ordered(judged.collect())
}

/// 0 for an agent that can take the release, 1 for one that is not healthy, 2 for one that will not
/// take it.
fn reluctance(standing: &AgentStanding, is_unwell: bool) -> u8 {
    match standing {
        AgentStanding::Refused(_) => 2,
        _ if is_unwell => 1,
        _ => 0,
    }
}

fn firewall_standing(tables: &Tables, machine: &Machine, release: &AgentRelease) -> AgentStanding {
    let status = own_status(tables, machine);
    let update = status.and_then(|status| status.update.as_ref());
    let reported = ReportedProgram {
        version: status.and_then(|status| status.agent_version.as_deref()),
        phase: update.map_or("", |update| update.phase.as_str()),
        wanted: update.and_then(|update| update.wanted.as_deref()),
        error: update.and_then(|update| update.error.as_deref()),
    };
    let ailment = ailment(tables, machine).map(|ailment| ailment.to_string());
    reported.standing(release, ailment)
}
