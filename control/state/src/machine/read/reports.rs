//! Filter of reports that are worth a log entry; heartbeats stay in the leader's memory.

use proto_types::{MachineId, Timestamp};

use crate::machine::command::BmcReading;
use crate::machine::entity::{Bmc, BmcClaim, EventKind, EventLog, Liveliness, Machine};
use crate::tables::Tables;

/// Longest age of a stored BMC report, milliseconds. Beyond it a report is written although nothing
/// changed. With the longest interval of readings, ten minutes, a report is written before the stored one
/// is so old that the BMC counts as not reached.
const BMC_REFRESH_MS: u64 = 9 * 60_000;

/// Longest age of a BMC's claim, milliseconds: three refreshes. Beyond it the claim is dropped.
const CLAIM_LIFE_MS: u64 = 3 * BMC_REFRESH_MS;

/// `true` if an event would only renew the time of the last sign of life. The leader keeps it in
/// memory and hands it to the next `Tick`.
pub fn event_is_heartbeat(tables: &Tables, machine: MachineId, kind: EventKind) -> bool {
    let Some(log) = tables.get::<EventLog>(&machine) else {
        return false;
    };
    let repeats = match kind {
        // After a phone home hammer cannot be there: its heartbeat is an error worth a record.
        EventKind::Alive => log
            .state
            .is_some_and(|state| state != EventKind::PhonedHome),
        EventKind::PhonedHome => log.state == Some(EventKind::PhonedHome),
        _ => false,
    };
    // The first heartbeat of a silent machine is news and is written.
    repeats && log.liveliness == Liveliness::Alive
}

/// `true` if a reading changes what is stored of the machine's BMC.
pub fn bmc_reading_matters(tables: &Tables, reading: &BmcReading, now: Timestamp) -> bool {
    let Some(id) = reading.machine else {
        return false;
    };
    let Some(machine) = tables.get::<Machine>(&id) else {
        return true;
    };
    let Some(bmc) = &machine.bmc else { return true };
    // A claim changes nothing of the believed BMC, and is compared with the claims alone.
    if is_claim(machine, reading) {
        return claim_matters(machine, reading, now);
    }
    if machine
        .bmc_claims
        .iter()
        .any(|claim| is_old_claim(claim, now))
    {
        return true;
    }
    // One that failed leaves the rest as last read. Each is written until the BMC counts as not
    // reached: the time of the last attempt decides about that.
    if reading.error.is_some() {
        let is_known = bmc.unreached && bmc.error == reading.error;
        return !is_known || now.since_ms(bmc.read_at()) > BMC_REFRESH_MS;
    }
    // The time differs in each report and alone makes no news.
    let mut fresh = Bmc {
        updated_at: bmc.updated_at,
        heard_at: bmc.heard_at,
        failing_since: bmc.failing_since,
        unreached: false,
        ..bmc_of(reading)
    };
    // Measured power differs each time and would cost a log entry each: it is written along with
    // other changes, and with the refresh.
    if let (Some(old), Some(new)) = (&bmc.draw, &mut fresh.draw) {
        new.metric = old.metric;
    }
    *bmc != fresh
        || (!reading.led_state.is_empty() && machine.led.value != reading.led_state)
        || now.since_ms(bmc.read_at()) > BMC_REFRESH_MS
}

/// `true` if a reading is of another BMC than the one believed to be the machine's.
pub(crate) fn is_claim(machine: &Machine, reading: &BmcReading) -> bool {
    // An address that only hammer saw in band binds nothing: the first reading of an agent replaces
    // it.
    let believed = machine.bmc.as_ref().filter(|bmc| bmc.was_read());
    !reading.address.is_empty() && believed.is_some_and(|bmc| !bmc.is_at(&reading.address))
}

/// `true` if a claim is new or due to be written again.
fn claim_matters(machine: &Machine, reading: &BmcReading, now: Timestamp) -> bool {
    let known = machine
        .bmc_claims
        .iter()
        .find(|claim| claim.address == reading.address);
    known.is_none_or(|claim| now.since_ms(claim.seen_at) > BMC_REFRESH_MS)
}

/// `true` if a claim was not repeated for [`CLAIM_LIFE_MS`].
pub(crate) fn is_old_claim(claim: &BmcClaim, now: Timestamp) -> bool {
    now.since_ms(claim.seen_at) > CLAIM_LIFE_MS
}

/// The BMC as a reading describes it.
pub(crate) fn bmc_of(reading: &BmcReading) -> Bmc {
    Bmc {
        address: reading.address.clone(),
        mac: reading.mac.clone(),
        interface: reading.interface.clone(),
        version: reading.bmc_version.clone(),
        power_state: reading.power_state.clone(),
        user: reading.user.clone(),
        draw: reading.draw.clone(),
        error: reading.error.clone(),
        updated_at: reading.observed_at,
        heard_at: None,
        failing_since: None,
        unreached: false,
    }
}
