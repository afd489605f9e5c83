//! Reads of rollouts: the release that an agent is told of, and the standing of all agents.

use std::cmp::Reverse;
use std::sync::Arc;

use proto_types::MachineId;

use crate::firewall::entity::{FirewallRelease, FirewallStatus};
use crate::firewall::fault::lacks_agent;
use crate::firewall::health::ailment;
use crate::firewall::read::{firewall_allocation, own_status};
use crate::firewall::standby::firewall_distance;
use crate::machine::entity::{Machine, Phase};
use crate::rollout::decision::{AgentStanding, JudgedAgent};
use crate::rollout::entity::{AgentRelease, Rollout, RolloutKind, RolloutState};
use crate::tables::Tables;

/// Phase of a firewall's agent that runs the release that it was told of.
const CURRENT: &str = "current";
/// Phase of one that does not replace its program.
const OFF: &str = "off";
/// Phase of one that went back to its earlier program, and does not try the release again.
const REFUSED: &str = "refused";

/// The rollout of a kind of agents. `None` means that there is none, and has been none.
pub fn rollout(tables: &Tables, kind: RolloutKind) -> Option<&Arc<Rollout>> {
    tables.get::<Rollout>(&kind.as_str().to_owned())
}

/// The release that a firewall is told of: that of a rollout that has reached it, else the site's.
/// `None` means that its agent keeps its program.
pub(crate) fn firewall_release(
    tables: &Tables,
    machine: MachineId,
) -> Option<Arc<FirewallRelease>> {
    let rollout = rollout(tables, RolloutKind::Firewall);
    // The release of a finished rollout is the site's, which may have been changed since.
    let reached = rollout
        .filter(|rollout| rollout.state != RolloutState::Done && rollout.told.contains(&machine));
    match reached {
        Some(rollout) => Some(Arc::new(site_release(rollout))),
        None => tables
            .get::<FirewallRelease>(&FirewallRelease::SITE.to_owned())
            .cloned(),
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
pub fn judged_agents(tables: &Tables, rollout: &Rollout) -> Vec<JudgedAgent> {
    match rollout.kind {
        RolloutKind::Firewall => firewalls(tables, &rollout.release),
    }
}

/// The firewalls that run an agent. Healthy ones come first, so that a wave is not held by one that was
/// not well before; and standbys before the active one, so that a project keeps a firewall with the
/// earlier program until its standbys have proven the new one.
fn firewalls(tables: &Tables, release: &AgentRelease) -> Vec<JudgedAgent> {
    let machines = tables.all::<Machine>().filter(|machine| {
        machine.phase == Phase::Running
            && firewall_allocation(tables, machine.id).is_some()
            && !lacks_agent(tables, machine)
    });
    let judged = machines.map(|machine| {
        let standing = firewall_standing(tables, machine, release);
        let distance = firewall_distance(tables, machine.id);
        let rank = (reluctance(tables, machine, &standing), Reverse(distance));
        let agent = machine.id;
        (rank, JudgedAgent { agent, standing })
    });
    let mut judged: Vec<_> = judged.collect();
    judged.sort_by_key(|(rank, judged)| (*rank, judged.agent));
    judged.into_iter().map(|(_, judged)| judged).collect()
}

/// 0 for a firewall that can take the release, 1 for one that is not healthy, 2 for one that will not
/// take it.
fn reluctance(tables: &Tables, machine: &Machine, standing: &AgentStanding) -> u8 {
    match standing {
        AgentStanding::Refused(_) => 2,
        _ if ailment(tables, machine).is_some() => 1,
        _ => 0,
    }
}

fn firewall_standing(tables: &Tables, machine: &Machine, release: &AgentRelease) -> AgentStanding {
    let status = own_status(tables, machine);
    let update = status.and_then(|status| status.update.as_ref());
    let phase = update.map_or("", |update| update.phase.as_str());
    let error = update.and_then(|update| update.error.as_deref());
    if phase == OFF {
        let error = error.unwrap_or("selfUpdate.enabled is not set");
        return AgentStanding::Refused(format!("its self-update is off: {error}"));
    }
    let wanted = update.and_then(|update| update.wanted.as_deref());
    let is_told = wanted == Some(release.version.as_str());
    if is_told && phase == REFUSED {
        let error = error.unwrap_or("it did not confirm itself");
        return AgentStanding::Refused(format!("it went back to its earlier program: {error}"));
    }
    if let Some(ailment) = ailment(tables, machine) {
        return AgentStanding::OnTheWay(ailment.to_string());
    }
    let runs = status.and_then(|status| status.agent_version.as_deref());
    if is_told && phase == CURRENT && runs == Some(release.version.as_str()) {
        return AgentStanding::Settled;
    }
    AgentStanding::OnTheWay(progress(status, phase, error))
}

/// How far an agent is, in words.
fn progress(status: Option<&FirewallStatus>, phase: &str, error: Option<&str>) -> String {
    let runs = status.and_then(|status| status.agent_version.as_deref());
    let runs = runs.unwrap_or("an unknown version");
    let phase = match phase {
        "" => "not reported",
        phase => phase,
    };
    let error = error.map_or_else(String::new, |error| format!(": {error}"));
    format!("it runs {runs}, its self-update is {phase}{error}")
}
