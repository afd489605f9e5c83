//! Device id, system GUID, MAC address and FRU of a BMC.

use std::fmt;

use crate::fru::{self, Fru};
use crate::{IpmiError, Session};

const APP: u8 = 0x06;
const STORAGE: u8 = 0x0a;
const TRANSPORT: u8 = 0x0c;
/// Bytes of FRU data per request. Larger reads exceed the message size of some BMCs.
const FRU_CHUNK: u8 = 16;
/// Largest FRU that is read, bytes. A larger one is cut.
const FRU_BYTES_MAX: u16 = 2048;

/// The answer to Get Device ID (specification, 20.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceId {
    /// Firmware version, like `2.54`.
    pub firmware: String,
    /// IANA number of the manufacturer.
    pub manufacturer: u32,
    pub product: u16,
}

/// The 16 bytes of Get System GUID (22.14). Vendors use three different byte orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemGuid(pub [u8; 16]);

impl SystemGuid {
    /// The SMBIOS UUID of the machine, in hyphenated form.
    ///
    /// The byte order is the first of SMBIOS, RFC 4122 and IPMI in which version and variant are
    /// those of a UUID, or SMBIOS if none is. The guess can be wrong: [`Self::candidates`] returns
    /// all orders, to be compared with known machines.
    #[must_use]
    pub fn uuid(&self) -> String {
        let orders = self.orders();
        let valid = |id: &&[u8; 16]| matches!(id[6] >> 4, 1..=8) && id[8] & 0xc0 == 0x80;
        Hyphenated(*orders.iter().find(valid).unwrap_or(&orders[0])).to_string()
    }

    /// The UUID in each order, SMBIOS first.
    #[must_use]
    pub fn candidates(&self) -> [String; 3] {
        self.orders().map(|order| Hyphenated(order).to_string())
    }

    fn orders(&self) -> [[u8; 16]; 3] {
        [self.smbios(), self.0, self.reversed()]
    }

    /// SMBIOS 2.6 and later: the first three fields are little-endian.
    fn smbios(&self) -> [u8; 16] {
        let mut id = self.0;
        id[..4].reverse();
        id[4..6].reverse();
        id[6..8].reverse();
        id
    }

    fn reversed(&self) -> [u8; 16] {
        let mut id = self.0;
        id.reverse();
        id
    }
}

struct Hyphenated([u8; 16]);

impl fmt::Display for Hyphenated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl Session {
    /// Reads the device id.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn device_id(&mut self) -> Result<DeviceId, IpmiError> {
        let what = "reading the device id";
        let data = self.request(APP, 0x01, &[], what).await?;
        // Four bytes of auxiliary firmware revision may follow. They are optional (20.1).
        let data = data.get(..11).ok_or(IpmiError::Malformed { what })?;
        Ok(DeviceId {
            // The minor revision is BCD: two decimal digits. Bit 7 of the major one is a flag.
            firmware: format!("{}.{:x}", data[2] & 0x7f, data[3]),
            // The number has 20 bits; the four above them are reserved.
            manufacturer: u32::from_le_bytes([data[6], data[7], data[8] & 0x0f, 0]),
            product: u16::from_le_bytes([data[9], data[10]]),
        })
    }

    /// Reads the system GUID.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn system_guid(&mut self) -> Result<SystemGuid, IpmiError> {
        let what = "reading the system GUID";
        let data = self.request(APP, 0x37, &[], what).await?;
        let guid = data.get(..16).and_then(|bytes| bytes.try_into().ok());
        guid.map(SystemGuid).ok_or(IpmiError::Malformed { what })
    }

    /// Reads the MAC address of the BMC on the channel of this session (23.2, parameter 5).
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn mac(&mut self) -> Result<[u8; 6], IpmiError> {
        let what = "reading the MAC address of the BMC";
        // 0x0e is the channel of the request. BMCs number their LAN channels differently.
        let data = self
            .request(TRANSPORT, 0x02, &[0x0e, 5, 0, 0], what)
            .await?;
        let mac = data.get(1..7).and_then(|bytes| bytes.try_into().ok());
        mac.ok_or(IpmiError::Malformed { what })
    }

    /// Reads FRU 0: the chassis and board that the BMC belongs to.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn fru(&mut self) -> Result<Fru, IpmiError> {
        let what = "reading the FRU";
        let info = self.request(STORAGE, 0x10, &[0], what).await?;
        let info = info.get(..3).ok_or(IpmiError::Malformed { what })?;
        let size = u16::from_le_bytes([info[0], info[1]]).min(FRU_BYTES_MAX);
        // Offsets and counts are in bytes or, by this flag, in words of two bytes.
        let unit = if info[2] & 0x01 == 0 { 1 } else { 2 };
        let mut bytes = Vec::with_capacity(size.into());
        while let Ok(at) = u16::try_from(bytes.len())
            && at < size
        {
            let [low, high] = (at / unit).to_le_bytes();
            let left = u8::try_from(size - at).unwrap_or(FRU_CHUNK).min(FRU_CHUNK);
            let count = left.div_ceil(u8::try_from(unit).unwrap_or(1));
            let data = self
                .request(STORAGE, 0x11, &[0, low, high, count], what)
                .await?;
            // An empty chunk would not advance: the loop would ask for the same offset for ever.
            let chunk = data.get(1..).filter(|chunk| !chunk.is_empty());
            bytes.extend(chunk.ok_or(IpmiError::Malformed { what })?);
        }
        Ok(fru::decode(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::SystemGuid;

    const UUID: &str = "6f1c0001-1c2d-4e0f-8a5b-0123456789ab";
    const PLAIN: [u8; 16] = [
        0x6f, 0x1c, 0x00, 0x01, 0x1c, 0x2d, 0x4e, 0x0f, 0x8a, 0x5b, 0x01, 0x23, 0x45, 0x67, 0x89,
        0xab,
    ];

    #[test]
    fn each_order_of_bytes_gives_the_uuid() {
        let plain = SystemGuid(PLAIN);
        for guid in [
            plain,
            SystemGuid(plain.smbios()),
            SystemGuid(plain.reversed()),
        ] {
            assert_eq!(guid.uuid(), UUID);
        }
    }
}
