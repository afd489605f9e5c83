//! The report of a machine's BMC, for the wire.

use control_state::{self as state, Machine};
use proto_public::api::v2;

use super::time;

/// The power state as published clients compare it: `ON`, `OFF`.
fn power_state(known: &str) -> String {
    known.to_ascii_uppercase()
}

/// The identify LED as published clients compare it: `LED-ON`, `LED-OFF`.
pub(super) fn led_state(led: &state::Led) -> v2::MachineChassisIdentifyLedState {
    let value = match led.value.as_str() {
        "" => String::new(),
        known => format!("LED-{}", known.to_ascii_uppercase()),
    };
    v2::MachineChassisIdentifyLedState {
        value,
        description: led.description.clone(),
    }
}

/// The BMC of a machine, without its credentials, which only agents receive.
pub fn bmc_details(machine: &Machine) -> v2::MachineBmcDetails {
    let known = machine.bmc.clone().unwrap_or_default();
    let draw = known.draw.unwrap_or_default();
    v2::MachineBmcDetails {
        uuid: machine.id.to_string(),
        partition: machine
            .partition
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        rack: machine.rack.clone(),
        room: machine.room.clone(),
        size: machine
            .size
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        bmc_report: Some(v2::MachineBmcReport {
            uuid: machine.id.to_string(),
            bmc: Some(v2::MachineBmc {
                address: known.address,
                mac: known.mac,
                user: String::new(),
                password: String::new(),
                interface: known.interface,
                version: known.version,
                power_state: power_state(&known.power_state),
            }),
            bios: Some(v2::MachineBios {
                version: machine.bios.version.clone(),
                vendor: machine.bios.vendor.clone(),
                date: machine.bios.date.clone(),
            }),
            fru: Some(fru(&machine.fru)),
            power_metric: draw.metric.map(power_metric),
            power_supplies: draw.supplies.into_iter().map(power_supply).collect(),
            led_state: Some(led_state(&machine.led)),
            updated_at: time(known.updated_at),
        }),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the wire has no finer one")]
fn power_metric(metric: state::PowerMetric) -> v2::MachinePowerMetric {
    let units = |thousandths: u64| (thousandths as f64 / 1000.0) as f32;
    v2::MachinePowerMetric {
        average_consumed_watts: units(metric.average_mw),
        interval_in_min: units(metric.interval_milliminutes),
        max_consumed_watts: units(metric.max_mw),
        min_consumed_watts: units(metric.min_mw),
    }
}

fn power_supply(supply: state::PowerSupply) -> v2::MachinePowerSupply {
    v2::MachinePowerSupply {
        health: supply.health,
        state: supply.state,
    }
}

/// Field-replaceable-unit data for the wire.
pub fn fru(fru: &state::Fru) -> v2::MachineFru {
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    v2::MachineFru {
        chassis_part_number: some(&fru.chassis_part_number),
        chassis_part_serial: some(&fru.chassis_part_serial),
        board_mfg: some(&fru.board_mfg),
        board_mfg_serial: some(&fru.board_mfg_serial),
        board_part_number: some(&fru.board_part_number),
        product_manufacturer: some(&fru.product_manufacturer),
        product_part_number: some(&fru.product_part_number),
        product_serial: some(&fru.product_serial),
    }
}
