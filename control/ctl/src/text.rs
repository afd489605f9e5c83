//! Conversion between values and their short texts: ages, durations, byte counts, labels, enums.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use prost_types::Timestamp;
use proto_errors::IssueCode;
use proto_public::api::v2::{Labels, MachineIssue, Meta};

/// Parses the `NAME=VALUE` pairs of a repeated flag.
pub(crate) fn pairs(flags: &[String]) -> Result<HashMap<String, String>> {
    flags
        .iter()
        .map(|flag| {
            let (name, value) = flag
                .split_once('=')
                .with_context(|| format!("{flag:?} is not NAME=VALUE"))?;
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect()
}

/// Parses the labels of a repeated flag. `None` means the flag was not given.
pub(crate) fn labels(flags: &[String]) -> Result<Option<Labels>> {
    let labels = pairs(flags)?;
    Ok((!labels.is_empty()).then_some(Labels { labels }))
}

/// Labels on one line, sorted by name.
pub(crate) fn show_labels(meta: Option<&Meta>) -> String {
    let Some(labels) = meta.and_then(|meta| meta.labels.as_ref()) else {
        return String::new();
    };
    let mut pairs: Vec<String> = labels
        .labels
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.sort();
    pairs.join(",")
}

/// Percent-encodes text for the query of a URL (RFC 3986).
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Age of a moment in the largest fitting unit: `5m`, or `in 5m` for the future.
pub(crate) fn age(time: Option<&Timestamp>) -> String {
    let Some(time) = time.filter(|time| time.seconds > 0) else {
        return "-".into();
    };
    let passed = now_s() - time.seconds;
    if passed < 0 {
        format!("in {}", span(-passed))
    } else {
        span(passed)
    }
}

/// `true` if a moment is more than `seconds` ago, or unknown.
pub(crate) fn is_older(time: Option<&Timestamp>, seconds: i64) -> bool {
    time.is_none_or(|time| now_s().saturating_sub(time.seconds) > seconds)
}

/// The age of an object, by the creation time in its metadata.
pub(crate) fn meta_age(meta: Option<&Meta>) -> String {
    age(meta.and_then(|meta| meta.created_at.as_ref()))
}

fn span(seconds: i64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A moment as an RFC 3339 timestamp.
pub(crate) fn moment(time: Option<&Timestamp>) -> String {
    time.filter(|time| time.seconds > 0)
        .map_or_else(|| "-".into(), ToString::to_string)
}

/// Seconds since 1970, by the clock of this host.
pub(crate) fn now_s() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The moment that is `span` from now.
pub(crate) fn from_now(span: Duration) -> Timestamp {
    let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    Timestamp {
        seconds: now_s().saturating_add(seconds),
        nanos: 0,
    }
}

/// A byte count with a binary unit.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = count;
    let mut rest = 0;
    let mut unit = 0;
    while size >= 1024 && unit + 1 < UNITS.len() {
        rest = size % 1024;
        size /= 1024;
        unit += 1;
    }
    let tenth = rest * 10 / 1024;
    let unit = UNITS.get(unit).copied().unwrap_or_default();
    if tenth == 0 {
        format!("{size} {unit}")
    } else {
        format!("{size}.{tenth} {unit}")
    }
}

/// Parses a byte count: a number with an optional unit, decimal (K, M, G, T) or binary (Ki, Mi,
/// Gi, Ti).
pub(crate) fn parse_bytes(text: &str) -> Result<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number
        .parse()
        .with_context(|| format!("{text:?} is not a size"))?;
    let unit = unit.trim_end_matches(['B', 'b']).to_ascii_lowercase();
    let (base, power): (u64, u32) = match unit.as_str() {
        "" => (1, 0),
        "k" => (1000, 1),
        "m" => (1000, 2),
        "g" => (1000, 3),
        "t" => (1000, 4),
        "ki" => (1024, 1),
        "mi" => (1024, 2),
        "gi" => (1024, 3),
        "ti" => (1024, 4),
        _ => bail!("{text:?} has an unknown unit; use Ki, Mi, Gi or Ti"),
    };
    number
        .checked_mul(base.pow(power))
        .with_context(|| format!("{text:?} is too large"))
}

/// Parses a duration: `30s`, `10m`, `8h` or `7d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is not a duration like 90s, 10m, 8h or 30d");
    let (number, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .ok_or_else(bad)?;
    let number: u64 = number.parse().map_err(|_| bad())?;
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(bad()),
    };
    number
        .checked_mul(factor)
        .map(Duration::from_secs)
        .ok_or_else(bad)
}

/// Parses the short name of an enum's value, in any case, to its number.
pub(crate) fn enum_value(name: &str, text: &str) -> Result<i32> {
    let number = proto_public::enum_number(name, text).or_else(|| {
        // The contract defines no short names for roles: PROJECT_ROLE_OWNER is "owner" here.
        let descriptor = proto_public::pool().get_enum_by_name(name)?;
        let suffix = format!("_{}", text.to_ascii_uppercase());
        let value = descriptor
            .values()
            .find(|value| value.name().ends_with(&suffix))?;
        Some(value.number())
    });
    let number = number.filter(|number| *number != 0);
    let kind = name.rsplit('.').next().unwrap_or(name);
    let known = || -> String {
        let values = proto_public::pool().get_enum_by_name(name);
        let numbers = values.map(|all| all.values().map(|v| v.number()).collect::<Vec<_>>());
        let names = numbers
            .unwrap_or_default()
            .into_iter()
            .filter(|number| *number != 0);
        names
            .map(|number| enum_text(name, number).to_ascii_lowercase())
            .collect::<Vec<_>>()
            .join(", ")
    };
    ensure!(
        number.is_some(),
        "{text:?} is not a {kind}; the values are: {}",
        known()
    );
    Ok(number.unwrap_or_default())
}

/// The short name of an enum's value.
pub(crate) fn enum_text(name: &str, number: i32) -> String {
    if number == 0 {
        return "-".into();
    }
    proto_public::enum_string(name, number).unwrap_or_else(|| {
        let descriptor = proto_public::pool().get_enum_by_name(name);
        let value = descriptor.and_then(|all| all.get_value(number));
        let full = value.map_or_else(|| number.to_string(), |value| value.name().to_owned());
        full.rsplit('_')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    })
}

/// Replaces empty text by `-`.
pub(crate) fn or_dash(text: impl Into<String>) -> String {
    let text = text.into();
    if text.is_empty() { "-".into() } else { text }
}

/// The contract's enum of issues.
pub(crate) const ISSUE_TYPE: &str = "metalstack.api.v2.MachineIssueType";

/// The code of an issue. The contract's enum lacks the issues that metalmesh added; for those the
/// anchor of the reference URL is the code.
pub(crate) fn issue_code(issue: &MachineIssue) -> String {
    let (_, entry) = issue.reference_url.rsplit_once('#').unwrap_or_default();
    match IssueCode::of(entry) {
        Some(code) => code.to_string(),
        None => enum_text(ISSUE_TYPE, issue.r#type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_counts() {
        for (text, count) in [
            ("512", 512),
            ("1Ki", 1024),
            ("2GiB", 2 << 30),
            ("3G", 3_000_000_000),
        ] {
            assert_eq!(parse_bytes(text).unwrap(), count, "{text}");
        }
        assert!(parse_bytes("12X").is_err());
        assert!(parse_bytes("99999999999Ti").is_err());
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(2 << 30), "2 GiB");
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("10m"), Ok(Duration::from_secs(600)));
        for bad in ["", "m", "10", "10y", "\u{e4}"] {
            assert!(parse_duration(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn enums_by_short_name() {
        let role = "metalstack.api.v2.ProjectRole";
        assert_eq!(enum_value(role, "editor").unwrap(), 2);
        assert_eq!(
            enum_value("metalstack.api.v2.MachineState", "locked").unwrap(),
            2
        );
        assert!(
            enum_value(role, "king")
                .unwrap_err()
                .to_string()
                .contains("owner")
        );
        assert_eq!(enum_text(role, 1), "owner");
    }
}
