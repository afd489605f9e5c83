//! Hosts of pools.

use std::collections::{BTreeMap, BTreeSet};

use proto_errors::{Error, ErrorCode};
use proto_types::MachineId;

use crate::fields::check_description;
use crate::machine::apply::rewipe::{wipe_again, wipe_or_wait};
use crate::machine::entity::{Machine, Phase};
use crate::machine::read::is_left_alone;
use crate::meta::{Labels, LabelsUpdate, Meta, check_generation};
use crate::pool::command::{CleanHost, HoldHost, RemovePoolHost, SetPoolHost};
use crate::pool::entity::{
    ANNOTATIONS_MAX, CompiledPolicies, HOLDS_MAX, HostPool, HostShape, PoolHost, PowerHold,
    SeenMachine, TAINTS_MAX, check_hold_key,
};
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::{Tables, Tx};

/// Most kinds of hosts of all pools together. A host that would be a further one is refused: claims
/// are held against each kind.
const SHAPES_MAX: usize = 4_096;
/// Longest key or value of a label or taint, and longest failure domain, bytes; a longer one is
/// refused.
const TEXT_BYTES_MAX: usize = 253;

/// Puts a machine into a pool, or changes it as a host of one.
pub(crate) fn set(tx: &mut Tx<'_>, op: &SetPoolHost) -> ApplyResult {
    check(op)?;
    let mut machine: Machine = tx.require(&op.machine)?;
    tx.tables().require::<HostPool>(&op.pool)?;
    let known = tx
        .get::<PoolHost>(&op.machine)
        .map(|host| PoolHost::clone(host));
    let is_new = known.is_none();
    let generation = known.as_ref().map_or(0, |host| host.meta.generation);
    check_generation("host", &op.machine.to_string(), generation, op.expected)?;
    let mut host = match known {
        Some(host) => host,
        None => {
            check_is_nobodys(&machine)?;
            new_host(op, machine.bindings)
        }
    };
    if host.pool != op.pool && host.binding.is_some() {
        return Err(bound(op.machine));
    }
    host.pool = op.pool.clone();
    LabelsUpdate::Replace(op.labels.clone()).apply(&mut host.meta.labels)?;
    host.annotations.clone_from(&op.annotations);
    host.taints.clone_from(&op.taints);
    host.domain.clone_from(&op.domain);
    host.only.clone_from(&op.only);
    host.cordon.clone_from(&op.cordon);
    check_shapes(tx.tables(), &host)?;
    machine.pool = Some(op.pool.clone());
    tx.save(machine);
    let host = match is_new {
        true => tx.create(host)?,
        false => tx.update(host),
    };
    Ok(Reply::PoolHost(host))
}

/// A host that was bound so many times before, in other pools.
fn new_host(op: &SetPoolHost, epoch: u64) -> PoolHost {
    PoolHost {
        machine: op.machine,
        meta: Meta::default(),
        pool: op.pool.clone(),
        annotations: Labels::new(),
        taints: BTreeSet::new(),
        domain: String::new(),
        only: Vec::new(),
        cordon: None,
        holds: BTreeMap::new(),
        epoch,
        clean_epoch: None,
        light_wipe: None,
        quarantine: None,
        binding: None,
        reserved: None,
        provisions: 0,
        seen: SeenMachine::default(),
    }
}

fn bound(machine: MachineId) -> Error {
    let message = format!("a claim has host \"{machine}\"");
    Error::new(ErrorCode::HostBound, message).object("host", machine)
}

/// Refuses a machine that a project has, owns or leases, or that a node allocation holds: a pool cannot
/// take it away.
fn check_is_nobodys(machine: &Machine) -> CheckResult {
    let id = machine.id;
    let tenure = &machine.tenure;
    let (code, why, remedy) = if machine.allocation.is_some() {
        let why = "is allocated: a project has it".to_owned();
        let remedy = format!("free it first: metalmesh machine free {id}");
        (ErrorCode::MachineAllocated, why, remedy)
    } else if let Some(lessee) = tenure.lessee {
        let why = format!("is leased to project \"{lessee}\"");
        let remedy = format!(
            "end the lease first, and clear the owner: metalmesh machine lease end {id}; metalmesh \
             machine owner clear {id}"
        );
        (ErrorCode::MachineLeased, why, remedy)
    } else if let Some(holder) = tenure.reserved_by {
        let why = format!("is held by node allocation \"{holder}\"");
        let remedy = format!("end it first: metalmesh node-allocation rm {holder}");
        (ErrorCode::MachineReserved, why, remedy)
    } else if let Some(owner) = tenure.owner {
        let why = format!("is owned by project \"{owner}\"");
        let remedy = format!("clear its owner first: metalmesh machine owner clear {id}");
        (ErrorCode::MachineOwned, why, remedy)
    } else {
        return Ok(());
    };
    let message = format!("machine \"{id}\" {why}");
    Err(Error::new(code, message).object("machine", id).hint(remedy))
}

fn check(op: &SetPoolHost) -> CheckResult {
    CompiledPolicies::check("only", &op.only)?;
    check_annotations(&op.annotations)?;
    let is_text = |text: &str| text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control);
    if op.taints.len() > TAINTS_MAX {
        let rule = format!("must be at most {TAINTS_MAX}");
        return Err(Error::invalid("taints", rule));
    }
    let taints = op.taints.iter();
    let mut texts = taints.flat_map(|taint| [taint.key.as_str(), taint.value.as_str()]);
    if op.taints.iter().any(|taint| taint.key.is_empty()) || !texts.all(is_text) {
        let rule = format!("must have a key, and at most {TEXT_BYTES_MAX} printable bytes");
        return Err(Error::invalid("taints", rule));
    }
    if !is_text(&op.domain) {
        let rule = format!("must have at most {TEXT_BYTES_MAX} printable bytes");
        return Err(Error::invalid("failure_domain", rule));
    }
    op.cordon.as_deref().map_or(Ok(()), check_description)
}

/// Refuses annotations that are too many, or whose keys cannot be shown.
fn check_annotations(annotations: &Labels) -> CheckResult {
    if annotations.len() > ANNOTATIONS_MAX {
        let rule = format!("must be at most {ANNOTATIONS_MAX}");
        return Err(Error::invalid("annotations", rule));
    }
    let is_key = |key: &String| {
        (1..=TEXT_BYTES_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match annotations.keys().all(is_key) {
        true => Ok(()),
        false => {
            let rule =
                format!("must have keys of 1 to {TEXT_BYTES_MAX} printable ASCII characters");
            Err(Error::invalid("annotations", rule))
        }
    }
}

/// Refuses a host that would be a further kind beyond the bound.
fn check_shapes(tables: &Tables, host: &PoolHost) -> CheckResult {
    let shapes = &tables.index().hosts.shapes;
    if shapes.len() < SHAPES_MAX || shapes.contains_key(&HostShape::of(host)) {
        return Ok(());
    }
    let message = format!(
        "the hosts of all pools are of {SHAPES_MAX} kinds already, by labels, taints, failure \
         domain, size, partition and policies"
    );
    let hint = "give hosts of a kind the same labels: a label tells a kind of hosts, and no single \
                host";
    Err(Error::new(ErrorCode::TooMany, message).hint(hint))
}

/// Takes a machine out of its pool. With `force` also one that a claim has, which loses it.
pub(crate) fn remove(tx: &mut Tx<'_>, op: &RemovePoolHost) -> ApplyResult {
    let host = tx.tables().require::<PoolHost>(&op.machine)?.clone();
    if host.binding.is_some() && !op.force {
        return Err(bound(op.machine));
    }
    let machine = tx.get::<Machine>(&op.machine);
    if let Some(mut machine) = machine.map(|found| Machine::clone(found)) {
        check_may_be_freed(&machine)?;
        machine.pool = None;
        machine.bindings = host.epoch;
        // Outside of the pool nothing is kept for a project.
        machine.wipe_level = None;
        if machine.has_light_wipe() {
            wipe_or_wait(tx, machine);
        } else {
            tx.save(machine);
        }
    }
    tx.delete::<PoolHost>(&op.machine);
    Ok(Reply::PoolHost(host))
}

/// Refuses to take a locked machine away from the claim that uses it: control leaves it alone, and could
/// not end the tenancy.
fn check_may_be_freed(machine: &Machine) -> CheckResult {
    let is_used = machine.allocation.is_some() && !machine.is_leaving();
    if !is_used || !is_left_alone(machine) {
        return Ok(());
    }
    let (id, why) = (machine.id, &machine.condition.description);
    let message = format!("machine \"{id}\" is locked: {why}");
    Err(Error::new(ErrorCode::MachineLocked, message).object("machine", id))
}

/// Sets or ends a hold of an administrator's actor. It never touches a hold of another one.
pub(crate) fn hold(tx: &mut Tx<'_>, op: &HoldHost) -> ApplyResult {
    check_hold_key(&op.key)?;
    check_description(&op.reason)?;
    let mut host: PoolHost = tx.require(&op.machine)?;
    let key = format!("{}/{}", op.actor, op.key);
    if !op.is_held {
        host.holds.remove(&key);
    } else if !host.holds.contains_key(&key) {
        if host.holds.len() >= HOLDS_MAX {
            let message = format!("host \"{}\" has {HOLDS_MAX} holds already", op.machine);
            return Err(Error::new(ErrorCode::TooMany, message).object("host", op.machine));
        }
        let hold = PowerHold {
            at: tx.now,
            by: tx.actor.to_owned(),
            reason: op.reason.clone(),
        };
        host.holds.insert(key, hold);
    }
    Ok(Reply::PoolHost(tx.save(host)))
}

/// Has a host that nobody has wiped again, which ends its quarantine.
pub(crate) fn clean(tx: &mut Tx<'_>, op: &CleanHost) -> ApplyResult {
    let mut host: PoolHost = tx.require(&op.machine)?;
    if host.binding.is_some() {
        return Err(bound(op.machine));
    }
    host.quarantine = None;
    host.clean_epoch = None;
    host.light_wipe = None;
    // The administrator asks for a full wipe, whatever was enough for the project.
    if let Some(reserved) = &mut host.reserved {
        reserved.wipe = None;
    }
    let host = tx.save(host);
    let machine: Machine = tx.require(&op.machine)?;
    // A machine that waits is told to come up anew, and is wiped because it registers dirty. In
    // other phases it is on its way to a wipe already, or waits for an operator.
    if machine.phase == Phase::Waiting && machine.allocation.is_none() {
        wipe_again(tx, machine)?;
    }
    Ok(Reply::PoolHost(host))
}
