//! Checks of firewalls: how they were made, installed, whether their agents are up to date, and
//! whether a rollout to them stopped.

use proto_public::metalmesh::admin::v1::{
    FirewallFault, FirewallStatus, FirewallUpdateStatus, RolloutState,
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
    found.extend(rollout(facts));
    if found.is_empty() {
        let count = firewalls.len();
        return vec![DoctorFinding::ok(format!(
            "nothing is wrong with how the {count} firewalls were made"
        ))];
    }
    found
}

/// A rollout that waits for an operator. `None` means that there is none.
fn rollout(facts: &DoctorFacts) -> Option<DoctorFinding> {
    let rollout = match &facts.rollout {
        Ok(rollout) => rollout.as_ref()?,
        Err(error) => return Some(DoctorFinding::unknown("whether a rollout stopped", error)),
    };
    (rollout.state() == RolloutState::Stopped).then(|| {
        let release = rollout.release.as_ref();
        let version = release.map_or("", |release| release.version.as_str());
        DoctorFinding::warn(
            format!("the rollout of {version} stopped in wave {}", rollout.wave),
            &rollout.reason,
            "metalmesh firewall rollout status, then resume or abort it",
        )
    })
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
