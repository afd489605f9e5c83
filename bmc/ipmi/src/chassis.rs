use crate::{IpmiError, Session};

const CHASSIS: u8 = 0x00;
const GET_STATUS: u8 = 0x01;
const CONTROL: u8 = 0x02;
const IDENTIFY: u8 = 0x04;
const SET_BOOT_OPTIONS: u8 = 0x08;
const GET_BOOT_OPTIONS: u8 = 0x09;
/// Boot option parameters (specification, table 28-14).
const BOOT_INFO_VALID: u8 = 3;
const BOOT_FLAGS: u8 = 5;

/// What Get Chassis Status tells (28.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChassisStatus {
    pub power_on: bool,
    /// `None` when the chassis does not tell.
    pub identify: Option<Identify>,
}

/// State of the identify light.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identify {
    Off,
    /// For a time only.
    Blinking,
    On,
}

/// Chassis Control (28.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerControl {
    Off,
    On,
    /// Off, a pause, and on; a chassis that is off may refuse it.
    Cycle,
    Reset,
    /// Asks the operating system, by ACPI.
    Soft,
}

/// Where a machine boots from (28.13, parameter 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootDevice {
    /// No override: the firmware's own order.
    None,
    Pxe,
    Disk,
    BiosSetup,
}

/// A boot device, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootOverride {
    pub device: BootDevice,
    /// Until it is changed; else for the next boot alone.
    pub persistent: bool,
    /// For UEFI firmware; else for BIOS.
    pub efi: bool,
}

impl Session {
    /// # Errors
    /// As [`Session::request`].
    pub async fn chassis_status(&mut self) -> Result<ChassisStatus, IpmiError> {
        let what = "reading the chassis status";
        let data = self.request(CHASSIS, GET_STATUS, &[], what).await?;
        let power = *data.first().ok_or(IpmiError::Malformed { what })?;
        let identify = data
            .get(2)
            .filter(|misc| *misc & 0x40 != 0)
            .and_then(|misc| match misc >> 4 & 0x03 {
                0 => Some(Identify::Off),
                1 => Some(Identify::Blinking),
                2 => Some(Identify::On),
                _ => None,
            });
        Ok(ChassisStatus {
            power_on: power & 0x01 != 0,
            identify,
        })
    }

    /// # Errors
    /// As [`Session::request`].
    pub async fn power(&mut self, control: PowerControl) -> Result<(), IpmiError> {
        let (code, what) = match control {
            PowerControl::Off => (0, "power off"),
            PowerControl::On => (1, "power on"),
            PowerControl::Cycle => (2, "power cycle"),
            PowerControl::Reset => (3, "reset"),
            PowerControl::Soft => (5, "soft shutdown"),
        };
        self.request(CHASSIS, CONTROL, &[code], what)
            .await
            .map(drop)
    }

    /// Lights the identify light until it is put out, or puts it out (28.5).
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn identify(&mut self, on: bool) -> Result<(), IpmiError> {
        let data = if on { [0, 1] } else { [0, 0] };
        self.request(CHASSIS, IDENTIFY, &data, "setting the identify light")
            .await
            .map(drop)
    }

    /// # Errors
    /// As [`Session::request`].
    pub async fn set_boot(&mut self, boot: BootOverride) -> Result<(), IpmiError> {
        let what = "setting the boot device";
        // A BMC forgets the flags a minute after a reset, unless told not to (table 28-14).
        let keep = [BOOT_INFO_VALID, 0x1f];
        match self.request(CHASSIS, SET_BOOT_OPTIONS, &keep, what).await {
            // Not every BMC has that parameter; the flags themselves count.
            Ok(_) | Err(IpmiError::Completion { .. }) => {}
            Err(error) => return Err(error),
        }
        let data = flags(boot);
        self.request(CHASSIS, SET_BOOT_OPTIONS, &data, what)
            .await
            .map(drop)
    }

    /// # Errors
    /// As [`Session::request`].
    pub async fn boot(&mut self) -> Result<BootOverride, IpmiError> {
        let what = "reading the boot device";
        let data = self
            .request(CHASSIS, GET_BOOT_OPTIONS, &[BOOT_FLAGS, 0, 0], what)
            .await?;
        read_flags(&data).ok_or(IpmiError::Malformed { what })
    }
}

fn flags(boot: BootOverride) -> [u8; 6] {
    let device = match boot.device {
        BootDevice::None => 0x00,
        BootDevice::Pxe => 0x04,
        BootDevice::Disk => 0x08,
        BootDevice::BiosSetup => 0x18,
    };
    let persistent = if boot.persistent { 0x40 } else { 0 };
    let efi = if boot.efi { 0x20 } else { 0 };
    [BOOT_FLAGS, 0x80 | persistent | efi, device, 0, 0, 0]
}

fn read_flags(data: &[u8]) -> Option<BootOverride> {
    // Parameter version, parameter, then the flags.
    let (first, second) = (*data.get(2)?, *data.get(3)?);
    let device = match (first & 0x80 != 0, second & 0x3c) {
        (true, 0x04) => BootDevice::Pxe,
        (true, 0x08) => BootDevice::Disk,
        (true, 0x18) => BootDevice::BiosSetup,
        _ => BootDevice::None,
    };
    Some(BootOverride {
        device,
        persistent: first & 0x40 != 0,
        efi: first & 0x20 != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_flags_come_back() {
        for device in [
            BootDevice::None,
            BootDevice::Pxe,
            BootDevice::Disk,
            BootDevice::BiosSetup,
        ] {
            for (persistent, efi) in [(false, false), (true, false), (false, true), (true, true)] {
                let boot = BootOverride {
                    device,
                    persistent,
                    efi,
                };
                let data = [&[0x01, BOOT_FLAGS], &flags(boot)[1..]].concat();
                assert_eq!(read_flags(&data), Some(boot));
            }
        }
        assert_eq!(read_flags(&[1, 5]), None);
    }

    #[test]
    fn uefi_and_persistent_are_the_bits_of_the_field() {
        let boot = BootOverride {
            device: BootDevice::Pxe,
            persistent: true,
            efi: true,
        };
        assert_eq!(flags(boot)[1..3], [0xe0, 0x04]);
    }
}
