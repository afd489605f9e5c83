//! The driver for real BMCs: Redfish or IPMI, by configuration and by the protocol that answers.

mod draw;
mod ipmi;
mod redfish;
mod sensors;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, sleep, timeout_at};

use crate::config::{Credentials, Interface, Login, Target};
use crate::driver::{Action, DriveError, Driver, Power, Reading};
use sensors::SensorCache;

/// Time limit of reading one BMC. Beyond it the reading fails.
const READ_TIME_MAX: Duration = Duration::from_secs(45);
/// Poll interval while the power state follows an operation.
const POLL: Duration = Duration::from_millis(500);

/// The driver for real BMCs, with the credentials of the file.
#[derive(Debug)]
pub(crate) struct RealDriver {
    credentials: Credentials,
    sensors: SensorCache,
}

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Redfish,
    Ipmi,
}

impl RealDriver {
    pub(crate) fn new(credentials: Credentials) -> Self {
        Self {
            credentials,
            sensors: SensorCache::default(),
        }
    }

    fn login(&self, address: IpAddr) -> Result<&Login, DriveError> {
        self.credentials.of(address).ok_or_else(|| {
            DriveError::Refused(format!(
                "BMC {address}: the credentials file has no login for it"
            ))
        })
    }

    async fn read_by(
        &self,
        way: Way,
        target: &Target,
        until: Instant,
    ) -> Result<Reading, DriveError> {
        let login = self.login(target.address)?;
        let read = match way {
            Way::Redfish => redfish::read(target, login, until).await,
            Way::Ipmi => ipmi::read(target, login, &self.sensors, until).await,
        };
        read.map(|reading| Reading {
            user: login.user.clone(),
            ..reading
        })
    }

    async fn act_by(
        &self,
        way: Way,
        target: &Target,
        action: Action,
        until: Instant,
    ) -> Result<Power, DriveError> {
        let login = self.login(target.address)?;
        match way {
            Way::Redfish => redfish::act(target, login, action, until).await,
            Way::Ipmi => ipmi::act(target, login, action, until).await,
        }
    }
}

/// The protocols to try, in order. Redfish without a configured trust is never used: the password
/// would go to any host that answers.
fn ways(target: &Target) -> &'static [Way] {
    match (target.speech.interface, &target.speech.trust) {
        (Interface::Redfish, _) => &[Way::Redfish],
        (Interface::Auto, Some(_)) => &[Way::Redfish, Way::Ipmi],
        (Interface::Ipmi, _) | (Interface::Auto, None) => &[Way::Ipmi],
    }
}

impl Driver for RealDriver {
    fn read<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<Reading, DriveError>> {
        Box::pin(async move {
            let until = Instant::now() + READ_TIME_MAX;
            let read = async {
                let mut reasons = Vec::new();
                for way in ways(target) {
                    match self.read_by(*way, target, until).await {
                        Err(DriveError::Unreached(reason)) => reasons.push(reason),
                        other => return other,
                    }
                }
                Err(DriveError::Unreached(reasons.join("; ")))
            };
            timeout_at(until, read).await.unwrap_or_else(|_| {
                let address = target.address;
                let reason = format!("BMC {address}: not read within {READ_TIME_MAX:?}");
                Err(DriveError::Unsure(reason))
            })
        })
    }

    fn act<'a>(
        &'a self,
        target: &'a Target,
        action: Action,
        until: Instant,
    ) -> BoxFuture<'a, Result<Power, DriveError>> {
        Box::pin(async move {
            let mut reasons = Vec::new();
            for way in ways(target) {
                match self.act_by(*way, target, action, until).await {
                    Err(DriveError::Unreached(reason)) => reasons.push(reason),
                    other => return other,
                }
            }
            Err(DriveError::Unreached(reasons.join("; ")))
        })
    }
}

fn socket(target: &Target, way: Way) -> SocketAddr {
    let port = match way {
        Way::Redfish => target.speech.redfish_port,
        Way::Ipmi => target.speech.ipmi_port,
    };
    SocketAddr::new(target.address, port)
}

/// The error of an asset tag that cannot be written.
fn untaggable(error: DriveError) -> DriveError {
    match error {
        DriveError::Refused(reason) => DriveError::Refused(format!(
            "{reason}; without an asset tag that can be written its machine cannot join while the \
             partition requires a BMC nonce"
        )),
        other => other,
    }
}

/// The power state of a machine, for polling.
trait PowerView {
    fn power(&mut self) -> impl Future<Output = Result<Power, DriveError>> + Send;
}

/// Polls until the power state is as wanted.
async fn power_becomes(
    want: Power,
    until: Instant,
    view: &mut impl PowerView,
) -> Result<Power, DriveError> {
    loop {
        let power = view.power().await?;
        if power == want {
            return Ok(power);
        }
        if Instant::now() + POLL > until {
            return Err(DriveError::Unsure(format!(
                "the BMC took the order, but the machine is still {}",
                power.as_str()
            )));
        }
        sleep(POLL).await;
    }
}
