//! Writes texts, numbers and times as JSON.

use prost_types::Timestamp;

use super::Odd;

/// First and last second of a JSON timestamp: the years 1 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
const DAY_S: i64 = 86_400;
/// Digits of the largest number.
const DIGITS_MAX: usize = 20;

/// Writes a text in quotes, with JSON escapes.
pub(super) fn quote(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Odd> {
    // Most names and ids need no escape. This check reads several bytes at a time.
    let is_plain = |byte: u8| (0x20..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\');
    if bytes.iter().fold(true, |all, byte| all & is_plain(*byte)) {
        out.reserve(bytes.len() + 2);
        out.push(b'"');
        out.extend_from_slice(bytes);
        out.push(b'"');
        return Ok(());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Odd)?;
    serde_json::to_writer(out, text).map_err(|_| Odd)
}

/// Writes an unsigned integer.
pub(super) fn number(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; DIGITS_MAX];
    let mut at = DIGITS_MAX;
    loop {
        at -= 1;
        digits[at] = b'0' + digit(value);
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes a signed integer.
pub(super) fn signed(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    number(value.unsigned_abs(), out);
}

/// The last digit.
const fn digit(value: u64) -> u8 {
    (value % 10) as u8
}

/// Writes a number with leading zeros.
fn padded<const N: usize>(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; N];
    for place in digits.iter_mut().rev() {
        *place += digit(value);
        value /= 10;
    }
    out.extend_from_slice(&digits);
}

/// Writes an RFC 3339 timestamp in UTC, in quotes.
pub(super) fn time(at: &Timestamp, out: &mut Vec<u8>) -> Result<(), Odd> {
    let nanos = u64::try_from(at.nanos).map_err(|_| Odd)?;
    if !SECONDS.contains(&at.seconds) || nanos >= 1_000_000_000 {
        return Err(Odd);
    }
    let unsigned = |number: i64| u64::try_from(number).map_err(|_| Odd);
    let (year, month, day) = date(at.seconds.div_euclid(DAY_S));
    let second = unsigned(at.seconds.rem_euclid(DAY_S))?;
    out.push(b'"');
    padded::<4>(unsigned(year)?, out);
    out.push(b'-');
    padded::<2>(unsigned(month)?, out);
    out.push(b'-');
    padded::<2>(unsigned(day)?, out);
    out.push(b'T');
    padded::<2>(second / 3600, out);
    out.push(b':');
    padded::<2>(second / 60 % 60, out);
    out.push(b':');
    padded::<2>(second % 60, out);
    if nanos > 0 {
        out.push(b'.');
        if nanos % 1_000_000 == 0 {
            padded::<3>(nanos / 1_000_000, out);
        } else if nanos % 1000 == 0 {
            padded::<6>(nanos / 1000, out);
        } else {
            padded::<9>(nanos, out);
        }
    }
    out.extend_from_slice(b"Z\"");
    Ok(())
}

/// Year, month and day of a day number since 1970.
///
/// Years begin in March here, so that the leap day is the last day of its year.
const fn date(day: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    // Days from 1 March of the year 0 to 1970.
    let day = day + 719_468;
    let (era, of_era) = (
        day.div_euclid(DAYS_OF_400_YEARS),
        day.rem_euclid(DAYS_OF_400_YEARS),
    );
    let leap = of_era / 1460 - of_era / 36_524 + of_era / 146_096;
    let year_of_era = (of_era - leap) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, each group of five months has 153 days.
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let is_next_year = from_march >= 10;
    let month = if is_next_year {
        from_march - 9
    } else {
        from_march + 3
    };
    (era * 400 + year_of_era + is_next_year as i64, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_has_its_date() {
        // Each day of four centuries and of the ends, and the last second of it.
        let days = (-719_162..-718_000)
            .chain(-146_097..146_097)
            .chain(2_930_000..2_932_896);
        for (nth, day) in days.enumerate() {
            let at = Timestamp {
                seconds: day * DAY_S + [0, 86_399, 43_200][nth % 3],
                nanos: [0, 1, 500_000_000, 1000, 999_999_999][nth % 5],
            };
            let mut out = Vec::new();
            time(&at, &mut out).unwrap();
            assert_eq!(out, format!("\"{at}\"").into_bytes(), "{day}");
        }
    }

    #[test]
    fn numbers_are_written_whole() {
        for value in [0, 7, 10, 99, 100, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            number(value, &mut out);
            assert_eq!(out, value.to_string().into_bytes());
        }
        for value in [i64::MIN, -1, 0, i64::MAX] {
            let mut out = Vec::new();
            signed(value, &mut out);
            assert_eq!(out, value.to_string().into_bytes());
        }
    }
}
