//! Power consumption and power supplies: read within a bounded part of a reading, and converted to
//! the mesh's messages.

use std::time::Duration;

use bmc_ipmi::power::PowerReading;
use bmc_ipmi::sdr::SupplyStates;
use bmc_redfish::Power;
use proto_mesh::{PowerDraw, PowerMetric, PowerSupply};
use tokio::time::{Instant, timeout_at};

/// Time limit of this part of a reading.
const DRAW_TIME_MAX: Duration = Duration::from_secs(10);
/// Time reserved for the end of a reading: closing an IPMI session to a silent BMC takes 6 s.
const END_TIME: Duration = Duration::from_secs(7);

/// Reads power and supplies. `None` means that this failed or took too long; the rest of the reading
/// counts without them.
pub(super) async fn in_time<T, E: std::error::Error>(
    until: Instant,
    read: impl Future<Output = Result<T, E>>,
) -> Option<T> {
    let end = (Instant::now() + DRAW_TIME_MAX).min(until.checked_sub(END_TIME)?);
    match timeout_at(end, read).await {
        Ok(Ok(draw)) => Some(draw),
        Ok(Err(error)) => {
            tracing::debug!(%error, "power not read");
            None
        }
        Err(_) => {
            tracing::debug!("power not read in time");
            None
        }
    }
}

/// Converts Redfish's reading.
pub(super) fn of_redfish(power: Power) -> PowerDraw {
    let metric = power.metric.map(|metric| PowerMetric {
        average_mw: whole(metric.average_w * 1000.0),
        min_mw: whole(metric.min_w * 1000.0),
        max_mw: whole(metric.max_w * 1000.0),
        interval_ms: whole(metric.interval_min * 60_000.0),
    });
    let supplies = power.supplies.into_iter().map(|supply| PowerSupply {
        health: supply.health,
        state: supply.state,
    });
    PowerDraw {
        metric,
        supplies: supplies.collect(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the numbers are finite, bounded and not below 0"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// Converts DCMI's reading.
pub(super) fn of_dcmi(reading: PowerReading) -> PowerMetric {
    PowerMetric {
        average_mw: u64::from(reading.average_w) * 1000,
        min_mw: u64::from(reading.min_w) * 1000,
        max_mw: u64::from(reading.max_w) * 1000,
        interval_ms: reading.period_ms.into(),
    }
}

/// The states of a supply's sensors in Redfish's terms. `None` means that it has no reading.
pub(super) fn of_states(states: Option<SupplyStates>) -> PowerSupply {
    let (health, state) = match states {
        None => ("", ""),
        Some(states) if states.has_failed() => ("Critical", "Enabled"),
        Some(states) if states.has_lost_input() => ("Critical", "UnavailableOffline"),
        Some(states) if !states.is_present() => ("", "Absent"),
        Some(states) if states.has_warning() => ("Warning", "Enabled"),
        Some(states) if states.is_inactive() => ("OK", "StandbySpare"),
        Some(_) => ("OK", "Enabled"),
    };
    PowerSupply {
        health: health.to_owned(),
        state: state.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_become_the_words_of_redfish() {
        for (bits, health, state) in [
            (0x01, "OK", "Enabled"),
            (0x00, "", "Absent"),
            (0x03, "Critical", "Enabled"),
            (0x05, "Warning", "Enabled"),
            (0x09, "Critical", "UnavailableOffline"),
            (0x81, "OK", "StandbySpare"),
        ] {
            let told = of_states(SupplyStates::decode(&[0, 0xc0, bits]));
            assert_eq!((told.health.as_str(), told.state.as_str()), (health, state));
        }
        assert_eq!(of_states(None), PowerSupply::default());
    }

    #[test]
    fn watts_become_milliwatts() {
        let metric = bmc_redfish::PowerMetric {
            average_w: 230.5,
            min_w: 0.0,
            max_w: 305.2504,
            interval_min: 20.0,
        };
        let power = Power {
            metric: Some(metric),
            supplies: Vec::new(),
        };
        let expected = PowerMetric {
            average_mw: 230_500,
            min_mw: 0,
            max_mw: 305_250,
            interval_ms: 1_200_000,
        };
        assert_eq!(of_redfish(power).metric, Some(expected));
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_before_the_reading_does() {
        let began = Instant::now();
        let endless = || std::future::pending::<Result<(), std::io::Error>>();
        let long = began + Duration::from_secs(45);
        assert_eq!(in_time(long, endless()).await, None);
        assert_eq!(began.elapsed().as_secs(), DRAW_TIME_MAX.as_secs());
        let late = Instant::now() + Duration::from_secs(9);
        assert_eq!(in_time(late, endless()).await, None);
        assert!(
            late - Instant::now() > Duration::from_secs(6),
            "time to close"
        );
        let failed = async { Err::<(), _>(std::io::Error::other("no")) };
        assert_eq!(in_time(long, failed).await, None);
    }
}
