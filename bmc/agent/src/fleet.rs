//! All BMCs with their last readings.

use std::collections::BTreeMap;
use std::net::IpAddr;

use parking_lot::{Mutex, MutexGuard};
use proto_mesh::BmcStatus;
use proto_types::MachineId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::config::{Speech, Target};
use crate::driver::{DriveError, Power, Reading};
use crate::look::Look;

/// BMCs taken from control's candidates. Further ones are ignored.
pub(crate) const CANDIDATES_MAX: usize = 10_000;

/// All BMCs, shared by discovery and orders.
#[derive(Debug)]
pub(crate) struct Fleet {
    listed: Vec<Target>,
    speech: Speech,
    inner: Mutex<Inner>,
    /// Notified to request a reading of all BMCs now.
    pub(crate) look: Notify,
    /// Notified when a status changed that control should receive.
    pub(crate) tell: Notify,
    /// Notifies all waiters when a round of readings is over.
    pub(crate) looked: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    candidates: BTreeMap<IpAddr, String>,
    looks: BTreeMap<IpAddr, Look>,
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
        self.inner.lock()
    }

    /// Replaces control's candidates. Readings of removed ones are dropped.
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

    /// Records the result of a reading.
    pub(crate) fn record(&self, address: IpAddr, result: Result<Reading, DriveError>) {
        let mut inner = self.inner();
        let look = inner.looks.entry(address).or_default();
        look.observed = Some(Instant::now());
        match result {
            Ok(reading) => look.set_reading(reading),
            Err(error) => look.error = error.to_string(),
        }
    }

    /// Number of BMCs whose last reading succeeded.
    pub(crate) fn reached(&self) -> usize {
        let targets = self.targets();
        let inner = self.inner();
        let looks = targets
            .iter()
            .filter_map(|target| inner.looks.get(&target.address));
        looks.filter(|look| look.is_read()).count()
    }

    /// Records the power state after an order.
    pub(crate) fn set_power(&self, address: IpAddr, power: Power) {
        if let Some(look) = self.inner().looks.get_mut(&address) {
            look.observed = Some(Instant::now());
            if let Some(reading) = &mut look.reading {
                reading.power = power;
            }
        }
        self.tell.notify_one();
    }

    /// The possible BMCs of a machine: the configured one, else all that report its UUID in any byte
    /// order.
    fn claimants(&self, machine: MachineId) -> Vec<Target> {
        let mut targets = self.targets();
        if targets.iter().any(|target| target.machine == Some(machine)) {
            targets.retain(|target| target.machine == Some(machine));
            return targets;
        }
        let inner = self.inner();
        targets.retain(|target| {
            let look = inner.looks.get(&target.address);
            let reading = look.and_then(|look| look.reading.as_ref());
            target.machine.is_none()
                && reading.is_some_and(|reading| reading.machines.contains(&machine))
        });
        targets
    }

    /// The BMC of a machine. `None` if no BMC or more than one reports it, or if it differs from the
    /// one that control believes: a wrong guess would power off another machine.
    pub(crate) fn find(&self, machine: MachineId, believed: Option<IpAddr>) -> Option<Target> {
        let mut claimants = self.claimants(machine);
        let only = claimants.pop()?;
        let is_believed = believed.is_none_or(|address| address == only.address);
        (claimants.is_empty() && is_believed).then_some(only)
    }

    /// The reason why a machine has no BMC, for the operator.
    pub(crate) fn explain(&self, machine: MachineId, believed: Option<IpAddr>) -> String {
        let claimants = self.claimants(machine);
        let addresses: Vec<String> = claimants
            .iter()
            .map(|target| target.address.to_string())
            .collect();
        match (claimants.as_slice(), believed) {
            ([], _) => self.explain_absence(machine),
            ([one], Some(believed)) if one.address != believed => format!(
                "the BMC at {} claims machine {machine}, but the one at {believed} is confirmed: \
                 metalmesh machine confirm-bmc",
                one.address
            ),
            _ => format!(
                "more than one BMC claims machine {machine}, none is ordered about: {}",
                addresses.join(" and ")
            ),
        }
    }

    fn explain_absence(&self, machine: MachineId) -> String {
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

    /// The statuses for control, one per BMC that was read.
    pub(crate) fn statuses(&self) -> Vec<BmcStatus> {
        let targets = self.targets();
        let inner = self.inner();
        let status = |target: &Target| {
            let look = inner.looks.get(&target.address)?;
            let candidate = inner.candidates.get(&target.address);
            let mut status = status(target, look, candidate);
            // The operator has configured this machine's BMC. Reports of other BMCs do not count.
            let is_configured = |id: &str| {
                let listed = self.listed.iter().filter_map(|listed| listed.machine);
                listed.into_iter().any(|machine| machine.to_string() == id)
            };
            if target.machine.is_none() && is_configured(&status.machine_uuid) {
                status.machine_uuid.clear();
            }
            Some(status)
        };
        targets.iter().filter_map(status).collect()
    }
}

fn status(target: &Target, look: &Look, mac: Option<&String>) -> BmcStatus {
    let reading = look.reading.clone().unwrap_or_default();
    let machine = target.machine.or_else(|| reading.machines.first().copied());
    let failed = !look.error.is_empty();
    let age = look.observed.map(|at| at.elapsed()).unwrap_or_default();
    let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
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
        age_ms,
        user: reading.user,
        draw: look.draw(),
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
    fn a_bmc_is_reached_while_its_last_reading_succeeds() {
        let fleet = fleet();
        let silent = || Err(DriveError::Unreached("silent".into()));
        assert_eq!(fleet.reached(), 0, "none was read yet");
        fleet.record(address(1), reading(&[machine(1)]));
        fleet.record(address(2), silent());
        assert_eq!(fleet.reached(), 1);
        fleet.record(address(1), silent());
        assert_eq!(fleet.reached(), 0);
    }

    #[test]
    fn a_machine_that_two_bmcs_claim_has_none() {
        let fleet = fleet();
        fleet.set_candidates([(address(3), "mac".into())].into());
        fleet.record(address(1), reading(&[machine(1)]));
        let found = |believed| fleet.find(machine(1), believed).map(|t| t.address);
        assert_eq!(found(None), Some(address(1)));
        assert_eq!(found(Some(address(1))), Some(address(1)));
        assert_eq!(found(Some(address(3))), None, "it is not the one confirmed");
        let why = fleet.explain(machine(1), Some(address(3)));
        assert!(why.contains("confirm-bmc"), "{why}");
        // A second BMC claims the machine too, as its only candidate or as its second one.
        for claim in [vec![machine(1)], vec![machine(7), machine(1)]] {
            fleet.record(address(3), reading(&claim));
            for believed in [None, Some(address(1)), Some(address(3))] {
                assert_eq!(found(believed), None);
                let why = fleet.explain(machine(1), believed);
                assert!(why.contains("10.0.0.1 and 10.0.0.3"), "{why}");
            }
        }
        let told = fleet.statuses();
        assert_eq!(told.len(), 2, "control is told of both");
        // The static list of the operator takes precedence over the claim of a BMC.
        fleet.record(address(3), reading(&[machine(9)]));
        assert_eq!(
            fleet.find(machine(9), None).map(|t| t.address),
            Some(address(2))
        );
        let told = fleet.statuses();
        let third = told
            .iter()
            .find(|status| status.address.contains("10.0.0.3"));
        assert_eq!(third.unwrap().machine_uuid, "");
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
        fleet.record(address(1), reading(&[machine(1), machine(3)]));
        fleet.record(address(2), reading(&[machine(2)]));
        fleet.record(address(3), reading(&[machine(3)]));
        let found = |n| fleet.find(machine(n), None).map(|t| t.address);
        assert_eq!(found(1), Some(address(1)));
        assert_eq!(found(9), Some(address(2)));
        assert_eq!(found(2), None, "its configuration says otherwise");
        assert_eq!(found(3), None, "two claim it");
        let why = fleet.explain(machine(7), None);
        assert!(why.contains("none of the 3 BMCs"), "{why}");
        fleet.set_candidates(BTreeMap::new());
        assert_eq!(found(3), Some(address(1)), "the unclear one");
    }

    #[test]
    fn a_bmc_that_fell_silent_keeps_its_machine_and_tells_the_error() {
        let fleet = fleet();
        fleet.record(address(1), reading(&[machine(1)]));
        fleet.record(
            address(1),
            Err(DriveError::Unreached("IPMI at x: silent".into())),
        );
        let statuses = fleet.statuses();
        assert_eq!(statuses.len(), 1, "only those that were looked at");
        let status = &statuses[0];
        assert_eq!(status.machine_uuid, machine(1).to_string());
        assert_eq!(status.power_state, "unknown");
        assert_eq!(status.error, "IPMI at x: silent");
        assert!(fleet.find(machine(1), None).is_some());
    }
}
