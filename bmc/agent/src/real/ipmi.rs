//! The driver by IPMI.

use base_runtime::Chain;
use bmc_ipmi::{
    BootDevice, BootOverride, Credentials, Identify, IpmiError, PowerControl, Session, Timing,
};
use tokio::time::Instant;

use super::sensors::{self, SensorCache};
use super::{PowerView, Way, draw, power_becomes, socket, untaggable};
use crate::config::{Login, Target};
use crate::driver::{Action, DriveError, Power, Reading};

/// Opens a session. A failure here has no effect on the machine.
async fn open(target: &Target, login: &Login) -> Result<Session, DriveError> {
    let address = socket(target, Way::Ipmi);
    let wrong = |error: &IpmiError| format!("IPMI at {address}: {}", Chain(error));
    let credentials = Credentials::new(&login.user, &login.password)
        .map_err(|error| DriveError::Refused(wrong(&error)))?;
    Session::connect(address, &credentials, Timing::default())
        .await
        .map_err(|error| {
            let reason = wrong(&error);
            match error {
                IpmiError::WrongPassword
                | IpmiError::NoSuite
                | IpmiError::Refused { status: 0x02.., .. } => DriveError::Refused(reason),
                _ => DriveError::Unreached(reason),
            }
        })
}

/// Maps a failure in the middle of a session.
fn failed(target: &Target, error: &IpmiError) -> DriveError {
    let reason = format!("IPMI at {}: {}", socket(target, Way::Ipmi), Chain(error));
    match error {
        IpmiError::Silent { .. } | IpmiError::Io(_) => DriveError::Unsure(reason),
        _ => DriveError::Refused(reason),
    }
}

async fn close(session: Session) {
    if let Err(error) = session.close().await {
        tracing::debug!(%error, "IPMI session not closed");
    }
}

/// A session in the middle of an order.
struct Work<'a> {
    session: &'a mut Session,
    target: &'a Target,
}

impl PowerView for Work<'_> {
    async fn power(&mut self) -> Result<Power, DriveError> {
        let status = self.session.chassis_status().await;
        let status = status.map_err(|error| failed(self.target, &error))?;
        Ok(if status.power_on {
            Power::On
        } else {
            Power::Off
        })
    }
}

/// Reads a BMC. A reading needs the power state; descriptive fields may be missing.
pub(super) async fn read(
    target: &Target,
    login: &Login,
    cache: &SensorCache,
    until: Instant,
) -> Result<Reading, DriveError> {
    let mut session = open(target, login).await?;
    let mut reading = read_all(&mut session, target).await;
    if let Ok(reading) = &mut reading {
        let address = socket(target, Way::Ipmi);
        let mut sensors = cache.take(address);
        let read = sensors::read(&mut session, &mut sensors);
        reading.draw = draw::in_time(until, read).await;
        if let Some(sensors) = sensors {
            cache.put(address, sensors);
        }
    }
    close(session).await;
    reading.map_err(|error| failed(target, &error))
}

async fn read_all(session: &mut Session, target: &Target) -> Result<Reading, IpmiError> {
    let status = session.chassis_status().await?;
    let mut reading = Reading {
        interface: "ipmi",
        port: target.speech.ipmi_port,
        power: if status.power_on {
            Power::On
        } else {
            Power::Off
        },
        led: match status.identify {
            Some(Identify::On) => "on",
            Some(Identify::Blinking) => "blinking",
            Some(Identify::Off) => "off",
            None => "",
        },
        ..Reading::default()
    };
    match session.system_guid().await {
        Ok(guid) => {
            let told = [guid.uuid()].into_iter().chain(guid.candidates());
            for machine in told.filter_map(|text| text.parse().ok()) {
                if !reading.machines.contains(&machine) {
                    reading.machines.push(machine);
                }
            }
        }
        Err(error) => missing("system GUID", error)?,
    }
    match session.device_id().await {
        Ok(device) => reading.bmc_version = device.firmware,
        Err(error) => missing("device id", error)?,
    }
    match session.mac().await {
        Ok(mac) => reading.mac = proto_types::MacAddr(mac).to_string(),
        Err(error) => missing("MAC address", error)?,
    }
    match session.fru().await {
        Ok(fru) => {
            reading.fru = proto_mesh::Fru {
                chassis_part_number: fru.chassis_part_number,
                chassis_part_serial: fru.chassis_serial,
                board_mfg: fru.board_manufacturer,
                board_mfg_serial: fru.board_serial,
                board_part_number: fru.board_part_number,
                product_manufacturer: fru.product_manufacturer,
                product_part_number: fru.product_part_number,
                product_serial: fru.product_serial,
            };
        }
        Err(error) => missing("FRU", error)?,
    }
    Ok(reading)
}

/// Ignores the error of a BMC without the feature, and passes on that of a silent BMC.
fn missing(what: &'static str, error: IpmiError) -> Result<(), IpmiError> {
    match error {
        IpmiError::Completion { .. } | IpmiError::Malformed { .. } => {
            tracing::debug!(what, %error, "not available by IPMI");
            Ok(())
        }
        other => Err(other),
    }
}

/// Executes an action and waits until it shows.
pub(super) async fn act(
    target: &Target,
    login: &Login,
    action: Action,
    until: Instant,
) -> Result<Power, DriveError> {
    let mut session = open(target, login).await?;
    let mut work = Work {
        session: &mut session,
        target,
    };
    let done = work.act(action, until).await;
    close(session).await;
    done
}

impl Work<'_> {
    async fn act(&mut self, action: Action, until: Instant) -> Result<Power, DriveError> {
        let before = self.power().await?;
        let (control, want) = match (action, before) {
            (Action::PowerOn, Power::On) | (Action::PowerOff, Power::Off) => return Ok(before),
            // A chassis that is off refuses a power cycle; powering on has the same result.
            (Action::PowerOn, _) | (Action::PowerCycle, Power::Off) => {
                (PowerControl::On, Power::On)
            }
            (Action::PowerOff, _) => (PowerControl::Off, Power::Off),
            (Action::PowerReset, Power::Off) => {
                let reason = "the machine is off, so there is nothing to reset: switch it on";
                return Err(DriveError::Refused(reason.into()));
            }
            (Action::PowerReset, _) => (PowerControl::Reset, Power::On),
            (Action::PowerCycle, _) => (PowerControl::Cycle, Power::On),
            (Action::SetNonce(nonce), _) => {
                self.tag(nonce.text()).await.map_err(untaggable)?;
                return Ok(before);
            }
            _ => {
                let set = settings(self.session, self.target, action).await;
                set.map_err(|error| failed(self.target, &error))?;
                return self.power().await;
            }
        };
        let ordered = self.session.power(control).await;
        ordered.map_err(|error| failed(self.target, &error))?;
        power_becomes(want, until, self).await
    }

    /// Writes the asset tag and reads it back: some BMCs accept a tag that they do not store.
    async fn tag(&mut self, tag: &str) -> Result<(), DriveError> {
        let written = self.session.set_asset_tag(tag).await;
        written.map_err(|error| failed(self.target, &error))?;
        let kept = self.session.asset_tag().await;
        if kept.map_err(|error| failed(self.target, &error))? == tag {
            return Ok(());
        }
        let address = socket(self.target, Way::Ipmi);
        let reason =
            format!("IPMI at {address}: the asset tag reads otherwise than it was written");
        Err(DriveError::Refused(reason))
    }
}

/// Sets boot device or identify light.
async fn settings(session: &mut Session, target: &Target, action: Action) -> Result<(), IpmiError> {
    let device = match action {
        Action::LedOn | Action::LedOff => return session.identify(action == Action::LedOn).await,
        Action::BootDisk => BootDevice::Disk,
        Action::BootBios => BootDevice::BiosSetup,
        _ => BootDevice::Pxe,
    };
    let persistent = device != BootDevice::BiosSetup;
    session
        .set_boot(BootOverride {
            device,
            persistent,
            efi: target.speech.efi,
        })
        .await
}
