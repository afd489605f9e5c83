//! Rows of pools, hosts and claims.

use std::collections::HashMap;

use proto_public::metalmesh::admin::v1::{HostPool, PoolClaim, PoolHost, ProjectPolicyLabels};
use proto_public::metalmesh::tenant::v1::{Claim, ClaimCondition};

use super::row;
use crate::output::TableRow;
use crate::text::{age, or_dash};

row!(Claim, "metalmesh.tenant.v1.Claim", |claim| [
    "name": claim.name.clone(),
    "state": state(claim),
    "ready": ready(claim),
    "image": or_dash(claim.spec.as_ref().and_then(|spec| spec.image.clone()).unwrap_or_default()),
    "address": or_dash(address(claim)),
    "age": age(claim.created_at.as_ref()),
    "why": or_dash(why(claim)),
], wide [
    "id": claim.uuid.clone(),
    "pool": or_dash(claim.status.as_ref().map(|status| status.pool.clone()).unwrap_or_default()),
    "epoch": claim.status.as_ref().map_or(0, |status| status.epoch).to_string(),
    "labels": pairs(&claim.labels),
    "by": claim.created_by.clone(),
]);

fn state(claim: &Claim) -> String {
    let status = claim.status.as_ref();
    or_dash(
        status
            .map(|status| status.state.clone())
            .unwrap_or_default(),
    )
}

fn condition<'a>(claim: &'a Claim, kind: &str) -> Option<&'a ClaimCondition> {
    let mut conditions = claim.status.as_ref()?.conditions.iter();
    conditions.find(|condition| condition.r#type == kind)
}

fn ready(claim: &Claim) -> &'static str {
    match condition(claim, "Ready") {
        Some(ready) if ready.status => "yes",
        _ => "no",
    }
}

/// The first address of the installed system.
fn address(claim: &Claim) -> String {
    let status = claim.status.as_ref();
    let mut addresses = status.into_iter().flat_map(|status| &status.addresses);
    let first = addresses.find(|found| found.r#type == "InternalIP");
    first.map(|found| found.address.clone()).unwrap_or_default()
}

/// The reason of the first condition that keeps a claim from being ready.
fn why(claim: &Claim) -> String {
    let wrong = ["Associated", "Synchronized", "Provisioned"];
    let mut wrong = wrong.into_iter().filter_map(|kind| condition(claim, kind));
    let first = wrong.find(|condition| !condition.status);
    first
        .map(|condition| condition.reason.clone())
        .unwrap_or_default()
}

/// Labels on one line, sorted by key.
fn pairs(labels: &HashMap<String, String>) -> String {
    let pairs = labels.iter().map(|(key, value)| format!("{key}={value}"));
    let mut pairs: Vec<String> = pairs.collect();
    pairs.sort();
    or_dash(pairs.join(","))
}

row!(HostPool, "metalmesh.admin.v1.HostPool", |pool| [
    "id": pool.id.clone(),
    "hosts": pool.hosts.to_string(),
    "bound": pool.bound.to_string(),
    "free": pool.free.to_string(),
    "policies": pool.policies.len().to_string(),
    "wipe": pool.wipe_floor.clone(),
    "age": age(pool.created_at.as_ref()),
    "description": pool.description.clone(),
], wide [
    "published": or_dash(pool.published_labels.join(",")),
    "reuse": seconds(pool.reuse_max.as_ref()),
    "reuse wipe": or_dash(pool.reuse_floor.clone()),
    "evicts after": seconds(pool.evict_after.as_ref()),
    "labels": pairs(&pool.labels),
]);

fn seconds(duration: Option<&prost_types::Duration>) -> String {
    duration.map_or_else(
        || "-".to_owned(),
        |duration| format!("{}s", duration.seconds),
    )
}

row!(PoolHost, "metalmesh.admin.v1.PoolHost", |host| [
    "machine": host.machine.clone(),
    "pool": host.pool.clone(),
    "state": host.state.clone(),
    "labels": pairs(&host.labels),
    "taints": or_dash(taints(host)),
    "domain": or_dash(host.failure_domain.clone()),
    "claim": or_dash(host.claim.clone()),
    "reason": or_dash(match host.reason.is_empty() {
        true => host.cordon.clone(),
        false => host.reason.clone(),
    }),
], wide [
    "epoch": host.epoch.to_string(),
    "project": or_dash(host.claim_project.clone()),
    "reserved": or_dash(host.reserved_project.clone()),
    "partition": or_dash(host.partition.clone()),
    "size": or_dash(host.size.clone()),
    "rack": or_dash(host.rack.clone()),
    "annotations": pairs(&host.annotations),
    "light wipe": or_dash(host.light_wipe.clone()),
    "holds": host.holds.len().to_string(),
    "provisions": host.provisions.to_string(),
]);

fn taints(host: &PoolHost) -> String {
    let taints = host
        .taints
        .iter()
        .map(|taint| match taint.value.is_empty() {
            true => taint.key.clone(),
            false => format!("{}={}", taint.key, taint.value),
        });
    taints.collect::<Vec<_>>().join(",")
}

row!(ProjectPolicyLabels, "metalmesh.admin.v1.ProjectPolicyLabels", |found| [
    "project": found.project.clone(),
    "alias": or_dash(found.alias.clone()),
    "labels": pairs(&found.labels),
    "age": age(found.updated_at.as_ref()),
], wide []);

row!(PoolClaim, "metalmesh.admin.v1.PoolClaim", |found| [
    "name": found.claim.as_ref().map(|claim| claim.name.clone()).unwrap_or_default(),
    "project": found.claim.as_ref().map(|claim| claim.project.clone()).unwrap_or_default(),
    "state": found.claim.as_ref().map(state).unwrap_or_default(),
    "machine": or_dash(found.machine.clone()),
    "why": or_dash(found.claim.as_ref().map(why).unwrap_or_default()),
], wide [
    "id": found.claim.as_ref().map(|claim| claim.uuid.clone()).unwrap_or_default(),
    "age": age(found.claim.as_ref().and_then(|claim| claim.created_at.as_ref())),
]);
