//! A session with a BMC: reads inventory and power, changes power, boot device, light and asset tag.

use serde_json::{Value, json};

use crate::boot_override::BootOverride;
use crate::connection::{Answer, Connection};
use crate::endpoint::{Credentials, Endpoint, Timing};
use crate::error::RedfishError;
use crate::inventory::{self, Chassis, Inventory, Manager};
use crate::json::{link, text, texts};
use crate::power::{Power, PowerMetric, PowerSupply, SUPPLIES_MAX};
use crate::power_links::PowerLinks;
use crate::reset::Reset;
use crate::system::System;

const ROOT: &str = "/redfish/v1/";
/// Members read of a collection. Further ones are ignored.
const MEMBERS_MAX: usize = 32;
/// Chassis of a system searched for power resources. Further ones are ignored.
const CHASSIS_MAX: usize = 4;

/// A session with one BMC: one connection, one request at a time.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
}

impl Session {
    /// Prepares a session. The first request opens the connection.
    ///
    /// # Errors
    /// [`RedfishError::TlsConfig`] if a root certificate is unusable.
    pub fn new(
        endpoint: Endpoint,
        credentials: Credentials,
        timing: Timing,
    ) -> Result<Self, RedfishError> {
        Ok(Self {
            connection: Connection::new(endpoint, credentials, timing)?,
        })
    }

    /// Reads the machine of the BMC: the first physical one of its systems.
    ///
    /// # Errors
    /// [`RedfishError`] if the BMC does not answer, refuses, or has no system.
    pub async fn system(&mut self) -> Result<System, RedfishError> {
        let root = self.connection.get(ROOT).await?.value;
        let systems = link(&root["Systems"]).ok_or_else(|| RedfishError::Malformed {
            what: format!("GET {ROOT}"),
            reason: "it links to no systems".into(),
        })?;
        let mut first = None;
        for path in self.members(&systems).await? {
            let value = self.connection.get(&path).await?.value;
            let physical = matches!(text(&value, "SystemType").as_str(), "" | "Physical");
            let system = System::read(&path, &value);
            if physical {
                return self.with_reset_values(system).await;
            }
            first = first.or(Some(system));
        }
        match first {
            Some(system) => self.with_reset_values(system).await,
            None => Err(RedfishError::Malformed {
                what: format!("GET {systems}"),
                reason: "the BMC has no system".into(),
            }),
        }
    }

    /// Reads a system again.
    ///
    /// # Errors
    /// [`RedfishError`] if the BMC does not answer or refuses.
    pub async fn refresh(&mut self, system: &System) -> Result<System, RedfishError> {
        let value = self.connection.get(&system.path).await?.value;
        let mut again = System::read(&system.path, &value);
        again.reset_values = again.reset_values.or_else(|| system.reset_values.clone());
        Ok(again)
    }

    /// Reads system, BMC and chassis. BMC and chassis are left empty if they cannot be read: the
    /// machine can be managed without them.
    ///
    /// # Errors
    /// As [`Session::system`].
    pub async fn inventory(&mut self) -> Result<Inventory, RedfishError> {
        let system = self.system().await?;
        let manager = match system.managers.first() {
            Some(path) => self.manager(path).await,
            None => Ok(Manager::default()),
        };
        let chassis = match system.chassis.first() {
            Some(path) => self
                .connection
                .get(path)
                .await
                .map(|a| Chassis::read(&a.value)),
            None => Ok(Chassis::default()),
        };
        let lacking = |what: &'static str| move |error: RedfishError| tracing::debug!(what, %error, "inventory incomplete");
        Ok(Inventory {
            system,
            manager: manager.map_err(lacking("manager")).unwrap_or_default(),
            chassis: chassis.map_err(lacking("chassis")).unwrap_or_default(),
        })
    }

    /// Reads power consumption and supplies from the first chassis that reports them. A chassis with
    /// `Power` takes one request; one with `PowerSubsystem` takes one per supply and up to four
    /// more. `None` means that no chassis reports them.
    ///
    /// # Errors
    /// [`RedfishError`] if the BMC does not answer or refuses.
    pub async fn power(&mut self, inventory: &Inventory) -> Result<Option<Power>, RedfishError> {
        let links = self.power_links(inventory).await?;
        if let Some(path) = &links.power {
            let value = self.connection.get(path).await?.value;
            return Ok(Some(Power::read(&value)));
        }
        if links.is_empty() {
            return Ok(None);
        }
        let mut power = Power::default();
        if let Some(path) = &links.environment {
            power.metric = self.environment(path).await?;
        }
        if let Some(path) = &links.subsystem {
            power.supplies = self.supplies(path).await?;
        }
        Ok(Some(power))
    }

    /// The power links of the first chassis, which is in the inventory, or of another chassis if
    /// that one has none.
    async fn power_links(&mut self, inventory: &Inventory) -> Result<PowerLinks, RedfishError> {
        if !inventory.chassis.power.is_empty() {
            return Ok(inventory.chassis.power.clone());
        }
        for path in inventory.system.chassis.iter().take(CHASSIS_MAX).skip(1) {
            let links = PowerLinks::read(&self.connection.get(path).await?.value);
            if !links.is_empty() {
                return Ok(links);
            }
        }
        Ok(PowerLinks::default())
    }

    /// Reads `PowerWatts` of `EnvironmentMetrics`, a momentary value. Its sensor may have the values
    /// of a period.
    async fn environment(&mut self, path: &str) -> Result<Option<PowerMetric>, RedfishError> {
        let value = self.connection.get(path).await?.value;
        let watts = &value["PowerWatts"];
        let moment = PowerMetric::of_sensor(watts);
        let (Some(_), Some(sensor)) = (moment, watts["DataSourceUri"].as_str()) else {
            return Ok(moment);
        };
        // The sensor may be missing. The momentary value is enough then.
        let sensor = self.connection.get(sensor).await.ok();
        let metric = sensor.and_then(|sensor| PowerMetric::of_sensor(&sensor.value));
        Ok(metric.or(moment))
    }

    async fn supplies(&mut self, path: &str) -> Result<Vec<PowerSupply>, RedfishError> {
        let value = self.connection.get(path).await?.value;
        let Some(collection) = link(&value["PowerSupplies"]) else {
            return Ok(Vec::new());
        };
        let mut supplies = Vec::new();
        for member in self.members(&collection).await?.iter().take(SUPPLIES_MAX) {
            let value = self.connection.get(member).await?.value;
            supplies.push(PowerSupply::read(&value));
        }
        Ok(supplies)
    }

    /// Changes the power state. The BMC only accepts the request; [`Session::refresh`] shows when
    /// the machine has followed.
    ///
    /// # Errors
    /// [`RedfishError::Unsupported`] if the BMC does not list the reset type, else its error.
    pub async fn reset(&mut self, system: &System, reset: Reset) -> Result<(), RedfishError> {
        let body = system.reset_body(reset)?;
        let path = system
            .reset_path
            .as_deref()
            .ok_or_else(|| RedfishError::Unsupported {
                what: "resets of the system".into(),
                allowed: "nothing".into(),
            })?;
        self.connection.post(path, &body).await.map(drop)
    }

    /// Sets the boot device. Returns `true` if it lasts longer than one boot.
    ///
    /// # Errors
    /// [`RedfishError::Unsupported`] if the BMC does not list the target or the duration, else its
    /// error.
    pub async fn set_boot(
        &mut self,
        system: &System,
        boot: BootOverride,
    ) -> Result<bool, RedfishError> {
        let (body, lasts) = system.boot_body(boot)?;
        self.patch(&system.path, &body).await?;
        Ok(lasts)
    }

    /// Switches the locator light of the system or, if it has none, of its chassis.
    ///
    /// # Errors
    /// The error of the BMC.
    pub async fn set_led(&mut self, system: &System, on: bool) -> Result<(), RedfishError> {
        let body = system.led_body(on);
        if system.led.is_none()
            && let Some(path) = system.chassis.first().cloned()
        {
            let value = self.connection.get(&path).await?.value;
            return self
                .patch(&path, &System::read(&path, &value).led_body(on))
                .await;
        }
        self.patch(&system.path, &body).await
    }

    /// Sets the asset tag. [`Session::refresh`] shows whether the BMC took it.
    ///
    /// # Errors
    /// The error of the BMC; [`RedfishError::Status`], without the BMC's message, if it refuses the
    /// tag or its systems have none.
    pub async fn set_asset_tag(&mut self, system: &System, tag: &str) -> Result<(), RedfishError> {
        let set = self.patch(&system.path, &json!({ "AssetTag": tag })).await;
        set.map_err(|error| match error {
            // BMCs quote the refused value, whole or cut. The tag may be a secret of the caller.
            RedfishError::Status { what, status, .. } => RedfishError::Status {
                what,
                status,
                message: "the BMC refuses it; its message may quote the tag".into(),
            },
            other => other,
        })
    }

    /// Changes a resource. BMCs that guard against lost updates require the `ETag` of the last read,
    /// so each change reads the resource first.
    async fn patch(&mut self, path: &str, body: &Value) -> Result<(), RedfishError> {
        let Answer { etag, .. } = self.connection.get(path).await?;
        self.connection.patch(path, body, etag).await.map(drop)
    }

    async fn manager(&mut self, path: &str) -> Result<Manager, RedfishError> {
        let value = self.connection.get(path).await?.value;
        let mut manager = Manager::read(&value);
        if let Some(interfaces) = link(&value["EthernetInterfaces"])
            && let Ok(members) = self.members(&interfaces).await
            && let Some(first) = members.first()
        {
            let interface = self.connection.get(first).await?.value;
            manager.mac = inventory::mac(&interface);
        }
        Ok(manager)
    }

    async fn members(&mut self, path: &str) -> Result<Vec<String>, RedfishError> {
        let value = self.connection.get(path).await?.value;
        let members = value["Members"].as_array();
        Ok(members
            .into_iter()
            .flatten()
            .filter_map(link)
            .take(MEMBERS_MAX)
            .collect())
    }

    /// Adds the allowable reset types, which some BMCs have in a resource of their own.
    async fn with_reset_values(&mut self, mut system: System) -> Result<System, RedfishError> {
        if system.reset_values.is_none()
            && let Some(path) = system.reset_info.clone()
        {
            let info = self.connection.get(&path).await?.value;
            let parameters = info["Parameters"].as_array();
            system.reset_values = parameters
                .into_iter()
                .flatten()
                .find(|p| text(p, "Name") == "ResetType")
                .and_then(|p| texts(p, "AllowableValues"));
        }
        Ok(system)
    }
}
