//! Checks of firewalls: how they were made, installed, whether their agents are up to date; and whether a
//! rollout to them, or to other agents, stopped.

use proto_public::metalmesh::admin::v1::{
    FirewallFault, FirewallStatus, FirewallUpdateStatus, RolloutKind, RolloutState,
};

use super::facts::DoctorFacts;
use super::report::DoctorFinding;

/// The fault of a firewall on which no rule of control is in force.
const NO_AGENT: &str = "no-agent";
/// Phases of self-update that need a look.
const FAILED: [&str; 2] = ["failed", "refused"];

pub(super) fn firewalls(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let firewalls = match &facts.firewalls {
        Ok(firewalls) => firewalls,
        Err(error) => return vec![DoctorFinding::unknown("which firewalls there are", error)],
    };
    // One that is being freed needs no replacement.
    let kept = firewalls.iter().filter(|firewall| !firewall.freed);
    let mut found: Vec<DoctorFinding> = kept.flat_map(of_firewall).collect();
    found.extend(rollouts(facts));
    if found.is_empty() {
        let count = firewalls.len();
        return vec![DoctorFinding::ok(format!(
            "nothing is wrong with how the {count} firewalls were made"
        ))];
    }
    found
}

/// Rollouts that wait for an operator.
fn rollouts(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let rollouts = match &facts.rollouts {
        Ok(rollouts) => rollouts.iter(),
        Err(error) => {
            return vec![DoctorFinding::unknown("whether a rollout stopped", error)];
        }
    };
    let stopped = rollouts.filter(|rollout| rollout.state() == RolloutState::Stopped);
    let found = stopped.map(|rollout| {
        let release = rollout.release.as_ref();
        let version = release.map_or("", |release| release.version.as_str());
        let remedy = match rollout.kind() {
            RolloutKind::Core => "metalmesh rollout core show, then resume or abort it",
            RolloutKind::Bmc => "metalmesh rollout bmc show, then resume or abort it",
            RolloutKind::Pixie => "metalmesh rollout pixie show, then resume or abort it",
            RolloutKind::Firewall | RolloutKind::Unspecified => {
                "metalmesh firewall rollout status, then resume or abort it"
            }
        };
        DoctorFinding::warn(
            format!("the rollout of {version} stopped in wave {}", rollout.wave),
            &rollout.reason,
            remedy,
        )
    });
    found.collect()
}

fn of_firewall(firewall: &FirewallStatus) -> impl Iterator<Item = DoctorFinding> + '_ {
    let faults = firewall.faults.iter();
    let faults = faults.map(move |found| fault(firewall, found));
    let update = firewall.update.as_ref();
    let failed = update.filter(|update| FAILED.contains(&update.phase.as_str()));
    faults.chain(failed.map(|failed| update_failed(firewall, failed)))
}

/// Its name and its id.
fn name(firewall: &FirewallStatus) -> String {
    format!("firewall {} ({})", firewall.firewall, firewall.hostname)
}

fn fault(firewall: &FirewallStatus, fault: &FirewallFault) -> DoctorFinding {
    let what = format!("{}: {}", name(firewall), fault.code);
    match fault.code == NO_AGENT {
        true => DoctorFinding::fail(what, &fault.problem, &fault.remedy),
        false => DoctorFinding::warn(what, &fault.problem, &fault.remedy),
    }
}

fn update_failed(firewall: &FirewallStatus, update: &FirewallUpdateStatus) -> DoctorFinding {
    let what = format!(
        "{}: its agent does not become {} ({})",
        name(firewall),
        update.wanted,
        update.phase
    );
    let why = match update.error.is_empty() {
        true => "it has not said why",
        false => &update.error,
    };
    let mend = match update.phase == "refused" {
        true => {
            "metalmesh-firewall update retry (on the firewall), or name another release: metalmesh \
                 firewall release set"
        }
        false => "metalmesh firewall release show",
    };
    DoctorFinding::warn(what, why, mend)
}
