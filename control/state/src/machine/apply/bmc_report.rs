//! Readings of BMCs by their agents, and which BMCs no agent reaches.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto_types::Timestamp;

use crate::cluster::command::Tick;
use crate::cluster::read::{reconciled_at, restored};
use crate::identity::read::bmc_agents;
use crate::levels::{REACHED_BMCS, feature_level};
use crate::machine::apply::bmc_claims;
use crate::machine::command::{BmcReading, ReportBmc};
use crate::machine::entity::{BMC_SILENT_AFTER_MS, Bmc, Machine};
use crate::machine::read::{bmc_of, has_bmc_room};
use crate::node::apply::unconfirmed::end_unconfirmed;
use crate::reply::{ApplyResult, Reply};
use crate::tables::{Tables, Tx};

/// Most machines that a tick takes off the offer; the others follow with the next one.
const MARKS_MAX: usize = 1_000;

/// Takes the readings of a BMC agent. Ids of machines that became known by them are the reply.
pub(crate) fn report(tx: &mut Tx<'_>, op: &ReportBmc) -> ApplyResult {
    let mut created = Vec::new();
    for reading in &op.readings {
        let Some(id) = reading.machine else { continue };
        let known = tx
            .get::<Machine>(&id)
            .map(|machine| Machine::clone(machine));
        let is_new = known.is_none();
        // A broken or hostile BMC that tells new UUIDs must not fill the tables.
        if is_new && !has_bmc_room(tx.tables(), &op.partition, &reading.address) {
            continue;
        }
        let mut machine =
            known.unwrap_or_else(|| Machine::seen(id, Some(op.partition.clone()), tx.now));
        // The first agent that reads the BMC decides on the partition; agents of others are
        // ignored.
        if machine
            .partition
            .get_or_insert_with(|| op.partition.clone())
            != &op.partition
        {
            continue;
        }
        end_unconfirmed(tx, &mut machine);
        if bmc_claims::take(&mut machine, reading, tx.now) {
            tx.save(machine);
            continue;
        }
        machine.bmc = Some(read_bmc(tx, machine.bmc.as_ref(), reading));
        machine.fru.fill_from(&reading.fru);
        for (mine, theirs) in [
            (&mut machine.bios.version, &reading.bios_version),
            (&mut machine.bios.vendor, &reading.bios_vendor),
            (&mut machine.led.value, &reading.led_state),
        ] {
            if !theirs.is_empty() {
                mine.clone_from(theirs);
            }
        }
        if is_new {
            tx.create(machine)?;
            created.push(id);
        } else {
            tx.save(machine);
        }
    }
    Ok(Reply::MachineIds(created))
}

/// A machine's BMC after a reading. One that succeeded ends every doubt about it; after one that failed,
/// version, power and the rest stay as last read.
fn read_bmc(tx: &Tx<'_>, known: Option<&Bmc>, reading: &BmcReading) -> Bmc {
    let mut bmc = bmc_of(reading);
    // An agent's clock may be ahead: a time in the future would look fresh for too long.
    bmc.updated_at = bmc.updated_at.min(tx.now);
    if let (Some(old), true) = (known, bmc.address.is_empty()) {
        bmc.address.clone_from(&old.address);
    }
    let is_noted = feature_level(tx.tables()) >= REACHED_BMCS;
    let heard_at = reading.heard_at.filter(|_| is_noted);
    bmc.heard_at = heard_at.map(|at| at.min(tx.now));
    if bmc.error.is_none() {
        return bmc;
    }
    let began = known.and_then(|old| old.failing_since);
    let failing_since = is_noted.then_some(began.unwrap_or_else(|| bmc.read_at()));
    let (error, updated_at, heard_at) = (bmc.error.clone(), bmc.updated_at, bmc.heard_at);
    Bmc {
        error,
        updated_at,
        heard_at,
        failing_since,
        ..known.cloned().unwrap_or(bmc)
    }
}

/// Takes machines off the offer whose BMC no agent has reached for too long. The next reading that
/// succeeds ends it.
pub(crate) fn mark_unreached(tx: &mut Tx<'_>, op: &Tick) {
    let lost = unreached(tx.tables(), op, tx.now).take(MARKS_MAX);
    let lost: Vec<Machine> = lost.map(|machine| Machine::clone(machine)).collect();
    for mut machine in lost {
        if let Some(bmc) = &mut machine.bmc {
            bmc.unreached = true;
        }
        tx.save(machine);
    }
}

/// Machines whose BMC counts as not reached from now on. None while a restored state waits for its
/// operator.
pub(crate) fn unreached<'a>(
    tables: &'a Tables,
    op: &Tick,
    now: Timestamp,
) -> impl Iterator<Item = &'a Arc<Machine>> + use<'a> {
    let is_judged = feature_level(tables) >= REACHED_BMCS && restored(tables).is_none();
    // Silence before this leader, or before the reconciliation, proves nothing: not all that agents told
    // then is known. A partition that is cut off is no excuse: nobody reaches its BMCs.
    let since = op.listening_since.max(reconciled_at(tables));
    let agents = match is_judged {
        true => bmc_agents(tables),
        false => BTreeMap::new(),
    };
    let machines = tables.all::<Machine>().filter(move |_| is_judged);
    machines.filter(move |machine| {
        let Some(bmc) = machine.bmc.as_ref().filter(|bmc| !bmc.unreached) else {
            return false;
        };
        if bmc.was_read() {
            return bmc.is_lost(since, now);
        }
        // An agent that has just joined gets the time to read it.
        let joined = machine.partition.as_ref();
        let joined = joined.and_then(|partition| agents.get(partition.as_str()));
        joined.is_some_and(|joined| now.since_ms(since.max(*joined)) >= BMC_SILENT_AFTER_MS)
    })
}

/// Takes a machine off the offer whose BMC is known by hammer's word alone, if an agent is to read it: a
/// claim of the machine is no observation, and without its BMC nobody could take the machine back. The
/// first reading that succeeds ends it. Where no agent of the mesh reads BMCs, nothing is withheld.
pub(crate) fn await_reading(tables: &Tables, machine: &mut Machine) {
    let Some(bmc) = machine.bmc.as_mut().filter(|bmc| !bmc.was_read()) else {
        return;
    };
    let partition = machine.partition.as_ref();
    let has_agent =
        || partition.is_some_and(|found| bmc_agents(tables).contains_key(found.as_str()));
    if feature_level(tables) >= REACHED_BMCS && has_agent() {
        bmc.unreached = true;
    }
}
