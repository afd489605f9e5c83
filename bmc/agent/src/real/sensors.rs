//! Power over IPMI: DCMI's reading, and the sensors of the power supplies.
//!
//! The sensors are found once, by a walk through all of the BMC's records. A reading after that
//! takes two requests and one per sensor. A walk that exceeds the time of one reading continues in
//! the next.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bmc_ipmi::sdr::{Repository, SensorWalk, SupplySensor, SupplyStates};
use bmc_ipmi::{IpmiError, Session};
use parking_lot::{Mutex, MutexGuard};
use proto_mesh::{PowerDraw, PowerSupply};
use tokio::time::Instant;

use super::draw;

/// BMCs whose sensors are kept in memory. Beyond it another BMC's are found again.
const BMCS_MAX: usize = 20_000;
/// Shortest time between two walks of a BMC whose records changed: some change them all the time.
const WALK_AGAIN: Duration = Duration::from_secs(10 * 60);
/// "Requested sensor, data, or record not present" (specification, table 5-2).
const NOT_PRESENT: u8 = 0xcb;

/// The sensors of each BMC that was read.
#[derive(Debug, Default)]
pub(super) struct SensorCache(Mutex<BTreeMap<SocketAddr, Sensors>>);

/// The sensors of one BMC's power supplies.
#[derive(Debug)]
pub(super) struct Sensors {
    /// State of the repository when the walk began.
    repository: Repository,
    since: Instant,
    walk: SensorWalk,
}

impl SensorCache {
    fn inner(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Sensors>> {
        self.0.lock()
    }

    /// Takes the known sensors of a BMC out, for the time of one reading.
    pub(super) fn take(&self, address: SocketAddr) -> Option<Sensors> {
        self.inner().remove(&address)
    }

    pub(super) fn put(&self, address: SocketAddr, sensors: Sensors) {
        let mut inner = self.inner();
        if inner.len() >= BMCS_MAX {
            inner.pop_first();
        }
        inner.insert(address, sensors);
    }
}

impl Sensors {
    fn new(repository: Repository) -> Self {
        Self {
            repository,
            since: Instant::now(),
            walk: SensorWalk::default(),
        }
    }

    fn is_of(&self, repository: Repository) -> bool {
        self.repository == repository || self.since.elapsed() < WALK_AGAIN
    }
}

/// Reads power and supplies. `sensors` has the known sensors of the BMC and is updated even if the
/// reading fails.
pub(super) async fn read(
    session: &mut Session,
    sensors: &mut Option<Sensors>,
) -> Result<PowerDraw, IpmiError> {
    let metric = told(session.power_reading().await)?.flatten();
    Ok(PowerDraw {
        metric: metric.map(draw::of_dcmi),
        supplies: supplies(session, sensors).await?,
    })
}

async fn supplies(
    session: &mut Session,
    sensors: &mut Option<Sensors>,
) -> Result<Vec<PowerSupply>, IpmiError> {
    let Some(repository) = told(session.repository().await)? else {
        return Ok(Vec::new());
    };
    let known = sensors.take().filter(|known| known.is_of(repository));
    let known = sensors.insert(known.unwrap_or_else(|| Sensors::new(repository)));
    told(session.walk_sensors(&mut known.walk).await)?;
    let mut supplies = Vec::new();
    for sensor in known.walk.sensors() {
        let states = match session.supply_states(*sensor).await {
            Err(IpmiError::Completion {
                code: NOT_PRESENT, ..
            }) => Some(SupplyStates::default()),
            other => told(other)?.flatten(),
        };
        merge(&mut supplies, *sensor, states);
    }
    let states = supplies.into_iter().map(|(_, states)| states);
    Ok(states.map(draw::of_states).collect())
}

/// Merges the states of several sensors of one supply.
fn merge(
    supplies: &mut Vec<(Option<u8>, Option<SupplyStates>)>,
    sensor: SupplySensor,
    states: Option<SupplyStates>,
) {
    let same = |(supply, _): &&mut (Option<u8>, _)| supply.is_some() && *supply == sensor.supply;
    match supplies.iter_mut().find(same) {
        Some((_, known)) => {
            *known = match (*known, states) {
                (Some(known), Some(states)) => Some(known.and(states)),
                (known, states) => known.or(states),
            }
        }
        None => supplies.push((sensor.supply, states)),
    }
}

/// `None` means that the BMC does not support the request. A silent or busy BMC is an error and is
/// asked again next time.
fn told<T>(result: Result<T, IpmiError>) -> Result<Option<T>, IpmiError> {
    match result {
        Ok(told) => Ok(Some(told)),
        // Busy, timed out, in the middle of an update or a start (table 5-2).
        Err(
            error @ IpmiError::Completion {
                code: 0xc0 | 0xc3 | 0xce..=0xd3,
                ..
            },
        ) => Err(error),
        Err(IpmiError::Completion { .. } | IpmiError::Malformed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_sensors_of_one_supply_are_one_supply() {
        let states = |bits| SupplyStates::decode(&[0, 0xc0, bits]);
        let sensor = |number, supply| SupplySensor { number, supply };
        let mut supplies = Vec::new();
        for (sensor, states) in [
            (sensor(1, Some(1)), states(0x01)),
            (sensor(2, Some(2)), None),
            (sensor(3, Some(1)), states(0x08)),
            (sensor(4, Some(2)), states(0x01)),
            (sensor(5, None), states(0x01)),
            (sensor(6, None), None),
        ] {
            merge(&mut supplies, sensor, states);
        }
        let expected = [states(0x09), states(0x01), states(0x01), None];
        let merged: Vec<_> = supplies.into_iter().map(|(_, states)| states).collect();
        assert_eq!(merged, expected);
    }

    #[test]
    fn a_bmc_that_has_no_such_thing_is_told_from_one_that_is_busy() {
        let what = "x";
        let ends = |code| told::<()>(Err(IpmiError::Completion { what, code }));
        for code in [0xc1, 0xc2, 0xcb, 0xcc, 0xd4] {
            assert!(matches!(ends(code), Ok(None)), "{code:#x}");
        }
        for code in [0xc0, 0xc3, 0xd1, 0xd2] {
            assert!(ends(code).is_err(), "{code:#x}");
        }
        assert!(told::<()>(Err(IpmiError::Silent { what, tries: 1 })).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_of_a_bmc_is_bounded_and_grows_old() {
        let cache = SensorCache::default();
        let one = Repository::default();
        let other = Repository { records: 1, ..one };
        let address = |n: usize| SocketAddr::from(([10, 0, 0, 1], u16::try_from(n).unwrap()));
        for n in 0..BMCS_MAX + 10 {
            cache.put(address(n), Sensors::new(one));
        }
        assert_eq!(cache.inner().len(), BMCS_MAX);
        let known = cache.take(address(BMCS_MAX)).unwrap();
        assert!(cache.take(address(BMCS_MAX)).is_none());
        assert!(known.is_of(one) && known.is_of(other));
        tokio::time::advance(WALK_AGAIN).await;
        assert!(known.is_of(one) && !known.is_of(other));
    }
}
