//! Pools, their hosts and the labels of projects, in both directions.

use std::collections::BTreeSet;

use control_gate::refusal::invalid;
use control_state::query::{host_of_claim, machine_obstacle, pool_hosts};
use control_state::{self as state, RequiredLabel, RevokeRule, Tables, WipeLevel};
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::Status;

use super::claim::claim;
use super::claim_spec::{from_duration, from_wipe_level, map};
use super::{duration, parse_all, time};

/// A pool for the wire, with the numbers of its hosts.
pub fn pool(tables: &Tables, pool: &state::HostPool) -> mesh::HostPool {
    let (mut hosts, mut bound, mut free) = (0, 0, 0);
    for host in pool_hosts(tables, &pool.id) {
        hosts += 1;
        bound += u32::from(host.binding.is_some());
        free += u32::from(state_of(host) == "free");
    }
    mesh::HostPool {
        id: pool.id.to_string(),
        labels: map(&pool.meta.labels),
        description: pool.description.clone(),
        generation: pool.meta.generation,
        created_at: time(pool.meta.created_at),
        updated_at: time(pool.meta.updated_at),
        policies: pool.policies.iter().map(policy).collect(),
        published_labels: pool.published.iter().cloned().collect(),
        wipe_floor: pool.floor.as_str().to_owned(),
        reuse_floor: level(pool.reuse_floor),
        metadata: (!pool.metadata.is_empty()).then(|| mesh::HostMetadataRules {
            labels: Some(key_rules(&pool.metadata.labels)),
            annotations: Some(key_rules(&pool.metadata.annotations)),
        }),
        reuse_max: (pool.reuse_max_ms > 0).then(|| duration(pool.reuse_max_ms)),
        evict_after: match pool.on_revoke {
            RevokeRule::Keep => None,
            RevokeRule::Evict { grace_ms } => Some(duration(grace_ms)),
        },
        hosts,
        bound,
        free,
    }
}

/// The name of a strength of a wipe; empty for none.
fn level(level: Option<WipeLevel>) -> String {
    level
        .map(|level| level.as_str().to_owned())
        .unwrap_or_default()
}

fn key_rules(rules: &state::KeyRules) -> mesh::HostKeyRules {
    mesh::HostKeyRules {
        keys: rules.keys.iter().cloned().collect(),
        prefixes: rules.prefixes.iter().cloned().collect(),
        patterns: rules.patterns.iter().cloned().collect(),
    }
}

/// Rules of metadata from the wire.
pub fn from_metadata(rules: Option<mesh::HostMetadataRules>) -> state::MetadataRules {
    let keys = |rules: Option<mesh::HostKeyRules>| {
        let rules = rules.unwrap_or_default();
        state::KeyRules {
            keys: rules.keys.into_iter().collect(),
            prefixes: rules.prefixes.into_iter().collect(),
            patterns: rules.patterns.into_iter().collect(),
        }
    };
    let rules = rules.unwrap_or_default();
    state::MetadataRules {
        labels: keys(rules.labels),
        annotations: keys(rules.annotations),
    }
}

fn policy(policy: &state::DeployPolicy) -> mesh::DeployPolicy {
    let labels = policy.labels.iter().map(|label| mesh::DeployPolicyLabel {
        name: label.name.clone(),
        value: label.value.clone(),
    });
    mesh::DeployPolicy {
        name: policy.name.clone(),
        allow_all: policy.allow_all,
        projects: policy.projects.iter().map(ToString::to_string).collect(),
        pattern: policy.pattern.clone(),
        labels: labels.collect(),
        priority_max: policy.priority_max,
    }
}

/// Policies from the wire.
///
/// # Errors
/// `invalid_argument` with the field.
pub fn from_policies(
    field: &str,
    policies: Vec<mesh::DeployPolicy>,
) -> Result<Vec<state::DeployPolicy>, Status> {
    let policies = policies.into_iter().map(|policy| {
        let labels = policy.labels.into_iter().map(|label| RequiredLabel {
            name: label.name,
            value: label.value,
        });
        Ok(state::DeployPolicy {
            name: policy.name,
            allow_all: policy.allow_all,
            projects: parse_all(&format!("{field}.projects"), &policy.projects)?,
            pattern: policy.pattern,
            labels: labels.collect(),
            priority_max: policy.priority_max,
        })
    });
    policies.collect()
}

/// The strength of a wipe from the wire; the weakest for an empty text.
///
/// # Errors
/// `invalid_argument` for another text.
pub fn from_wipe_floor(text: &str) -> Result<WipeLevel, Status> {
    match text {
        "" | "erase" => Ok(WipeLevel::Erase),
        "sanitize" => Ok(WipeLevel::Sanitize),
        other => {
            let rule = format!("{other:?} is neither erase nor sanitize");
            Err(invalid("pool.wipe_floor", rule))
        }
    }
}

/// The weakest wipe of a host that is kept for its project, from the wire; `None` for an empty text.
///
/// # Errors
/// `invalid_argument` for another text.
pub fn from_reuse_floor(text: &str) -> Result<Option<WipeLevel>, Status> {
    from_wipe_level("pool.reuse_floor", text)
}

/// The rule for projects that are not admitted any more, from the wire.
///
/// # Errors
/// `invalid_argument` for a negative time.
pub fn from_evict_after(after: Option<&prost_types::Duration>) -> Result<RevokeRule, Status> {
    match after {
        None => Ok(RevokeRule::Keep),
        Some(_) => Ok(RevokeRule::Evict {
            grace_ms: from_duration("pool.evict_after", after)?,
        }),
    }
}

/// Taints from the wire.
pub fn from_taints(taints: Vec<mesh::HostTaint>) -> BTreeSet<state::HostTaint> {
    let taints = taints.into_iter();
    taints
        .map(|taint| state::HostTaint {
            key: taint.key,
            value: taint.value,
        })
        .collect()
}

/// One word for what a host is good for now.
fn state_of(host: &state::PoolHost) -> &'static str {
    if host.binding.is_some() {
        "bound"
    } else if host.quarantine.is_some() {
        "quarantined"
    } else if host.cordon.is_some() {
        "cordoned"
    } else if !host.is_clean() {
        "cleaning"
    } else if !host.seen.is_ready {
        "not-ready"
    } else if host.reserved.is_some() {
        "reserved"
    } else {
        "free"
    }
}

/// A host for the wire.
pub fn host(tables: &Tables, host: &state::PoolHost) -> mesh::PoolHost {
    let taints = host.taints.iter().map(|taint| mesh::HostTaint {
        key: taint.key.clone(),
        value: taint.value.clone(),
    });
    let binding = host.binding.as_ref();
    let reserved = host.reserved.as_ref();
    let obstacle = || match host.seen.is_ready || binding.is_some() {
        true => String::new(),
        false => machine_obstacle(tables, host.machine).unwrap_or_default(),
    };
    mesh::PoolHost {
        machine: host.machine.to_string(),
        pool: host.pool.to_string(),
        labels: map(&host.meta.labels),
        annotations: map(&host.annotations),
        light_wipe: level(host.light_wipe),
        taints: taints.collect(),
        failure_domain: host.domain.clone(),
        only: host.only.iter().map(policy).collect(),
        cordon: host.cordon.clone().unwrap_or_default(),
        generation: host.meta.generation,
        updated_at: time(host.meta.updated_at),
        state: state_of(host).to_owned(),
        reason: host.quarantine.clone().unwrap_or_else(obstacle),
        epoch: host.epoch,
        claim: text(binding.map(|binding| binding.claim)),
        claim_project: text(binding.map(|binding| binding.project)),
        reserved_project: text(reserved.map(|reserved| reserved.project)),
        reserved_key: reserved
            .map(|reserved| reserved.key.clone())
            .unwrap_or_default(),
        reserved_until: reserved.and_then(|reserved| time(reserved.until)),
        holds: host
            .holds
            .iter()
            .map(|(key, found)| hold(key, found))
            .collect(),
        provisions: host.provisions,
        partition: text(host.seen.partition.as_ref()),
        size: text(host.seen.size.as_ref()),
        rack: host.seen.rack.clone(),
    }
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn hold(key: &str, found: &state::PowerHold) -> mesh::HostHold {
    let (actor, key) = key.split_once('/').unwrap_or(("", key));
    mesh::HostHold {
        actor: actor.to_owned(),
        key: key.to_owned(),
        at: time(found.at),
        by: found.by.clone(),
        reason: found.reason.clone(),
    }
}

/// The labels of a project for the wire.
pub fn project_labels(found: &state::ProjectLabels) -> mesh::ProjectPolicyLabels {
    mesh::ProjectPolicyLabels {
        project: found.project.to_string(),
        alias: found.alias.clone().unwrap_or_default(),
        labels: map(&found.labels),
        updated_at: time(found.updated_at),
    }
}

/// A claim with its machine, for administrators.
pub fn pool_claim(tables: &Tables, found: &state::Claim) -> mesh::PoolClaim {
    mesh::PoolClaim {
        claim: Some(claim(tables, found)),
        machine: text(host_of_claim(tables, found.id).map(|host| host.machine)),
    }
}
