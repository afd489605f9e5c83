//! Checks of firewalls: how they were made, installed, and whether their agents are up to date.

use proto_public::metalmesh::admin::v1::{FirewallFault, FirewallStatus, FirewallUpdateStatus};

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
    let found: Vec<DoctorFinding> = kept.flat_map(of_firewall).collect();
    if found.is_empty() {
        let count = firewalls.len();
        return vec![DoctorFinding::ok(format!(
            "nothing is wrong with how the {count} firewalls were made"
        ))];
    }
    found
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
