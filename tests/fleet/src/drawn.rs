//! Power draw and power supplies: told by the machines' BMCs, and compared in the end with what the
//! public API shows.

use std::collections::BTreeMap;

use bmc_ipmi::power::PowerReading;
use proto_public::api::v2::{MachineBmcDetails, MachinePowerSupply};
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::world::World;

/// Every so many machines one has a supply that failed.
const FAILED_EVERY: usize = 7;
const DONE: u8 = 0x00;
const INVALID_DATA: u8 = 0xcc;
/// Numbers of the sensors of both supplies.
const SENSORS: [u8; 2] = [0x20, 0x21];

/// Each machine draws something else.
pub(crate) fn reading(machine: &Machine) -> PowerReading {
    let number = u16::try_from(machine.plan.number % 100).unwrap_or_default();
    PowerReading {
        current_w: 210 + number,
        min_w: 150,
        max_w: 400,
        average_w: 200 + number,
        period_ms: 60_000,
        is_active: true,
    }
}

fn has_failed(machine: &Machine, at: usize) -> bool {
    at == 1 && machine.plan.number.is_multiple_of(FAILED_EVERY)
}

fn health(machine: &Machine, at: usize) -> &'static str {
    if has_failed(machine, at) {
        "Critical"
    } else {
        "OK"
    }
}

/// The resource `Power` of Redfish.
pub(crate) fn resource(machine: &Machine) -> Value {
    let reading = reading(machine);
    let supply = |at: usize| json!({"Status": {"Health": health(machine, at), "State": "Enabled"}});
    json!({
        "PowerControl": [{
            "PowerConsumedWatts": reading.current_w,
            "PowerMetrics": {
                "AverageConsumedWatts": reading.average_w, "IntervalInMin": 1,
                "MaxConsumedWatts": reading.max_w, "MinConsumedWatts": reading.min_w,
            },
        }],
        "PowerSupplies": [supply(0), supply(1)],
    })
}

/// Get SDR Repository Info (33.9).
pub(crate) fn repository() -> Vec<u8> {
    let mut info = vec![0x51, 2, 0, 0xff, 0xff];
    info.extend([0; 9]);
    info
}

/// Get SDR (33.12): a compact record (43.2) of each supply's sensor.
pub(crate) fn record(data: &[u8]) -> (u8, Vec<u8>) {
    let [_, _, id, 0, from, count] = *data else {
        return (INVALID_DATA, Vec::new());
    };
    let Some(number) = SENSORS.get(usize::from(id)) else {
        return (INVALID_DATA, Vec::new());
    };
    let mut record = vec![id, 0, 0x51, 0x02, 27, 0x20, 0, *number, 0x0a, id + 1];
    record.extend([0x67, 0x40, 0x08, 0x6f]);
    record.resize(32, 0);
    let (from, count) = (usize::from(from), usize::from(count));
    let Some(part) = record.get(from..from + count) else {
        return (INVALID_DATA, Vec::new());
    };
    let next = if id == 0 { [1, 0] } else { [0xff, 0xff] };
    (DONE, [&next[..], part].concat())
}

/// Get Sensor Reading (35.14): present, and failed or not (table 42-3).
pub(crate) fn sensor(machine: &Machine, data: &[u8]) -> (u8, Vec<u8>) {
    let at = SENSORS.iter().position(|number| data == [*number]);
    match at {
        Some(at) if has_failed(machine, at) => (DONE, vec![0, 0xc0, 0x03, 0]),
        Some(_) => (DONE, vec![0, 0xc0, 0x01, 0]),
        None => (INVALID_DATA, Vec::new()),
    }
}

/// The first machine of which the public API shows something else than its BMC tells.
pub(crate) fn difference(world: &World, shown: &[MachineBmcDetails]) -> Option<String> {
    let by_uuid: BTreeMap<&str, &MachineBmcDetails> = shown
        .iter()
        .map(|details| (details.uuid.as_str(), details))
        .collect();
    world.machines.iter().find_map(|machine| {
        let uuid = machine.plan.uuid.to_string();
        let details = by_uuid.get(uuid.as_str());
        let report = details.and_then(|details| details.bmc_report.as_ref());
        let reading = reading(machine);
        let numbers = [reading.average_w, reading.min_w, reading.max_w, 1].map(f32::from);
        let metric = report.and_then(|report| report.power_metric.as_ref());
        let metric = metric.map(|metric| {
            [
                metric.average_consumed_watts,
                metric.min_consumed_watts,
                metric.max_consumed_watts,
                metric.interval_in_min,
            ]
        });
        let supplies = [0, 1].map(|at| MachinePowerSupply {
            health: health(machine, at).to_owned(),
            state: "Enabled".to_owned(),
        });
        let is_same = metric == Some(numbers)
            && report.is_some_and(|report| report.power_supplies == supplies);
        (!is_same).then(|| {
            format!("machine {uuid}: its BMC tells {numbers:?} {supplies:?}, shown is {report:?}")
        })
    })
}
