//! Chassis status, power control and identify light (specification, 28).

use crate::boot::{BOOT_FLAGS, BOOT_INFO_VALID, BootOverride, flags, read_flags};
use crate::{IpmiError, Session};

const CHASSIS: u8 = 0x00;
const GET_STATUS: u8 = 0x01;
const CONTROL: u8 = 0x02;
const IDENTIFY: u8 = 0x04;
const SET_BOOT_OPTIONS: u8 = 0x08;
const GET_BOOT_OPTIONS: u8 = 0x09;

/// The answer to Get Chassis Status (28.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChassisStatus {
    /// `true` if the machine is powered on.
    pub power_on: bool,
    /// `None` means that the chassis does not report it.
    pub identify: Option<Identify>,
}

/// State of the identify light.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identify {
    Off,
    /// Lit for a limited time.
    Blinking,
    On,
}

/// Chassis Control (28.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerControl {
    Off,
    On,
    /// Off, a pause, and on. A chassis that is off may refuse it.
    Cycle,
    Reset,
    /// Requests a shutdown from the operating system, by ACPI.
    Soft,
}

impl Session {
    /// Reads power state and identify light.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn chassis_status(&mut self) -> Result<ChassisStatus, IpmiError> {
        let what = "reading the chassis status";
        let data = self.request(CHASSIS, GET_STATUS, &[], what).await?;
        let power = *data.first().ok_or(IpmiError::Malformed { what })?;
        let identify = data
            .get(2)
            // Bit 6 (table 28-3). Without it the state bits read 0, which would pass for a light
            // that is off.
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

    /// Changes the power state. The BMC answers before the change is done.
    ///
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

    /// Turns the identify light on for an unlimited time, or off (28.5).
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn identify(&mut self, on: bool) -> Result<(), IpmiError> {
        // The first byte is a time of at most 255 s, too short to find a machine in a hall. The
        // second one forces the light on until it is turned off.
        let data = if on { [0, 1] } else { [0, 0] };
        self.request(CHASSIS, IDENTIFY, &data, "setting the identify light")
            .await
            .map(drop)
    }

    /// Sets the boot device override.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub async fn set_boot(&mut self, boot: BootOverride) -> Result<(), IpmiError> {
        let what = "setting the boot device";
        // By default a BMC drops the flags 60 s after the last Chassis Control command (table
        // 28-14). Firmware that takes longer to POST would then boot from its own order, so this
        // and the other causes of dropping them are switched off first.
        let keep = [BOOT_INFO_VALID, 0x1f];
        match self.request(CHASSIS, SET_BOOT_OPTIONS, &keep, what).await {
            // Some BMCs lack that parameter. They still take the flags themselves.
            Ok(_) | Err(IpmiError::Completion { .. }) => {}
            Err(error) => return Err(error),
        }
        let data = flags(boot);
        self.request(CHASSIS, SET_BOOT_OPTIONS, &data, what)
            .await
            .map(drop)
    }

    /// Reads the boot device override.
    ///
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
