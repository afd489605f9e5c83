//! DCMI's Get Power Reading: the power consumption of a machine, as its BMC measures it.
//!
//! Source: Data Center Manageability Interface Specification 1.5, command Get Power Reading, mode 1
//! (system power statistics).

use crate::dcmi::{DCMI, DONE, GROUP_EXTENSION, INVALID_DATA};
use crate::{IpmiError, Session};

/// Command number in [`GROUP_EXTENSION`].
pub const GET_POWER_READING: u8 = 0x02;
/// Mode 1, system power statistics. Mode 2, with a chosen averaging period, is optional in DCMI.
const MODE_STATISTICS: u8 = 0x01;
/// "Power measurement active" in the last byte.
const ACTIVE: u8 = 0x40;
/// Value of a number that the BMC does not have: all bits set.
const UNAVAILABLE: u16 = u16::MAX;

/// Power statistics of one averaging period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerReading {
    /// At the moment of the answer, W.
    pub current_w: u16,
    /// Lowest in the period, W.
    pub min_w: u16,
    /// Highest in the period, W.
    pub max_w: u16,
    /// Mean of the period, W.
    pub average_w: u16,
    /// Length of the period, ms.
    pub period_ms: u32,
    /// `true` if the BMC measures now. Otherwise the numbers have no meaning.
    pub is_active: bool,
}

impl PowerReading {
    /// Decodes the data of an answer. `None` means that it is too short or not DCMI's.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let (
            &[
                DCMI,
                c0,
                c1,
                l0,
                l1,
                h0,
                h1,
                a0,
                a1,
                _,
                _,
                _,
                _,
                p0,
                p1,
                p2,
                p3,
                state,
            ],
            _,
        ) = data.split_first_chunk::<18>()?
        else {
            return None;
        };
        // The four bytes before the period are the time of the reading by the BMC's own clock, which
        // may never have been set.
        Some(Self {
            current_w: u16::from_le_bytes([c0, c1]),
            min_w: u16::from_le_bytes([l0, l1]),
            max_w: u16::from_le_bytes([h0, h1]),
            average_w: u16::from_le_bytes([a0, a1]),
            period_ms: u32::from_le_bytes([p0, p1, p2, p3]),
            is_active: state & ACTIVE != 0,
        })
    }

    /// Encodes the data of an answer, without a timestamp, for simulated BMCs.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let watts = [self.current_w, self.min_w, self.max_w, self.average_w];
        let mut data = vec![DCMI];
        data.extend(watts.iter().flat_map(|watts| watts.to_le_bytes()));
        data.extend([0; 4]);
        data.extend(self.period_ms.to_le_bytes());
        data.push(if self.is_active { ACTIVE } else { 0 });
        data
    }

    /// Answers the data of a request with completion code and data, for simulated BMCs.
    #[must_use]
    pub fn answer(&self, request: &[u8]) -> (u8, Vec<u8>) {
        match request {
            [DCMI, MODE_STATISTICS, ..] => (DONE, self.encode()),
            _ => (INVALID_DATA, Vec::new()),
        }
    }

    /// `true` if every number was measured.
    fn is_complete(&self) -> bool {
        // A BMC without a sensor answers successfully with all bits set. Taken as a number, that is a
        // machine of 65 kW.
        let watts = [self.current_w, self.min_w, self.max_w, self.average_w];
        self.is_active && !watts.contains(&UNAVAILABLE)
    }
}

impl Session {
    /// Reads the power consumption of the machine. `None` means that the BMC does not measure it
    /// now.
    ///
    /// # Errors
    /// As [`Session::request`]; [`IpmiError::Completion`] of a BMC without DCMI.
    pub async fn power_reading(&mut self) -> Result<Option<PowerReading>, IpmiError> {
        let what = "reading the power";
        let ask = [DCMI, MODE_STATISTICS, 0, 0];
        let data = self
            .request(GROUP_EXTENSION, GET_POWER_READING, &ask, what)
            .await?;
        let reading = PowerReading::decode(&data).ok_or(IpmiError::Malformed { what })?;
        Ok(Some(reading).filter(PowerReading::is_complete))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: PowerReading = PowerReading {
        current_w: 230,
        min_w: 198,
        max_w: 305,
        average_w: 241,
        period_ms: 1_200_000,
        is_active: true,
    };

    #[test]
    fn the_fields_are_where_dcmi_has_them() {
        let data = [
            0xdc, 230, 0, 198, 0, 0x31, 0x01, 241, 0, 1, 2, 3, 4, 0x80, 0x4f, 0x12, 0, 0x40,
        ];
        assert_eq!(PowerReading::decode(&data), Some(READING));
        assert_eq!(PowerReading::decode(&READING.encode()), Some(READING));
        for size in 0..data.len() {
            assert_eq!(PowerReading::decode(&data[..size]), None, "cut at {size}");
        }
        assert_eq!(PowerReading::decode(&[0; 18]), None, "not DCMI's");
    }

    #[test]
    fn numbers_that_are_not_measured_do_not_count() {
        assert!(READING.is_complete());
        let idle = PowerReading {
            is_active: false,
            ..READING
        };
        let ones = PowerReading {
            average_w: u16::MAX,
            ..READING
        };
        assert!(!idle.is_complete() && !ones.is_complete());
    }

    #[test]
    fn other_modes_are_refused() {
        assert_eq!(READING.answer(&[0xdc, 1, 0, 0]), (DONE, READING.encode()));
        for request in [&[][..], &[0xdc], &[0xdc, 2, 0, 0], &[0, 1, 0, 0]] {
            assert_eq!(READING.answer(request).0, INVALID_DATA, "{request:?}");
        }
    }
}
