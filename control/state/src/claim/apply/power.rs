//! Power of the host of a claim: reboots by request, holds, and the order that makes it so.

use proto_errors::{Error, ErrorCode};
use proto_types::{ClaimId, OrderId};

use super::checks::{check_text, own};
use super::conditions::wants_power;
use super::write::put;
use crate::claim::command::{HoldClaim, RebootClaim};
use crate::claim::entity::{
    Claim, ClaimPower, ClaimState, REBOOTS_KEPT_MAX, REBOOTS_PER_HOUR_MAX, RebootMode, RebootRecord,
};
use crate::fields::check_description;
use crate::machine::apply::orders::order_for_user;
use crate::machine::command::OrderBmc;
use crate::machine::entity::{BmcAction, BmcOrder, Machine, OrderState};
use crate::machine::phase::STEP_ATTEMPTS_MAX;
use crate::pool::entity::{HOLDS_MAX, PoolHost, PowerHold, check_hold_key};
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;

/// An hour, milliseconds.
const HOUR_MS: u64 = 3_600_000;

/// Reboots the host of a claim, once for each id of a request.
pub(crate) fn reboot(tx: &mut Tx<'_>, op: &RebootClaim) -> ApplyResult {
    let mut claim = own(tx, op.id, op.project, op.epoch)?;
    check_text("request", &op.request)?;
    if let Some(known) = claim
        .reboots
        .iter()
        .find(|known| known.request == op.request)
    {
        // The same request with another mode is another request under a used id.
        if known.mode != op.mode {
            let message = format!("request \"{}\" asked for another reboot before", op.request);
            return Err(Error::new(ErrorCode::KeyReused, message));
        }
        return Ok(Reply::Claim(put(tx, claim)));
    }
    check_reboot(tx, &claim)?;
    let action = match op.mode {
        RebootMode::Soft => BmcAction::PowerReset,
        RebootMode::Hard => BmcAction::PowerCycle,
    };
    let order = order(tx, &claim, action)?;
    claim.reboots.push(RebootRecord {
        request: op.request.clone(),
        mode: op.mode,
        by: tx.actor.to_owned(),
        at: tx.now,
        order,
        error: None,
        ended_at: None,
    });
    let surplus = claim.reboots.len().saturating_sub(REBOOTS_KEPT_MAX);
    claim.reboots.drain(..surplus);
    claim.note(tx.now, "RebootRequested", format!("request {}", op.request));
    Ok(Reply::Claim(put(tx, claim)))
}

fn check_reboot(tx: &Tx<'_>, claim: &Claim) -> Result<(), Error> {
    let id = claim.id;
    let refuse = |code, why: &str| {
        let message = format!("claim \"{id}\" cannot be rebooted: {why}");
        Err(Error::new(code, message).object("claim", id))
    };
    if claim.spec.paused {
        return refuse(ErrorCode::ClaimPaused, "it is paused");
    }
    if claim.state != ClaimState::Active {
        let why = format!("it is {}", claim.state);
        return refuse(ErrorCode::ClaimNotActive, &why);
    }
    if claim.power.is_off || !wants_power(claim, is_host_held(tx, claim)) {
        return refuse(ErrorCode::ClaimNotActive, "its host is off, or held off");
    }
    if claim.reboots.iter().any(|known| known.ended_at.is_none()) {
        return refuse(ErrorCode::TooMany, "an earlier reboot is not over");
    }
    let recent = claim.reboots.iter();
    let recent = recent.filter(|known| tx.now.since_ms(known.at) < HOUR_MS);
    if recent.count() >= REBOOTS_PER_HOUR_MAX {
        let why = format!("it was rebooted {REBOOTS_PER_HOUR_MAX} times within an hour");
        return refuse(ErrorCode::TooMany, &why);
    }
    Ok(())
}

fn is_host_held(tx: &Tx<'_>, claim: &Claim) -> bool {
    let binding = claim.binding.as_ref();
    let host = binding.and_then(|binding| tx.get::<PoolHost>(&binding.machine));
    host.is_some_and(|host| !host.holds.is_empty())
}

/// Orders something from the BMC of the claim's host. A refusal does not name the machine.
fn order(tx: &mut Tx<'_>, claim: &Claim, action: BmcAction) -> Result<OrderId, Error> {
    let refused = |error: Error| {
        let message = "the host of the claim cannot take an order now";
        Error::new(error.code, message)
            .object("claim", claim.id)
            .hint("repeat the call later; if it lasts, ask the administrator of the pool")
    };
    let binding = claim.binding.as_ref();
    let machine = binding.map(|binding| tx.require::<Machine>(&binding.machine));
    let machine = machine.transpose().map_err(&refused)?;
    let machine = machine.ok_or_else(|| Error::not_found("claim", claim.id))?;
    let op = OrderBmc {
        user: None,
        machine: machine.id,
        project: Some(claim.project),
        action,
        description: String::new(),
    };
    let made = tx.part(|tx| order_for_user(tx, &op, machine));
    let made = made.and_then(Reply::bmc_order).map_err(&refused)?;
    Ok(made.id)
}

/// Sets or ends a hold of the project. It never touches a hold of an administrator.
pub(crate) fn hold(tx: &mut Tx<'_>, op: &HoldClaim) -> ApplyResult {
    let mut claim = own(tx, op.id, op.project, op.epoch)?;
    check_hold_key(&op.key)?;
    check_description(&op.reason)?;
    if matches!(claim.state, ClaimState::Gone | ClaimState::Releasing) {
        let message = format!("claim \"{}\" is {}", op.id, claim.state);
        return Err(Error::new(ErrorCode::ClaimOver, message).object("claim", op.id));
    }
    if !op.is_held {
        claim.holds.remove(&op.key);
    } else if !claim.holds.contains_key(&op.key) {
        if claim.holds.len() >= HOLDS_MAX {
            let message = format!("claim \"{}\" has {HOLDS_MAX} holds already", op.id);
            return Err(Error::new(ErrorCode::TooMany, message).object("claim", op.id));
        }
        let hold = PowerHold {
            at: tx.now,
            by: tx.actor.to_owned(),
            reason: op.reason.clone(),
        };
        claim.holds.insert(op.key.clone(), hold);
    }
    claim.power.attempts = 0;
    put(tx, claim);
    reconcile(tx, op.id);
    let claim = tx.tables().require::<Claim>(&op.id)?;
    Ok(Reply::Claim(claim.clone()))
}

/// Orders the power that a claim wants, unless an order is open or too many failed.
pub(super) fn reconcile(tx: &mut Tx<'_>, id: ClaimId) {
    let Some(mut claim) = tx.get::<Claim>(&id).map(|claim| Claim::clone(claim)) else {
        return;
    };
    take_ends(tx, &mut claim);
    let wants_off = !wants_power(&claim, is_host_held(tx, &claim));
    if claim.power.order.is_none() && claim.power.is_off == wants_off {
        // Failures of another wish: the next one begins anew.
        claim.power.attempts = 0;
        claim.power.error = None;
    }
    let is_wanted = claim.state == ClaimState::Active
        && !claim.spec.paused
        && claim.power.order.is_none()
        && claim.power.is_off != wants_off
        && claim.power.attempts < STEP_ATTEMPTS_MAX;
    if !is_wanted {
        put(tx, claim);
        return;
    }
    let action = match wants_off {
        true => BmcAction::PowerOff,
        false => BmcAction::PowerOn,
    };
    match order(tx, &claim, action) {
        Ok(order) => {
            claim.power.order = Some(order);
            claim.power.is_off = wants_off;
            claim.note(tx.now, "PowerOrdered", action.as_str());
        }
        Err(error) => {
            claim.power.attempts += 1;
            claim.power.error = Some(error.message);
        }
    }
    put(tx, claim);
}

/// Takes note of the orders of a claim that are over.
fn take_ends(tx: &Tx<'_>, claim: &mut Claim) {
    let end_of = |id: &OrderId| {
        let order = tx.get::<BmcOrder>(id);
        match order.map(|order| (order.state, order.error.clone())) {
            Some((OrderState::Open, _)) => None,
            Some((OrderState::Done, _)) => Some(None),
            Some((_, error)) => Some(Some(error.unwrap_or_else(|| "it was withdrawn".to_owned()))),
            // Old orders are deleted: its end is not known any more.
            None => Some(Some("its end is not known".to_owned())),
        }
    };
    if let Some(ended) = claim.power.order.as_ref().and_then(end_of) {
        let ClaimPower {
            is_off, attempts, ..
        } = claim.power;
        claim.power = match ended {
            None => ClaimPower {
                is_off,
                ..ClaimPower::default()
            },
            // The power is as before, so that the order is given again.
            Some(error) => ClaimPower {
                is_off: !is_off,
                order: None,
                attempts: attempts + 1,
                error: Some(error),
            },
        };
    }
    for reboot in claim
        .reboots
        .iter_mut()
        .filter(|known| known.ended_at.is_none())
    {
        if let Some(ended) = end_of(&reboot.order) {
            reboot.ended_at = Some(tx.now);
            reboot.error = ended;
        }
    }
}
