//! The driver by Redfish.

use std::io::ErrorKind;

use base_runtime::Chain;
use bmc_redfish::{
    BootOverride, BootTarget, Credentials, Endpoint, Led, PowerState, RedfishError, Reset, Session,
    System, Timing,
};
use tokio::time::{Instant, sleep};

use super::{POLL, PowerView, Way, draw, power_becomes, socket, untaggable};
use crate::config::{Login, Target};
use crate::driver::{Action, DriveError, Power, Reading};

fn open(target: &Target, login: &Login) -> Result<Session, DriveError> {
    let address = socket(target, Way::Redfish);
    let Some(trust) = target.speech.trust.clone() else {
        let reason = format!("Redfish at {address}: no way to know the BMC is configured");
        return Err(DriveError::Refused(reason));
    };
    let credentials = Credentials::new(&login.user, &login.password);
    Session::new(Endpoint { address, trust }, credentials, Timing::default())
        .map_err(|error| DriveError::Refused(format!("Redfish at {address}: {}", Chain(&error))))
}

/// Maps a failure: `lost` if the BMC did not answer in full, else a refusal.
fn failed(target: &Target, error: &RedfishError, lost: fn(String) -> DriveError) -> DriveError {
    let reason = format!(
        "Redfish at {}: {}",
        socket(target, Way::Redfish),
        Chain(error)
    );
    match error {
        // rustls's own errors, above all a wrong certificate, are `InvalidData`. Another try has the
        // same result, and IPMI must not stand in for a BMC that is not the configured one.
        RedfishError::Tls(source) if source.kind() == ErrorKind::InvalidData => {
            DriveError::Refused(reason)
        }
        RedfishError::Connect(_)
        | RedfishError::Tls(_)
        | RedfishError::Body { .. }
        | RedfishError::Silent { .. }
        | RedfishError::Broken { .. }
        | RedfishError::Status { status: 500.., .. } => lost(reason),
        _ => DriveError::Refused(reason),
    }
}

fn power(system: &System) -> Power {
    match system.power {
        PowerState::On => Power::On,
        PowerState::Off => Power::Off,
        PowerState::Other => Power::Unknown,
    }
}

/// Reads a BMC.
pub(super) async fn read(
    target: &Target,
    login: &Login,
    until: Instant,
) -> Result<Reading, DriveError> {
    let mut session = open(target, login)?;
    let inventory = session.inventory().await;
    let inventory = inventory.map_err(|e| failed(target, &e, DriveError::Unreached))?;
    // Power is read last: a request that times out leaves the connection unusable.
    let told = draw::in_time(until, session.power(&inventory)).await;
    let (system, chassis) = (inventory.system, inventory.chassis);
    Ok(Reading {
        machines: system.uuid.parse().into_iter().collect(),
        interface: "redfish",
        port: target.speech.redfish_port,
        mac: inventory.manager.mac,
        bmc_version: inventory.manager.firmware_version,
        bios_version: system.bios_version.clone(),
        power: power(&system),
        led: match system.led {
            Some(Led::On) => "on",
            Some(Led::Blinking) => "blinking",
            Some(Led::Off) => "off",
            None => "",
        },
        fru: proto_mesh::Fru {
            chassis_part_number: chassis.part_number,
            chassis_part_serial: chassis.serial,
            product_manufacturer: system.manufacturer,
            product_part_number: if system.part_number.is_empty() {
                system.model
            } else {
                system.part_number
            },
            product_serial: system.serial,
            ..proto_mesh::Fru::default()
        },
        draw: told.map(|told| told.map(draw::of_redfish).unwrap_or_default()),
        ..Reading::default()
    })
}

/// Executes an action and waits until it shows.
pub(super) async fn act(
    target: &Target,
    login: &Login,
    action: Action,
    until: Instant,
) -> Result<Power, DriveError> {
    let mut session = open(target, login)?;
    let system = session.system().await;
    let system = system.map_err(|e| failed(target, &e, DriveError::Unreached))?;
    let before = power(&system);
    let mut work = Work {
        session,
        system,
        target,
    };
    match (action, before) {
        (Action::PowerOn, Power::On) | (Action::PowerOff, Power::Off) => Ok(before),
        (Action::PowerOn, _) | (Action::PowerCycle, Power::Off) => {
            work.reset(Reset::On, Power::On, until).await
        }
        (Action::PowerOff, _) => work.reset(Reset::ForceOff, Power::Off, until).await,
        (Action::PowerReset, Power::Off) => {
            let reason = "the machine is off, so there is nothing to reset: switch it on";
            Err(DriveError::Refused(reason.into()))
        }
        (Action::PowerReset, _) => work.reset(Reset::ForceRestart, Power::On, until).await,
        (Action::PowerCycle, _) => work.cycle(until).await,
        (Action::LedOn | Action::LedOff, _) => work.led(action == Action::LedOn).await,
        (Action::SetNonce(nonce), _) => work.tag(nonce.text(), until).await.map_err(untaggable),
        (Action::BootPxe | Action::BootDisk | Action::BootBios, _) => work.boot(action).await,
    }
}

fn boot_override(action: Action) -> BootOverride {
    let target = match action {
        Action::BootDisk => BootTarget::Disk,
        Action::BootBios => BootTarget::BiosSetup,
        _ => BootTarget::Pxe,
    };
    BootOverride {
        target,
        persistent: target != BootTarget::BiosSetup,
    }
}

/// A session in the middle of an order.
struct Work<'a> {
    session: Session,
    system: System,
    target: &'a Target,
}

impl PowerView for Work<'_> {
    async fn power(&mut self) -> Result<Power, DriveError> {
        let system = self.session.refresh(&self.system).await;
        system
            .map(|system| power(&system))
            .map_err(|error| self.unsure(&error))
    }
}

impl Work<'_> {
    fn unsure(&self, error: &RedfishError) -> DriveError {
        failed(self.target, error, DriveError::Unsure)
    }

    async fn reset(
        &mut self,
        reset: Reset,
        want: Power,
        until: Instant,
    ) -> Result<Power, DriveError> {
        let done = self.session.reset(&self.system, reset).await;
        done.map_err(|error| self.unsure(&error))?;
        power_becomes(want, until, self).await
    }

    /// By one request if the BMC supports it, else off and on.
    async fn cycle(&mut self, until: Instant) -> Result<Power, DriveError> {
        if self.system.can(Reset::PowerCycle) {
            return self.reset(Reset::PowerCycle, Power::On, until).await;
        }
        self.reset(Reset::ForceOff, Power::Off, until).await?;
        self.reset(Reset::On, Power::On, until).await
    }

    async fn led(&mut self, on: bool) -> Result<Power, DriveError> {
        let done = self.session.set_led(&self.system, on).await;
        done.map_err(|error| self.unsure(&error))?;
        Ok(power(&self.system))
    }

    /// Writes the asset tag and polls until it shows: some BMCs accept it first and apply it later.
    async fn tag(&mut self, tag: &str, until: Instant) -> Result<Power, DriveError> {
        let done = self.session.set_asset_tag(&self.system, tag).await;
        done.map_err(|error| self.unsure(&error))?;
        loop {
            let system = self.session.refresh(&self.system).await;
            let system = system.map_err(|error| self.unsure(&error))?;
            if system.asset_tag == tag {
                return Ok(power(&system));
            }
            if Instant::now() + POLL > until {
                let address = socket(self.target, Way::Redfish);
                let reason = format!("Redfish at {address}: the asset tag stays as it was");
                return Err(DriveError::Refused(reason));
            }
            sleep(POLL).await;
        }
    }

    async fn boot(&mut self, action: Action) -> Result<Power, DriveError> {
        let boot = boot_override(action);
        let lasts = self.session.set_boot(&self.system, boot).await;
        let lasts = lasts.map_err(|error| self.unsure(&error))?;
        if boot.persistent && !lasts {
            let bmc = self.target.address;
            tracing::warn!(%bmc, "the BMC sets boot devices for one boot only");
        }
        Ok(power(&self.system))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;
    use crate::config::{Interface, Speech};

    #[test]
    fn what_may_succeed_later_is_no_refusal() {
        let target = Target {
            address: [10, 0, 0, 1].into(),
            speech: Speech {
                interface: Interface::Redfish,
                redfish_port: 443,
                ipmi_port: 623,
                trust: None,
                efi: false,
            },
            machine: None,
        };
        let cut = RedfishError::Body {
            what: "GET /redfish/v1/".into(),
            max: 1,
        };
        let tls = |kind| RedfishError::Tls(Error::from(kind));
        let refused = |error| {
            let [read, change] = [DriveError::Unreached, DriveError::Unsure]
                .map(|lost| failed(&target, &error, lost));
            match (read, change) {
                (DriveError::Unreached(_), DriveError::Unsure(_)) => false,
                (DriveError::Refused(_), DriveError::Refused(_)) => true,
                other => panic!("{other:?}"),
            }
        };
        assert!(!refused(cut));
        assert!(!refused(tls(ErrorKind::UnexpectedEof)));
        assert!(!refused(tls(ErrorKind::ConnectionReset)));
        assert!(refused(tls(ErrorKind::InvalidData)), "a wrong certificate");
    }
}
