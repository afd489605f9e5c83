//! What a simulated BMC does on each command of IPMI. Numbers are the specification's, 2.0 rev.
//! 1.1, appendix G.

use bmc_ipmi::dcmi::GROUP_EXTENSION;
use bmc_ipmi::packet::Request;
use bmc_ipmi::power::GET_POWER_READING;

use crate::bmc::{self, Switching};
use crate::drawn;
use crate::machine::{BootDevice, Machine};
use crate::world::World;

const CHASSIS: u8 = 0x00;
const SENSOR: u8 = 0x04;
const APP: u8 = 0x06;
const STORAGE: u8 = 0x0a;
const TRANSPORT: u8 = 0x0c;

const DONE: u8 = 0x00;
const INVALID_COMMAND: u8 = 0xc1;
const INVALID_DATA: u8 = 0xcc;
/// "Not supported in present state": a machine that is off is not cycled.
const WRONG_STATE: u8 = 0xd5;

/// Boot option parameter 5, and the devices of its second byte (table 28-14).
const BOOT_FLAGS: u8 = 5;
const DEVICE_MASK: u8 = 0x3c;
const DEVICE_PXE: u8 = 0x04;
const DEVICE_DISK: u8 = 0x08;

/// What a command leads to besides its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    Switch(Switching),
    /// The session is over.
    Close,
}

type Done = (u8, Vec<u8>, Effect);

/// Get Channel Authentication Capabilities: this channel does IPMI 2.0 and nothing older.
pub(crate) fn capabilities(request: &Request) -> Option<Vec<u8>> {
    let is_asked = (request.netfn, request.command) == (APP, 0x38);
    is_asked.then(|| vec![0x01, 0x80, 0x04, 0x02, 0, 0, 0, 0])
}

/// Obeys a command of an open session: completion code, data, effect.
pub(crate) fn obey(world: &World, machine: &Machine, request: &Request) -> Done {
    let data = request.data.as_slice();
    match (request.netfn, request.command) {
        (APP, 0x01) => told(vec![
            0x20, 0x81, 0x01, 0x00, 0x02, 0x9f, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ]),
        (APP, 0x37) => told(machine.plan.uuid.to_bytes_le().to_vec()),
        (APP, 0x3b) => told(data.to_vec()),
        (APP, 0x3c) => (DONE, Vec::new(), Effect::Close),
        (CHASSIS, 0x01) => told(status(machine)),
        (CHASSIS, 0x02) => control(machine, data),
        (CHASSIS, 0x04) => {
            machine.set_led(data.get(1).is_some_and(|force| force & 1 == 1));
            told(Vec::new())
        }
        (CHASSIS, 0x08) => boot(world, machine, data),
        (TRANSPORT, 0x02) => told([&[0x11], &bmc::mac(machine).0[..]].concat()),
        (STORAGE, 0x10) => {
            let size = u16::try_from(fru(machine).len()).unwrap_or(u16::MAX);
            told([&size.to_le_bytes()[..], &[0]].concat())
        }
        (STORAGE, 0x11) => read_fru(machine, data),
        (STORAGE, 0x20) => told(drawn::repository()),
        (STORAGE, 0x23) => answered(drawn::record(data)),
        (SENSOR, 0x2d) => answered(drawn::sensor(machine, data)),
        (GROUP_EXTENSION, GET_POWER_READING) => answered(drawn::reading(machine).answer(data)),
        (GROUP_EXTENSION, command) => answered(machine.tag.answer(command, data)),
        _ => (INVALID_COMMAND, Vec::new(), Effect::Nothing),
    }
}

fn told(data: Vec<u8>) -> Done {
    (DONE, data, Effect::Nothing)
}

fn answered((completion, data): (u8, Vec<u8>)) -> Done {
    (completion, data, Effect::Nothing)
}

fn refused(completion: u8) -> Done {
    (completion, Vec::new(), Effect::Nothing)
}

/// Get Chassis Status (28.2): power, and the light, of which the state is told.
fn status(machine: &Machine) -> Vec<u8> {
    let light = if machine.led() { 0x60 } else { 0x40 };
    vec![u8::from(machine.is_on()), 0, light]
}

/// Chassis Control (28.3). The answer comes at once, the power takes its time.
fn control(machine: &Machine, data: &[u8]) -> Done {
    let switching = match data.first() {
        Some(0) => Switching::Off,
        Some(1) => Switching::On,
        Some(2 | 3) if machine.is_on() => Switching::Restart,
        Some(2 | 3) => return refused(WRONG_STATE),
        _ => return refused(INVALID_DATA),
    };
    (DONE, Vec::new(), Effect::Switch(switching))
}

/// Set System Boot Options (28.12). Other parameters than the flags are taken and forgotten.
fn boot(world: &World, machine: &Machine, data: &[u8]) -> Done {
    if let [BOOT_FLAGS, _, device, ..] = data {
        let device = match device & DEVICE_MASK {
            DEVICE_PXE => BootDevice::Pxe,
            DEVICE_DISK => BootDevice::Disk,
            _ => return refused(INVALID_DATA),
        };
        bmc::set_boot(world, machine, device);
    }
    told(Vec::new())
}

fn read_fru(machine: &Machine, data: &[u8]) -> Done {
    let [_, low, high, count] = *data else {
        return refused(INVALID_DATA);
    };
    let (at, fru) = (usize::from(u16::from_le_bytes([low, high])), fru(machine));
    let end = fru.len().min(at + usize::from(count));
    let chunk = fru.get(at..end).unwrap_or_default();
    let size = u8::try_from(chunk.len()).unwrap_or(u8::MAX);
    told([&[size], chunk].concat())
}

/// A product area (FRU definition 1.3, 8. and 12.): maker, name, part, version, serial number.
fn fru(machine: &Machine) -> Vec<u8> {
    let serial = format!("M{}", machine.plan.number);
    let mut area = vec![1, 0, 0];
    for field in ["Fleet", "simulated", "1U", "1.0", &serial] {
        area.push(0xc0 | u8::try_from(field.len()).unwrap_or_default());
        area.extend(field.as_bytes());
    }
    area.push(0xc1);
    area.resize((area.len() + 1).next_multiple_of(8) - 1, 0);
    area[1] = u8::try_from((area.len() + 1) / 8).unwrap_or_default();
    area.push(checksum(&area));
    let mut header = vec![1, 0, 0, 0, 1, 0, 0];
    header.push(checksum(&header));
    [header, area].concat()
}

fn checksum(bytes: &[u8]) -> u8 {
    bytes
        .iter()
        .fold(0_u8, |sum, byte| sum.wrapping_add(*byte))
        .wrapping_neg()
}
