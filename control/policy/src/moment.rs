//! The time of a call, in UTC.

use std::sync::LazyLock;

use regorus::Value;

use crate::wants::WantedFields;

/// A point in time, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the Unix epoch.
    pub ms: u64,
}

/// Days of the week, beginning with that of the Unix epoch.
static DAYS: LazyLock<[Value; 7]> = LazyLock::new(|| {
    [
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "monday",
        "tuesday",
        "wednesday",
    ]
    .map(Value::from)
});

impl Moment {
    /// Year, month and day of the month.
    fn date(self) -> (u64, u64, u64) {
        // Years begin in March here, in eras of 400 years: a leap day is then the last day of its
        // year and does not shift the days of the months before it.
        let days = self.days() + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let shifted = (5 * day + 2) / 153;
        let month = if shifted < 10 {
            shifted + 3
        } else {
            shifted - 9
        };
        let year = era * 400 + year + u64::from(month <= 2);
        (year, month, day - (153 * shifted + 2) / 5 + 1)
    }

    /// Whole days since the Unix epoch.
    const fn days(self) -> u64 {
        self.ms / 86_400_000
    }

    /// The part `time` of the input document.
    pub(crate) fn document(self, wanted: &WantedFields) -> Value {
        let all = ["date", "hour", "minute", "unix", "weekday"];
        wanted.select(&all, |name| match name {
            "date" => {
                let (year, month, day) = self.date();
                Some(Value::from(format!("{year:04}-{month:02}-{day:02}")))
            }
            "hour" => Some(Value::from(self.ms / 3_600_000 % 24)),
            "minute" => Some(Value::from(self.ms / 60_000 % 60)),
            "unix" => Some(Value::from(self.ms / 1000)),
            "weekday" => {
                let weekday = usize::try_from(self.days() % 7).ok()?;
                DAYS.get(weekday).cloned()
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_dates() {
        for (s, date, weekday, hour) in [
            (0, "1970-01-01", "thursday", 0),
            (951_782_399, "2000-02-28", "monday", 23),
            (951_782_400, "2000-02-29", "tuesday", 0),
            (1_795_294_800, "2026-11-21", "saturday", 21),
            (4_107_542_400, "2100-03-01", "monday", 0),
        ] {
            let shown = Moment { ms: s * 1000 }.document(&WantedFields::All);
            assert_eq!(shown["date"], Value::from(date), "{s}");
            assert_eq!(shown["weekday"], Value::from(weekday), "{s}");
            assert_eq!(shown["hour"], Value::from(hour), "{s}");
        }
    }
}
