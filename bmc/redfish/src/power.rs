//! Power consumption and power supplies of a machine. Without I/O.
//!
//! Two generations of resources report them: `Power` of a chassis, and since 2020.4
//! `PowerSubsystem` with `EnvironmentMetrics`, where a `Sensor` has the values of a period.

use serde_json::Value;

use crate::json::text;

/// Power supplies per chassis. Further ones are ignored.
pub const SUPPLIES_MAX: usize = 32;
/// Largest plausible power, W. A larger value counts as absent. A full rack of the densest machines
/// consumes a sixth of it.
const WATTS_MAX: f64 = 1_000_000.0;
/// Longest plausible interval, minutes: a year. A longer one counts as absent.
const MINUTES_MAX: f64 = 525_600.0;
/// Entries of `PowerControl` searched for values.
const CONTROLS_MAX: usize = 8;
/// Longest health or state, characters. The rest is cut. The schema's own values have at most 20.
const WORD_LEN_MAX: usize = 64;

/// Power over a period. All values are finite and not negative.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PowerMetric {
    pub average_w: f64,
    pub min_w: f64,
    pub max_w: f64,
    /// Length of the period, minutes. 0 means a momentary value or an unknown length.
    pub interval_min: f64,
}

/// One power supply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PowerSupply {
    /// `OK`, `Warning` or `Critical`. Empty means not reported.
    pub health: String,
    /// `Enabled`, `Absent` and so on. Empty means not reported.
    pub state: String,
}

/// Power consumption and supplies of one chassis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Power {
    /// `None` means that the BMC does not measure it.
    pub metric: Option<PowerMetric>,
    /// The power supplies, at most [`SUPPLIES_MAX`].
    pub supplies: Vec<PowerSupply>,
}

impl Power {
    /// Reads the resource `Power`.
    pub(crate) fn read(value: &Value) -> Self {
        let controls = value["PowerControl"].as_array().into_iter().flatten();
        let supplies = value["PowerSupplies"].as_array().into_iter().flatten();
        Self {
            metric: controls.take(CONTROLS_MAX).find_map(PowerMetric::read),
            supplies: supplies.take(SUPPLIES_MAX).map(PowerSupply::read).collect(),
        }
    }
}

impl PowerSupply {
    /// Reads the resource of a supply, or its entry in `Power`.
    pub(crate) fn read(value: &Value) -> Self {
        let word = |name| {
            text(&value["Status"], name)
                .chars()
                .take(WORD_LEN_MAX)
                .collect()
        };
        Self {
            health: word("Health"),
            state: word("State"),
        }
    }
}

impl PowerMetric {
    /// Reads an entry of `PowerControl`: the values of its period, else the momentary ones.
    fn read(control: &Value) -> Option<Self> {
        let metrics = &control["PowerMetrics"];
        let Some(average_w) = watts(&metrics["AverageConsumedWatts"]) else {
            return watts(&control["PowerConsumedWatts"]).map(Self::moment);
        };
        Some(Self {
            average_w,
            min_w: watts(&metrics["MinConsumedWatts"]).unwrap_or(average_w),
            max_w: watts(&metrics["MaxConsumedWatts"]).unwrap_or(average_w),
            interval_min: number(&metrics["IntervalInMin"], MINUTES_MAX).unwrap_or_default(),
        })
    }

    /// Reads a power `Sensor`: the values of its period, else the momentary ones.
    pub(crate) fn of_sensor(sensor: &Value) -> Option<Self> {
        let Some(average_w) = watts(&sensor["AverageReading"]) else {
            return watts(&sensor["Reading"]).map(Self::moment);
        };
        let interval = sensor["AveragingInterval"].as_str().and_then(minutes);
        Some(Self {
            average_w,
            min_w: watts(&sensor["LowestReading"]).unwrap_or(average_w),
            max_w: watts(&sensor["PeakReading"]).unwrap_or(average_w),
            interval_min: interval.unwrap_or_default(),
        })
    }

    fn moment(watts: f64) -> Self {
        Self {
            average_w: watts,
            min_w: watts,
            max_w: watts,
            interval_min: 0.0,
        }
    }
}

fn watts(value: &Value) -> Option<f64> {
    number(value, WATTS_MAX)
}

/// Reads a number from 0 to `max`. `None` means absent, not a number or out of range.
fn number(value: &Value, max: f64) -> Option<f64> {
    value.as_f64().filter(|number| (0.0..=max).contains(number))
}

/// Parses an ISO 8601 duration in Redfish's form, `P1DT2H3M4.5S`, to minutes. It has no years,
/// months or weeks.
fn minutes(text: &str) -> Option<f64> {
    let rest = text.strip_prefix('P')?;
    let (days, clock) = rest.split_once('T').unwrap_or((rest, ""));
    let mut total = 0.0;
    for (part, units) in [
        (days, &[('D', 1440.0)][..]),
        (clock, &[('H', 60.0), ('M', 1.0), ('S', 1.0 / 60.0)]),
    ] {
        let mut rest = part;
        for (unit, worth) in units {
            let Some((count, after)) = rest.split_once(*unit) else {
                continue;
            };
            let is_plain = count
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.');
            let count: f64 = count.parse().ok().filter(|_| is_plain)?;
            total += count * worth;
            rest = after;
        }
        if !rest.is_empty() {
            return None;
        }
    }
    (total <= MINUTES_MAX).then_some(total)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metric(average_w: f64, min_w: f64, max_w: f64, interval_min: f64) -> Option<PowerMetric> {
        Some(PowerMetric {
            average_w,
            min_w,
            max_w,
            interval_min,
        })
    }

    #[test]
    fn the_numbers_of_a_period_come_before_those_of_the_moment() {
        let control = |metrics: Value| json!({"PowerConsumedWatts": 210, "PowerMetrics": metrics});
        for (metrics, expected) in [
            (
                json!({"AverageConsumedWatts": 230.5, "MinConsumedWatts": 198,
                    "MaxConsumedWatts": 305.25, "IntervalInMin": 20}),
                metric(230.5, 198.0, 305.25, 20.0),
            ),
            (
                json!({"AverageConsumedWatts": 230, "MinConsumedWatts": null,
                    "MaxConsumedWatts": -1, "IntervalInMin": 1e300}),
                metric(230.0, 230.0, 230.0, 0.0),
            ),
            (json!(null), metric(210.0, 210.0, 210.0, 0.0)),
            (
                json!({"AverageConsumedWatts": "NaN"}),
                metric(210.0, 210.0, 210.0, 0.0),
            ),
        ] {
            assert_eq!(
                PowerMetric::read(&control(metrics.clone())),
                expected,
                "{metrics}"
            );
        }
        for nothing in [
            json!(null),
            json!({"PowerConsumedWatts": null}),
            json!([1]),
            json!({"PowerConsumedWatts": -5}),
            json!({"PowerConsumedWatts": 1e9}),
        ] {
            assert_eq!(PowerMetric::read(&nothing), None, "{nothing}");
        }
        let second = json!({"PowerControl": [{"Name": "limit"}, {"PowerConsumedWatts": 7}]});
        assert_eq!(Power::read(&second).metric, metric(7.0, 7.0, 7.0, 0.0));
    }

    #[test]
    fn sensors_tell_the_same_in_other_words() {
        let sensor = json!({"Reading": 210, "AverageReading": 230.5, "LowestReading": 198,
            "PeakReading": 305, "AveragingInterval": "PT20M"});
        assert_eq!(
            PowerMetric::of_sensor(&sensor),
            metric(230.5, 198.0, 305.0, 20.0)
        );
        let moment = json!({"Reading": 210.5, "PeakReading": 400});
        assert_eq!(
            PowerMetric::of_sensor(&moment),
            metric(210.5, 210.5, 210.5, 0.0)
        );
        assert_eq!(PowerMetric::of_sensor(&json!({"Reading": null})), None);
    }

    #[test]
    fn durations() {
        for (text, expected) in [
            ("PT20M", Some(20.0)),
            ("P1DT1H", Some(1500.0)),
            ("PT90S", Some(1.5)),
            ("P1D", Some(1440.0)),
            ("P9999D", None),
            ("P1Y", None),
            ("PT-5M", None),
            ("PTinfM", None),
            ("PT1M1H", None),
            ("20", None),
            ("", None),
        ] {
            assert_eq!(minutes(text), expected, "{text}");
        }
    }

    #[test]
    fn supplies_are_bounded_and_their_words_cut() {
        let one = json!({"Status": {"Health": "Critical", "State": "Enabled"}});
        let long = json!({"Status": {"Health": "x".repeat(5000), "State": null}});
        let mut list = vec![one, long, json!({"Status": null}), json!(3)];
        list.resize(100, json!({}));
        let read = Power::read(&json!({"PowerSupplies": list})).supplies;
        assert_eq!(read.len(), SUPPLIES_MAX);
        assert_eq!(
            (read[0].health.as_str(), read[0].state.as_str()),
            ("Critical", "Enabled")
        );
        assert_eq!(
            (read[1].health.len(), read[1].state.as_str()),
            (WORD_LEN_MAX, "")
        );
        assert_eq!(
            (&read[2], &read[3]),
            (&PowerSupply::default(), &PowerSupply::default())
        );
        assert_eq!(
            Power::read(&json!({"PowerSupplies": 1, "PowerControl": {}})),
            Power::default()
        );
    }

    #[test]
    fn fuzz_power() {
        bolero::check!().for_each(|bytes: &[u8]| {
            if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
                assert!(Power::read(&value).supplies.len() <= SUPPLIES_MAX);
                let metrics = [PowerMetric::read(&value), PowerMetric::of_sensor(&value)];
                for metric in metrics.into_iter().flatten() {
                    assert!((0.0..=WATTS_MAX).contains(&metric.average_w));
                }
            }
            let long = minutes(&String::from_utf8_lossy(bytes));
            assert!(long.is_none_or(|minutes| (0.0..=MINUTES_MAX).contains(&minutes)));
        });
    }
}
