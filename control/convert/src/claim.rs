//! Claims for the wire, as their project sees them: no id of a machine, no BMC, no neighbour.

use control_state::query::{host_of_claim, published_labels};
use control_state::{
    self as state, ClaimState, EventLog, Liveliness, Machine, PoolHost, RebootMode, Tables,
};
use proto_public::metalmesh::tenant::v1 as tenant;

use super::claim_spec::{map, spec};
use super::time;

/// A claim for the wire.
pub fn claim(tables: &Tables, claim: &state::Claim) -> tenant::Claim {
    tenant::Claim {
        uuid: claim.id.to_string(),
        project: claim.project.to_string(),
        name: claim.name.clone(),
        labels: map(&claim.meta.labels),
        generation: claim.meta.generation,
        created_at: time(claim.meta.created_at),
        updated_at: time(claim.meta.updated_at),
        created_by: claim.created_by.clone(),
        spec: Some(spec(&claim.spec)),
        status: Some(status(tables, claim)),
    }
}

/// The machine of the host that is bound to a claim, with the host.
struct BoundHost<'a> {
    host: &'a PoolHost,
    machine: &'a Machine,
}

/// The bound host of a claim, by the host's own word. `None` means that it has none.
fn bound<'a>(tables: &'a Tables, claim: &state::Claim) -> Option<BoundHost<'a>> {
    let host = host_of_claim(tables, claim.id)?;
    let machine = tables.get::<Machine>(&host.machine)?;
    Some(BoundHost { host, machine })
}

fn status(tables: &Tables, claim: &state::Claim) -> tenant::ClaimStatus {
    let binding = claim.binding.as_ref();
    let bound = bound(tables, claim);
    let is_pending = claim.state == ClaimState::Pending;
    let machine = bound.as_ref().map(|bound| bound.machine);
    tenant::ClaimStatus {
        state: claim.state.as_str().to_owned(),
        since: time(claim.since),
        observed_generation: claim.observed_generation,
        conditions: claim.conditions.iter().map(condition).collect(),
        pending_reason: pending_reason(claim),
        matching: if is_pending { claim.queue.matching } else { 0 },
        events: claim.notes.iter().map(event).collect(),
        epoch: binding.map_or(0, |binding| binding.epoch),
        bound_at: binding.and_then(|binding| time(binding.bound_at)),
        pool: binding
            .map(|binding| binding.pool.to_string())
            .unwrap_or_default(),
        provider_id: machine
            .map(|machine| provider_id(claim, machine))
            .unwrap_or_default(),
        host: bound.as_ref().map(|bound| host(tables, bound)),
        addresses: machine
            .map(|machine| addresses(claim, machine))
            .unwrap_or_default(),
        power: machine.map(power).unwrap_or_default(),
        holds: claim
            .holds
            .iter()
            .map(|(key, found)| hold(key, found))
            .collect(),
        held_by_operator: bound.is_some_and(|bound| !bound.host.holds.is_empty()),
        reboots: claim.reboots.iter().map(reboot).collect(),
        user_data_sha256: claim
            .spec
            .userdata_sha256()
            .map(|hash| hash.hex())
            .unwrap_or_default(),
        host_metadata: Some(metadata(&claim.metadata)),
    }
}

fn metadata(found: &state::ClaimMetadata) -> tenant::ClaimHostMetadata {
    tenant::ClaimHostMetadata {
        revision: found.revision,
        labels: map(&found.labels),
        annotations: map(&found.annotations),
        omitted: found.omitted,
    }
}

fn pending_reason(claim: &state::Claim) -> String {
    match claim.state {
        ClaimState::Pending if claim.spec.paused => {
            state::PendingReason::Paused.as_str().to_owned()
        }
        ClaimState::Pending => claim.queue.reason.as_str().to_owned(),
        _ => String::new(),
    }
}

/// A name of the node that is unique, and tells the project nothing about the machine.
fn provider_id(claim: &state::Claim, machine: &Machine) -> String {
    let partition = machine.partition.as_ref();
    let partition = partition.map(ToString::to_string).unwrap_or_default();
    format!("metalmesh://{partition}/{}", claim.id)
}

fn condition(found: &state::ClaimCondition) -> tenant::ClaimCondition {
    tenant::ClaimCondition {
        r#type: found.kind.as_str().to_owned(),
        status: found.status,
        reason: found.reason.clone(),
        message: found.message.clone(),
        last_transition: time(found.since),
        observed_generation: found.generation,
    }
}

fn event(note: &state::ClaimNote) -> tenant::ClaimEvent {
    tenant::ClaimEvent {
        at: time(note.at),
        reason: note.reason.clone(),
        message: note.message.clone(),
    }
}

fn hold(key: &str, found: &state::PowerHold) -> tenant::ClaimHold {
    tenant::ClaimHold {
        key: key.to_owned(),
        at: time(found.at),
        by: found.by.clone(),
        reason: found.reason.clone(),
    }
}

fn reboot(found: &state::RebootRecord) -> tenant::ClaimReboot {
    tenant::ClaimReboot {
        request: found.request.clone(),
        mode: match found.mode {
            RebootMode::Soft => "soft".to_owned(),
            RebootMode::Hard => "hard".to_owned(),
        },
        at: time(found.at),
        by: found.by.clone(),
        ended_at: found.ended_at.and_then(time),
        // The cause is the operator's: it may name the BMC.
        error: match found.error {
            Some(_) => "the host did not carry it out".to_owned(),
            None => String::new(),
        },
    }
}

fn power(machine: &Machine) -> String {
    let bmc = machine.bmc.as_ref();
    let state = bmc.map(|bmc| bmc.power_state.to_ascii_lowercase());
    let known = state.filter(|state| matches!(state.as_str(), "on" | "off"));
    known.unwrap_or_default()
}

fn host(tables: &Tables, bound: &BoundHost<'_>) -> tenant::ClaimHost {
    let hardware = &bound.machine.hardware;
    let disks = hardware.disks.iter().filter(|disk| disk.is_fixed());
    tenant::ClaimHost {
        labels: map(&published_labels(tables, bound.host)),
        failure_domain: bound.host.domain.clone(),
        partition: text(bound.host.seen.partition.as_ref()),
        size: text(bound.host.seen.size.as_ref()),
        cores: hardware.cpus.iter().map(|cpu| cpu.cores).sum(),
        memory: hardware.memory,
        disks: disks
            .map(|disk| tenant::ClaimDisk {
                name: disk.name.clone(),
                size: disk.size,
            })
            .collect(),
        nics: hardware.nics.iter().map(nic).collect(),
        gpus: hardware
            .gpus
            .iter()
            .map(|gpu| tenant::ClaimGpu {
                vendor: gpu.vendor.clone(),
                model: gpu.model.clone(),
            })
            .collect(),
        health: health(tables, bound.machine).to_owned(),
    }
}

fn health(tables: &Tables, machine: &Machine) -> &'static str {
    let log = tables.get::<EventLog>(&machine.id);
    match log.map(|log| log.liveliness) {
        Some(Liveliness::Alive) => "alive",
        Some(Liveliness::Dead) => "dead",
        Some(Liveliness::Unknown | Liveliness::Unspecified) | None => "unknown",
    }
}

fn text<T: ToString>(value: Option<&T>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn nic(nic: &state::Nic) -> tenant::ClaimNic {
    tenant::ClaimNic {
        name: nic.name.clone(),
        mac: nic.mac.to_string(),
        speed: nic.speed,
        boot: nic.boot,
    }
}

/// Addresses and host name of the system that is installed for the claim.
fn addresses(claim: &state::Claim, machine: &Machine) -> Vec<tenant::ClaimAddress> {
    let allocation = machine.allocation.as_ref();
    let own = allocation.filter(|found| {
        let granted = found.claim.as_ref();
        granted.is_some_and(|granted| granted.claim == claim.id)
    });
    let Some(allocation) = own else {
        return Vec::new();
    };
    let mut all: Vec<_> = allocation
        .networks
        .iter()
        .flat_map(|network| {
            network.ips.iter().map(|ip| tenant::ClaimAddress {
                r#type: "InternalIP".to_owned(),
                address: ip.to_string(),
                network: network.network.to_string(),
            })
        })
        .collect();
    all.push(tenant::ClaimAddress {
        r#type: "Hostname".to_owned(),
        address: allocation.hostname.clone(),
        network: String::new(),
    });
    all
}
