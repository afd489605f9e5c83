//! Checks of the fleet: partitions, agents, machines.

use std::collections::BTreeMap;

use proto_public::api::v2::MachineIssueSeverity as Severity;
use proto_public::metalmesh::admin::v1::{DoctorUnknownMachines, Identity, IdentityKind};

use super::facts::DoctorFacts;
use super::report::DoctorFinding;
use crate::text::{enum_text, issue_code};

/// Remaining validity below which an agent's certificate counts as not renewed, seconds. Agents renew
/// when half of the hour is left.
const RENEWED_BEFORE_S: i64 = 15 * 60;

fn not_serving(what: &str) -> Vec<DoctorFinding> {
    let why = "the node that leads has the sessions, and nobody asked it";
    let mend = "metalmesh doctor --node URL (of the node that leads)";
    vec![DoctorFinding::warn(
        format!("{what} is not known"),
        why,
        mend,
    )]
}

pub(super) fn partitions(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let Some(node) = facts.serving() else {
        return not_serving("which partitions are observed");
    };
    let mut found: Vec<DoctorFinding> = (node.unobserved_partitions.iter())
        .map(|partition| {
            DoctorFinding::fail(
                format!("partition {partition:?} is not observed"),
                "none of its agents is heard: nothing in it is judged, repaired or rebooted",
                format!("metalmesh identity ls --partition {partition}"),
            )
        })
        .collect();
    found.extend(node.unknown_machines.iter().map(unknown_machines));
    if found.is_empty() {
        return vec![DoctorFinding::ok("all partitions are observed")];
    }
    found
}

/// One finding for a partition, so that a flood of made-up machines cannot fill the report.
fn unknown_machines(unknown: &DoctorUnknownMachines) -> DoctorFinding {
    let partition = &unknown.partition;
    let what = format!(
        "partition {partition:?} has {} unknown machines that never registered",
        unknown.machines
    );
    let who = match unknown.macs.as_slice() {
        [] => "they asked for a boot from many MAC addresses".to_owned(),
        macs => format!("one MAC address stands for several: {}", macs.join(", ")),
    };
    let why = match unknown.is_full {
        true => format!("{who}; no other unknown machine can boot there now"),
        false => who,
    };
    let mend = "find the switch port of that MAC address; the records are forgotten after an hour";
    DoctorFinding::warn(what, &why, mend)
}

pub(super) fn agents(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let identities = match &facts.identities {
        Ok(identities) => identities,
        Err(error) => return vec![DoctorFinding::unknown("which agents there are", error)],
    };
    let agents: Vec<&Identity> = identities
        .iter()
        .filter(|identity| is_agent(identity))
        .collect();
    let mut found: Vec<DoctorFinding> = agents
        .iter()
        .filter_map(|identity| agent(identity, facts.now_s))
        .collect();
    for node in facts.answers() {
        found.extend(node.turned_away.iter().map(|refused| {
            DoctorFinding::warn(
                format!(
                    "{} was revoked, and tried {} times",
                    refused.identity, refused.times
                ),
                "an agent that should be back is locked out, or somebody has its key",
                format!(
                    "metalmesh identity show {}; to let it in again: metalmesh join create --reenrol",
                    path(&refused.identity)
                ),
            )
        }));
    }
    if found.is_empty() {
        let what = match facts.serving() {
            Some(_) => format!("all {} agents have a session", agents.len()),
            None => format!("{} agents have certificates", agents.len()),
        };
        found.push(DoctorFinding::ok(what));
    }
    found
}

fn is_agent(identity: &Identity) -> bool {
    let kinds = [IdentityKind::Core, IdentityKind::Bmc, IdentityKind::Pixie];
    kinds.contains(&identity.kind()) && identity.revoked_at.is_none()
}

/// The path of a SPIFFE id, without the trust domain.
fn path(id: &str) -> &str {
    let rest = id.strip_prefix("spiffe://").unwrap_or(id);
    rest.split_once('/').map_or(rest, |(_, path)| path)
}

fn agent(identity: &Identity, now_s: i64) -> Option<DoctorFinding> {
    let name = path(&identity.id);
    let left = identity.expires_at.as_ref()?.seconds - now_s;
    match identity.connected {
        Some(true) if left < RENEWED_BEFORE_S => Some(DoctorFinding::warn(
            format!(
                "{name} has {} minutes left of its certificate",
                left.max(0) / 60
            ),
            "it is here, but does not renew",
            format!("metalmesh identity rotate {name}; then look into the agent's log"),
        )),
        Some(false) => {
            let state = match left {
                ..=0 => "its certificate has expired: it comes back as long as it may resume",
                _ => "it has no session: it is down, or cut off",
            };
            let what = format!("{name} is silent");
            Some(DoctorFinding::warn(
                what,
                state,
                format!("metalmesh identity show {name}"),
            ))
        }
        _ => None,
    }
}

pub(super) fn machines(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let issues = match &facts.issues {
        Ok(issues) => issues,
        Err(error) => return vec![DoctorFinding::unknown("what is wrong with machines", error)],
    };
    let mut by_code: BTreeMap<(i32, String), (usize, String)> = BTreeMap::new();
    for issue in issues.iter().flat_map(|machine| &machine.issues) {
        let code = issue_code(issue);
        // The map sorts the most severe issues first.
        let entry = by_code.entry((-issue.severity, code)).or_default();
        entry.0 += 1;
        entry.1.clone_from(&issue.description);
    }
    if by_code.is_empty() {
        return vec![DoctorFinding::ok("nothing is wrong with any machine")];
    }
    let told = by_code.into_iter().map(|((severity, code), (count, why))| {
        let severity = -severity;
        let name = enum_text("metalstack.api.v2.MachineIssueSeverity", severity);
        let machines = if count == 1 { "machine" } else { "machines" };
        let what = format!("{count} {machines}: {code} ({name})");
        let mend = format!("metalmesh machine issues --only {code}");
        match severity == Severity::Critical as i32 {
            true => DoctorFinding::fail(what, &why, mend),
            false => DoctorFinding::warn(what, &why, mend),
        }
    });
    told.collect()
}
