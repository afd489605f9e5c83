//! Sensor data records (SDR): finds the sensors that report the state of a power supply.
//!
//! Records are read without a reservation: only their first bytes are needed, and a reservation is
//! required for offsets above 0 only (33.12). The walk can be interrupted at any record and resumed.
//!
//! Source: the specification, sections 33 (SDR repository), 35.14 (Get Sensor Reading), 43 (record
//! formats), table 42-3 (sensor types).

use crate::{IpmiError, Session};

pub use crate::supply_states::SupplyStates;

const SENSOR: u8 = 0x04;
const GET_SENSOR_READING: u8 = 0x2d;
const STORAGE: u8 = 0x0a;
const GET_REPOSITORY_INFO: u8 = 0x20;
const GET_SDR: u8 = 0x23;

/// Length of a record up to its event/reading type, bytes.
const HEAD: u8 = 14;
/// Length of a record's header, bytes. A record shorter than [`HEAD`] is not a sensor's.
const SHORT: u8 = 5;
/// Id of the next record that means "no further record".
const LAST: u16 = 0xffff;
/// Records that one walk reads, more than any BMC has. A cyclic chain of records ends here.
pub const RECORDS_MAX: u16 = 2048;
/// Power supply sensors per machine. Further ones are ignored.
pub const SENSORS_MAX: usize = 32;
/// Owner id of the BMC itself. Sensors of other controllers need bridging, which is not supported.
const OWNER_BMC: u8 = 0x20;
const POWER_SUPPLY: u8 = 0x08;
/// Event/reading type whose states table 42-3 numbers per sensor type. Redundancy and threshold
/// sensors have other types.
const SENSOR_SPECIFIC: u8 = 0x6f;
/// The entity id of power supplies (table 43-13).
const ENTITY_POWER_SUPPLY: u8 = 0x0a;

/// The answer to Get SDR Repository Info (33.9). It changes when a record is added or deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repository {
    /// Number of records.
    pub records: u16,
    /// Time of the last addition, s, by the BMC's own clock.
    pub added: u32,
    /// Time of the last deletion, s, by the BMC's own clock.
    pub erased: u32,
}

impl Repository {
    /// Decodes the data of an answer. `None` means that it is too short.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let (&[_, r0, r1, _, _, a0, a1, a2, a3, e0, e1, e2, e3], _) =
            data.split_first_chunk::<13>()?;
        Some(Self {
            records: u16::from_le_bytes([r0, r1]),
            added: u32::from_le_bytes([a0, a1, a2, a3]),
            erased: u32::from_le_bytes([e0, e1, e2, e3]),
        })
    }
}

/// A sensor that reports the state of a power supply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SupplySensor {
    /// Sensor number in Get Sensor Reading.
    pub number: u8,
    /// Instance of the power supply. `None` means that the record names no supply; the sensor then
    /// counts as a supply of its own.
    pub supply: Option<u8>,
}

impl SupplySensor {
    /// Decodes the start of a record (43.1, 43.2). `None` means that it is not a power supply sensor
    /// or cannot be read over this session.
    #[must_use]
    pub fn decode(record: &[u8]) -> Option<Self> {
        let (
            &[
                _,
                _,
                _,
                kind,
                _,
                owner,
                lun,
                number,
                entity,
                instance,
                _,
                _,
                sensor,
                states,
            ],
            _,
        ) = record.split_first_chunk::<14>()?;
        // Full and compact records. Event-only records belong to sensors that have no reading.
        // LUN 0 only: requests are sent to it, and the same number on another LUN is another
        // sensor.
        let is_readable = matches!(kind, 0x01 | 0x02) && owner == OWNER_BMC && lun & 0x03 == 0;
        let is_supply = sensor == POWER_SUPPLY && states == SENSOR_SPECIFIC;
        (is_readable && is_supply).then_some(Self {
            number,
            supply: (entity == ENTITY_POWER_SUPPLY).then_some(instance),
        })
    }
}

/// An answer to Get SDR: the id of the next record, and the bytes asked for.
fn record(data: &[u8]) -> Option<(u16, &[u8])> {
    let (next, record) = data.split_first_chunk::<2>()?;
    Some((u16::from_le_bytes(*next), record))
}

/// The progress of a walk through the repository and the sensors found so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SensorWalk {
    /// The record to read next; [`LAST`] at the end.
    next: u16,
    walked: u16,
    sensors: Vec<SupplySensor>,
}

impl SensorWalk {
    /// `true` if every record was read or a bound was reached.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.next == LAST || self.walked >= RECORDS_MAX || self.sensors.len() >= SENSORS_MAX
    }

    /// The sensors found so far, [`SENSORS_MAX`] at most.
    #[must_use]
    pub fn sensors(&self) -> &[SupplySensor] {
        &self.sensors
    }

    fn take(&mut self, next: u16, record: &[u8]) {
        self.sensors.extend(SupplySensor::decode(record));
        self.walked += 1;
        // A record that names itself as the next one would be read again and again.
        self.next = if next == self.next { LAST } else { next };
    }
}

impl Session {
    /// Reads the state of the SDR repository.
    ///
    /// # Errors
    /// As [`Session::request`]; [`IpmiError::Completion`] from a BMC without a repository.
    pub async fn repository(&mut self) -> Result<Repository, IpmiError> {
        let what = "reading the sensor repository";
        let data = self
            .request(STORAGE, GET_REPOSITORY_INFO, &[], what)
            .await?;
        Repository::decode(&data).ok_or(IpmiError::Malformed { what })
    }

    /// Continues a walk to its end, with one request per record. After an error or a dropped future
    /// the next call continues where this one stopped.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn walk_sensors(&mut self, walk: &mut SensorWalk) -> Result<(), IpmiError> {
        let what = "reading a sensor's record";
        while !walk.is_over() {
            let data = match self.record(walk.next, HEAD).await {
                // Some BMCs refuse to read beyond the end of a short record. Without this second
                // request the walk could not get past it.
                Err(IpmiError::Completion { .. }) => self.record(walk.next, SHORT).await?,
                other => other?,
            };
            let (next, record) = record(&data).ok_or(IpmiError::Malformed { what })?;
            walk.take(next, record);
        }
        Ok(())
    }

    async fn record(&mut self, id: u16, count: u8) -> Result<Vec<u8>, IpmiError> {
        let [low, high] = id.to_le_bytes();
        let ask = [0, 0, low, high, 0, count];
        self.request(STORAGE, GET_SDR, &ask, "reading a sensor's record")
            .await
    }

    /// Reads the sensor of a power supply. `None` means that it has no reading now.
    ///
    /// # Errors
    /// As [`Session::request`]; [`IpmiError::Completion`] if the sensor does not exist.
    pub async fn supply_states(
        &mut self,
        sensor: SupplySensor,
    ) -> Result<Option<SupplyStates>, IpmiError> {
        let what = "reading a sensor of a power supply";
        let data = self
            .request(SENSOR, GET_SENSOR_READING, &[sensor.number], what)
            .await?;
        // Two bytes suffice: a BMC may leave out the states of a sensor that has no reading.
        if data.len() < 2 {
            return Err(IpmiError::Malformed { what });
        }
        Ok(SupplyStates::decode(&data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: [u8; 14] = [
        0x01, 0x00, 0x51, 0x02, 0x1e, 0x20, 0x00, 0x21, 0x0a, 0x02, 0x67, 0x40, 0x08, 0x6f,
    ];

    #[test]
    fn only_sensors_of_supplies_that_can_be_read_count() {
        let sensor = SupplySensor {
            number: 0x21,
            supply: Some(2),
        };
        assert_eq!(SupplySensor::decode(&RECORD), Some(sensor));
        for (at, byte) in [
            (3, 0x03),  // events only
            (3, 0x12),  // a locator
            (5, 0x2c),  // another controller's
            (6, 0x01),  // another LUN
            (12, 0x01), // a temperature
            (13, 0x0b), // redundancy
        ] {
            let mut other = RECORD;
            other[at] = byte;
            assert_eq!(SupplySensor::decode(&other), None, "{at} {byte:#x}");
        }
        let mut board = RECORD;
        board[8] = 0x07;
        assert_eq!(SupplySensor::decode(&board).unwrap().supply, None);
        assert_eq!(SupplySensor::decode(&RECORD[..13]), None);
    }

    #[test]
    fn a_walk_ends_whatever_the_next_record_is_said_to_be() {
        let mut looped = SensorWalk::default();
        let mut steps = 0;
        while !looped.is_over() {
            looped.take(if looped.next == 1 { 2 } else { 1 }, &[]);
            steps += 1;
        }
        assert_eq!(steps, RECORDS_MAX);
        let mut own = SensorWalk::default();
        own.take(0, &RECORD);
        assert!(own.is_over());
        let mut many = SensorWalk::default();
        for id in 1.. {
            if many.is_over() {
                break;
            }
            many.take(id, &RECORD);
        }
        assert_eq!(many.sensors().len(), SENSORS_MAX);
    }

    #[test]
    fn states_are_the_bits_of_the_table() {
        let states = |low| SupplyStates::decode(&[0, 0xc0, low]).unwrap();
        let fine = states(0x01);
        assert!(fine.is_present() && !fine.has_failed() && !fine.has_warning());
        assert!(states(0x03).has_failed());
        assert!(states(0x09).has_lost_input() && states(0x11).has_lost_input());
        assert!(states(0x05).has_warning() && states(0x81).is_inactive());
        assert_eq!(states(0x01).and(states(0x02)), states(0x03));
        assert_eq!(SupplyStates::decode(&[0, 0xe0, 1]), None, "no reading");
        assert_eq!(SupplyStates::decode(&[0, 0x80, 1]), None, "not scanned");
        assert_eq!(SupplyStates::decode(&[0, 0xc0]), None);
    }

    #[test]
    fn the_repository_tells_when_it_changed() {
        let data = [0x51, 2, 0, 0xfe, 0xff, 4, 3, 2, 1, 7, 0, 0, 0, 2];
        let expected = Repository {
            records: 2,
            added: 0x0102_0304,
            erased: 7,
        };
        assert_eq!(Repository::decode(&data), Some(expected));
        assert_eq!(Repository::decode(&data[..12]), None);
    }
}
