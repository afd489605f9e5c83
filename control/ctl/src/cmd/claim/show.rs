//! The details of a claim for people.

use proto_public::metalmesh::tenant::v1::{Claim, ClaimHost, ClaimHostMetadata, ClaimStatus};

use crate::out::printable;
use crate::output::print_table;
use crate::text::{age, bytes, or_dash};

/// Prints a claim: what it is, its host, its conditions, its events.
pub(super) fn details(claim: &Claim) {
    let none = ClaimStatus::default();
    let status = claim.status.as_ref().unwrap_or(&none);
    line("name", &claim.name);
    line("id", &claim.uuid);
    line("state", &state(status));
    line("pool", &or_dash(status.pool.clone()));
    line("epoch", &status.epoch.to_string());
    line("power", &or_dash(status.power.clone()));
    line(
        "generation",
        &format!(
            "{} (acted on: {})",
            claim.generation, status.observed_generation
        ),
    );
    let addresses = status.addresses.iter().map(|found| found.address.clone());
    line(
        "addresses",
        &or_dash(addresses.collect::<Vec<_>>().join(" ")),
    );
    if let Some(host) = &status.host {
        hardware(host);
    }
    if let Some(found) = &status.host_metadata {
        metadata(found);
    }
    for hold in &status.holds {
        line(
            "hold",
            &format!("{} by {}: {}", hold.key, hold.by, hold.reason),
        );
    }
    if status.held_by_operator {
        line("hold", "by the administrator of the pool");
    }
    outln!();
    let conditions = status.conditions.iter().map(|found| {
        let holds = if found.status { "yes" } else { "no" };
        let since = age(found.last_transition.as_ref());
        vec![
            found.r#type.clone(),
            holds.to_owned(),
            since,
            found.reason.clone(),
            found.message.clone(),
        ]
    });
    print_table(
        &["condition", "holds", "since", "reason", "message"],
        conditions,
    );
    outln!();
    let events = status.events.iter().map(|found| {
        vec![
            age(found.at.as_ref()),
            found.reason.clone(),
            found.message.clone(),
        ]
    });
    print_table(&["age", "event", "message"], events);
}

/// The state, with what a waiting claim waits for.
pub(crate) fn state(status: &ClaimStatus) -> String {
    match (status.pending_reason.as_str(), status.matching) {
        ("", _) => status.state.clone(),
        (reason, 0) => format!("{}: {reason}", status.state),
        (reason, matching) => format!("{}: {reason} ({matching} fit)", status.state),
    }
}

/// The metadata that the pool publishes: a line each, sorted by key.
fn metadata(found: &ClaimHostMetadata) {
    if found.revision == 0 {
        return;
    }
    line("metadata", &format!("revision {}", found.revision));
    for (title, pairs) in [
        ("  label", &found.labels),
        ("  annotation", &found.annotations),
    ] {
        let mut pairs: Vec<_> = pairs.iter().collect();
        pairs.sort();
        for (key, value) in pairs {
            line(title, &format!("{key}={value}"));
        }
    }
    if found.omitted > 0 {
        line("  left out", &found.omitted.to_string());
    }
}

fn hardware(host: &ClaimHost) {
    let mut labels: Vec<String> = host
        .labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.sort();
    line("labels", &or_dash(labels.join(",")));
    line("partition", &or_dash(host.partition.clone()));
    line("size", &or_dash(host.size.clone()));
    line("failure domain", &or_dash(host.failure_domain.clone()));
    line(
        "hardware",
        &format!("{} cores, {}", host.cores, bytes(host.memory)),
    );
    line("health", &or_dash(host.health.clone()));
    for gpu in &host.gpus {
        line("gpu", &format!("{} {}", gpu.vendor, gpu.model));
    }
    for disk in &host.disks {
        line("disk", &format!("{} {}", disk.name, bytes(disk.size)));
    }
    for nic in &host.nics {
        let boot = if nic.boot { ", boots" } else { "" };
        line("nic", &format!("{} {}{boot}", nic.name, nic.mac));
    }
}

fn line(title: &str, text: &str) {
    outln!("{:<16}{}", title, printable(text));
}
