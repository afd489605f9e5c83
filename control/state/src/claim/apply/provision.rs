//! Installation of the host of a claim, which is an allocation of its machine, and the end of it.

use proto_errors::{Error, ErrorKind};
use proto_types::{AllocationId, ClaimId, ImageId, MachineId, is_hostname, is_name};
use uuid::Uuid;

use super::write::{grant_of, put};
use crate::claim::entity::{Claim, ClaimBinding, ClaimPower, ClaimState, ClaimTrouble};
use crate::claim::phase::{ClaimEvent, enter};
use crate::machine::apply::allocate::{ClaimAllocation, allocate_for_claim};
use crate::machine::apply::reclaim::free_machine;
use crate::machine::command::{AllocateMachine, FreeMachine};
use crate::machine::entity::{AllocationType, FirewallRules, Machine};
use crate::machine::read::obstacle;
use crate::meta::Labels;
use crate::network::apply::ip::show_claim;
use crate::pool::entity::PoolHost;
use crate::tables::Tx;

/// Pause before a step that failed is tried again, milliseconds.
const RETRY_MS: u64 = 60_000;
/// Reason of a step that waits for the machine.
pub(super) const NOT_READY: &str = "HostNotReady";

/// The allocation that a claim stands for.
pub(super) fn to_allocation(
    claim: &Claim,
    image: &ImageId,
    machine: MachineId,
    id: Uuid,
) -> AllocateMachine {
    let spec = &claim.spec;
    // A claim's name is a key of its client, and may be longer than the name of an allocation.
    let name = match is_name(&claim.name) {
        true => claim.name.clone(),
        false => claim.id.to_string(),
    };
    let own = || is_hostname(&claim.name).then(|| claim.name.clone());
    AllocateMachine {
        id: AllocationId::new(id),
        project: claim.project,
        machine: Some(machine),
        name,
        description: String::new(),
        hostname: spec.hostname.clone().or_else(own),
        partition: None,
        size: None,
        image: image.clone(),
        layout: spec.layout.clone(),
        ssh_public_keys: spec.ssh_public_keys.clone(),
        userdata: spec.userdata.clone(),
        labels: claim.meta.labels.clone(),
        networks: spec.networks.clone(),
        placement_labels: Labels::new(),
        dns_servers: Vec::new(),
        ntp_servers: Vec::new(),
        kind: AllocationType::Machine,
        firewall_rules: FirewallRules::default(),
        vpn: None,
        // The host is named, so that nothing is chosen.
        seed: 0,
        idempotency: None,
    }
}

/// Begins the installation of a bound claim that has an image.
pub(super) fn begin(tx: &mut Tx<'_>, id: ClaimId) {
    let Some(mut claim) = tx.get::<Claim>(&id).map(|claim| Claim::clone(claim)) else {
        return;
    };
    let image = claim.spec.image.clone().filter(|_| !claim.spec.paused);
    let (Some(image), Some(binding)) = (image, claim.binding.clone()) else {
        return;
    };
    if claim.state != ClaimState::Bound {
        return;
    }
    // Looked at first: the refusal of an allocation names the machine.
    let machine = tx.get::<Machine>(&binding.machine).cloned();
    let is_ready = machine.is_some_and(|machine| obstacle(tx.tables(), &machine).is_none());
    if !is_ready {
        let trouble = trouble(tx, NOT_READY, "the host is not ready yet", true);
        return fail(tx, claim, trouble);
    }
    let allocation = tx.derive_uuid();
    let op = to_allocation(&claim, &image, binding.machine, allocation);
    let grant = ClaimAllocation {
        grant: grant_of(&claim, &binding),
        created_by: claim.created_by.clone(),
    };
    match tx.part(|tx| allocate_for_claim(tx, &op, &grant)) {
        Ok(_) => {
            show_claim(tx, binding.machine, id);
            count_provision(tx, binding.machine);
            claim.binding = Some(ClaimBinding {
                allocation: Some(op.id),
                ..binding
            });
            claim.power = ClaimPower::default();
            claim.trouble = None;
            enter(&mut claim, ClaimEvent::Allocated, tx.now);
            claim.note(tx.now, "Installing", format!("image {image}"));
            put(tx, claim);
        }
        Err(error) => {
            let trouble = of_error(tx, &error);
            fail(tx, claim, trouble);
        }
    }
}

fn count_provision(tx: &mut Tx<'_>, id: MachineId) {
    if let Some(mut host) = tx.get::<PoolHost>(&id).map(|host| PoolHost::clone(host)) {
        host.provisions = host.provisions.saturating_add(1);
        tx.save(host);
    }
}

fn trouble(tx: &Tx<'_>, reason: &str, message: &str, is_retried: bool) -> ClaimTrouble {
    ClaimTrouble {
        reason: reason.to_owned(),
        message: message.to_owned(),
        retry_at: is_retried.then(|| tx.now.plus_ms(RETRY_MS)),
    }
}

/// The trouble that an error makes. One about the machine does not say which: the project must not
/// learn it.
fn of_error(tx: &Tx<'_>, error: &Error) -> ClaimTrouble {
    // A request that is wrong stays wrong: only its project can mend it.
    let is_retried = !matches!(
        error.kind(),
        ErrorKind::InvalidArgument | ErrorKind::NotFound | ErrorKind::AlreadyExists
    );
    let reason = format!("{:?}", error.code);
    match error.object.starts_with("machine/") || error.message.contains("machine \"") {
        true => trouble(tx, NOT_READY, "the host cannot be installed now", true),
        false => trouble(tx, &reason, &error.message, is_retried),
    }
}

/// Writes why a step failed.
fn fail(tx: &mut Tx<'_>, mut claim: Claim, trouble: ClaimTrouble) {
    claim.note(tx.now, &trouble.reason, trouble.message.as_str());
    claim.trouble = Some(trouble);
    put(tx, claim);
}

/// Frees the machine of a claim, unless that is under way.
pub(super) fn free(tx: &mut Tx<'_>, id: ClaimId) {
    let Some(claim) = tx.get::<Claim>(&id).map(|claim| Claim::clone(claim)) else {
        return;
    };
    let Some(binding) = &claim.binding else {
        return;
    };
    let machine = tx.get::<Machine>(&binding.machine);
    let is_own = machine.is_some_and(|machine| {
        let allocation = machine.allocation.as_ref();
        let granted = allocation.and_then(|allocation| allocation.claim);
        granted == Some(grant_of(&claim, binding)) && !machine.is_leaving()
    });
    if !is_own {
        return;
    }
    let op = FreeMachine {
        id: binding.machine,
        project: Some(claim.project),
    };
    if tx.part(|tx| free_machine(tx, &op)).is_err() {
        let trouble = trouble(tx, "NotFreed", "the host cannot be freed now", true);
        fail(tx, claim, trouble);
    }
}
