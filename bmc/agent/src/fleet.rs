//! The BMCs there are, and what was last read of each.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use proto_mesh::BmcStatus;
use proto_types::MachineId;
use tokio::sync::Notify;

use crate::config::{Speech, Target};
use crate::driver::{DriveError, Power, Reading};

/// BMCs taken from control's candidates at most.
pub(crate) const CANDIDATES_MAX: usize = 10_000;

/// All BMCs, shared by discovery and orders.
#[derive(Debug)]
pub(crate) struct Fleet {
    listed: Vec<Target>,
    speech: Speech,
    inner: Mutex<Inner>,
    /// Rings when somebody wants the BMCs looked at now.
    pub(crate) look: Notify,
    /// Rings when what is known changed and control should hear of it.
    pub(crate) tell: Notify,
    /// Rings for all who wait when a round of looks is over.
    pub(crate) looked: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    candidates: BTreeMap<IpAddr, String>,
    looks: BTreeMap<IpAddr, Look>,
}

/// The last look at a BMC, and the last good one.
#[derive(Debug, Default, Clone)]
struct Look {
    reading: Option<Reading>,
    error: String,
    observed_ms: u64,
}

impl Fleet {
    pub(crate) fn new(listed: Vec<Target>, speech: Speech) -> Self {
        Self {
            listed,
            speech,
            inner: Mutex::default(),
            look: Notify::new(),
            tell: Notify::new(),
            looked: Notify::new(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes control's candidates; those that are gone are forgotten.
    pub(crate) fn set_candidates(&self, candidates: BTreeMap<IpAddr, String>) {
        let mut inner = self.inner();
        if inner.candidates == candidates {
            return;
        }
        inner.candidates = candidates;
        let Inner { candidates, looks } = &mut *inner;
        looks.retain(|address, _| {
            candidates.contains_key(address) || self.listed.iter().any(|t| t.address == *address)
        });
        drop(inner);
        self.look.notify_one();
    }

    /// All BMCs: the list first, then the candidates that it does not name.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let inner = self.inner();
        let found = inner
            .candidates
            .keys()
            .filter(|a| !self.is_listed(**a))
            .map(|address| Target {
                address: *address,
                speech: self.speech.clone(),
                machine: None,
            });
        self.listed.iter().cloned().chain(found).collect()
    }

    fn is_listed(&self, address: IpAddr) -> bool {
        self.listed.iter().any(|target| target.address == address)
    }

    /// Notes what a look brought.
    pub(crate) fn record(
        &self,
        address: IpAddr,
        result: Result<Reading, DriveError>,
        observed_ms: u64,
    ) {
        let mut inner = self.inner();
        let look = inner.looks.entry(address).or_default();
        look.observed_ms = observed_ms;
        match result {
            Ok(reading) => {
                look.reading = Some(reading);
                look.error.clear();
            }
            Err(error) => look.error = error.to_string(),
        }
    }

    /// Notes the power after an order.
    pub(crate) fn set_power(&self, address: IpAddr, power: Power, observed_ms: u64) {
        if let Some(look) = self.inner().looks.get_mut(&address) {
            look.observed_ms = observed_ms;
            if let Some(reading) = &mut look.reading {
                reading.power = power;
            }
        }
        self.tell.notify_one();
    }

    /// The BMC of a machine: as configured, else as the BMC tells; a BMC that tells its UUID in
    /// an unclear order of bytes counts when no other claims the machine.
    pub(crate) fn find(&self, machine: MachineId) -> Option<Target> {
        let targets = self.targets();
        let inner = self.inner();
        let told = |target: &&Target, rank: fn(&[MachineId]) -> &[MachineId]| {
            target.machine.is_none()
                && inner
                    .looks
                    .get(&target.address)
                    .and_then(|look| look.reading.as_ref())
                    .is_some_and(|reading| rank(&reading.machines).contains(&machine))
        };
        targets
            .iter()
            .find(|t| t.machine == Some(machine))
            .or_else(|| {
                targets
                    .iter()
                    .find(|t| told(t, |all| all.get(..1).unwrap_or_default()))
            })
            .or_else(|| targets.iter().find(|t| told(t, |all| all)))
            .cloned()
    }

    /// Why a machine has no BMC, for the admin.
    pub(crate) fn explain(&self, machine: MachineId) -> String {
        let targets = self.targets();
        let inner = self.inner();
        let errors: Vec<String> = targets
            .iter()
            .filter_map(|t| inner.looks.get(&t.address))
            .filter(|look| !look.error.is_empty())
            .map(|look| look.error.clone())
            .take(3)
            .collect();
        let unread = if errors.is_empty() {
            String::new()
        } else {
            format!("; {}", errors.join("; "))
        };
        format!(
            "none of the {} BMCs here is that of machine {machine}{unread}",
            targets.len()
        )
    }

    /// What control is told, one status a BMC that was looked at.
    pub(crate) fn statuses(&self) -> Vec<BmcStatus> {
        let targets = self.targets();
        let inner = self.inner();
        let status = |target: &Target| {
            let look = inner.looks.get(&target.address)?;
            let candidate = inner.candidates.get(&target.address);
            Some(status(target, look, candidate))
        };
        targets.iter().filter_map(status).collect()
    }
}

fn status(target: &Target, look: &Look, mac: Option<&String>) -> BmcStatus {
    let reading = look.reading.clone().unwrap_or_default();
    let machine = target.machine.or_else(|| reading.machines.first().copied());
    let failed = !look.error.is_empty();
    let port = if reading.port == 0 {
        target.speech.ipmi_port
    } else {
        reading.port
    };
    BmcStatus {
        machine_uuid: machine.map(|id| id.to_string()).unwrap_or_default(),
        address: std::net::SocketAddr::new(target.address, port).to_string(),
        mac: if reading.mac.is_empty() {
            mac.cloned().unwrap_or_default()
        } else {
            reading.mac
        },
        interface: reading.interface.to_owned(),
        bmc_version: reading.bmc_version,
        bios_version: reading.bios_version,
        bios_vendor: String::new(),
        power_state: if failed {
            Power::Unknown
        } else {
            reading.power
        }
        .as_str()
        .to_owned(),
        led_state: if failed { "" } else { reading.led }.to_owned(),
        fru: Some(reading.fru),
        error: look.error.clone(),
        observed_ms: look.observed_ms,
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Interface;

    use super::*;

    fn speech() -> Speech {
        Speech {
            interface: Interface::Ipmi,
            redfish_port: 443,
            ipmi_port: 623,
            trust: None,
            efi: false,
        }
    }

    fn address(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    fn machine(n: u8) -> MachineId {
        format!("6f1c0001-0000-4000-8000-0000000000{n:02x}")
            .parse()
            .unwrap()
    }

    fn fleet() -> Fleet {
        let listed = |n, machine| Target {
            address: address(n),
            speech: speech(),
            machine,
        };
        Fleet::new(vec![listed(1, None), listed(2, Some(machine(9)))], speech())
    }

    fn reading(machines: &[MachineId]) -> Result<Reading, DriveError> {
        let machines = machines.to_vec();
        Ok(Reading {
            machines,
            power: Power::On,
            port: 623,
            ..Reading::default()
        })
    }

    #[test]
    fn a_machine_is_found_by_configuration_then_by_what_its_bmc_tells() {
        let fleet = fleet();
        fleet.set_candidates([(address(3), "mac".into()), (address(1), String::new())].into());
        assert_eq!(
            fleet.targets().len(),
            3,
            "a listed one is no second one as candidate"
        );
        fleet.record(address(1), reading(&[machine(1), machine(3)]), 5);
        fleet.record(address(2), reading(&[machine(2)]), 5);
        fleet.record(address(3), reading(&[machine(3)]), 5);
        let found = |n| fleet.find(machine(n)).map(|t| t.address);
        assert_eq!(found(1), Some(address(1)));
        assert_eq!(found(9), Some(address(2)));
        assert_eq!(found(2), None, "its configuration says otherwise");
        assert_eq!(found(3), Some(address(3)), "the first UUID counts for more");
        assert!(fleet.explain(machine(7)).contains("none of the 3 BMCs"));
        fleet.set_candidates(BTreeMap::new());
        assert_eq!(found(3), Some(address(1)), "the unclear one");
    }

    #[test]
    fn a_bmc_that_fell_silent_keeps_its_machine_and_tells_the_error() {
        let fleet = fleet();
        fleet.record(address(1), reading(&[machine(1)]), 5);
        fleet.record(
            address(1),
            Err(DriveError::Unreached("IPMI at x: silent".into())),
            9,
        );
        let statuses = fleet.statuses();
        assert_eq!(statuses.len(), 1, "only those that were looked at");
        let status = &statuses[0];
        assert_eq!(status.machine_uuid, machine(1).to_string());
        assert_eq!(
            (status.power_state.as_str(), status.observed_ms),
            ("unknown", 9)
        );
        assert_eq!(status.error, "IPMI at x: silent");
        assert!(fleet.find(machine(1)).is_some());
    }
}
