//! One rule of one field, and its check.

use prost_reflect::{EnumDescriptor, MapKey, Value};

use super::formats::length;
use super::walk::Found;

/// A rule as read from the descriptor.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    /// Least number of code points.
    MinLen(u64),
    /// Most code points.
    MaxLen(u64),
    /// A text format.
    Text(Format),
    /// The same format for each element of a list.
    EachText(Format),
    /// The same format for each key of a map.
    EachKey(Format),
    /// A number of the enum.
    Defined(EnumDescriptor),
    /// A whole number within bounds.
    Range(Range<i64>),
    /// A duration within bounds, in seconds and nanoseconds.
    Duration(Range<(i64, i32)>),
    /// A time in the past.
    Past,
    /// Least number of elements of a list.
    MinItems(u64),
    /// Most elements of a list.
    MaxItems(u64),
    /// No two equal elements.
    Unique,
}

/// A named check of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Format {
    /// Rule id of a violation.
    pub(super) id: &'static str,
    /// Rule id for an empty text, where the contract distinguishes it.
    pub(super) empty: Option<&'static str>,
    /// The message of a violation.
    pub(super) message: &'static str,
    /// The check.
    pub(super) check: fn(&str) -> bool,
}

/// Bounds of a number or duration; both inclusive ones and exclusive ones occur.
#[derive(Debug, Clone)]
pub(super) struct Range<T> {
    /// Rule id: `uint32.gt_lte`.
    pub(super) id: &'static str,
    /// Lower bound; `true` if it is inclusive.
    pub(super) low: Option<(T, bool)>,
    /// Upper bound; `true` if it is inclusive.
    pub(super) high: Option<(T, bool)>,
    /// The message of a violation.
    pub(super) message: String,
}

impl<T: PartialOrd> Range<T> {
    fn excludes(&self, value: Option<T>) -> bool {
        value.is_some_and(|value| !self.contains(&value))
    }

    fn contains(&self, value: &T) -> bool {
        let above = |(low, included): &(T, bool)| value > low || (*included && value == low);
        let below = |(high, included): &(T, bool)| value < high || (*included && value == high);
        self.low.as_ref().is_none_or(above) && self.high.as_ref().is_none_or(below)
    }
}

impl Rule {
    /// Checks a value and reports its violations.
    pub(super) fn check(&self, value: &Value, found: &mut Found) {
        match (self, value) {
            (Self::MinLen(min), Value::String(text)) if length(text) < *min => {
                found.report(
                    "string.min_len",
                    format!("must be at least {min} characters"),
                );
            }
            (Self::MaxLen(max), Value::String(text)) if length(text) > *max => {
                found.report(
                    "string.max_len",
                    format!("must be at most {max} characters"),
                );
            }
            (Self::Text(format), Value::String(text)) => format.check(text, found),
            (Self::EachText(format), Value::List(list)) => {
                let bad = |v: &Value| !v.as_str().is_some_and(format.check);
                if list.iter().any(bad) {
                    found.report(format.id, format.message.to_owned());
                }
            }
            (Self::EachKey(format), Value::Map(map)) => {
                let bad = |k: &MapKey| !k.as_str().is_some_and(format.check);
                if map.keys().any(bad) {
                    found.report(format.id, format.message.to_owned());
                }
            }
            (Self::Defined(of), Value::EnumNumber(n)) if of.get_value(*n).is_none() => {
                let message = format!("{n} is no value of {}", of.name());
                found.report("enum.defined_only", message);
            }
            (Self::Range(range), value) if range.excludes(whole(value)) => {
                found.report(range.id, range.message.clone());
            }
            (Self::Duration(range), value) if range.excludes(time(value)) => {
                found.report(range.id, range.message.clone());
            }
            (Self::Past, value) if time(value).is_some_and(|time| time >= found.now()) => {
                found.report("timestamp.lt_now", "must be in the past".to_owned());
            }
            (Self::MinItems(min), Value::List(list)) if (list.len() as u64) < *min => {
                found.report(
                    "repeated.min_items",
                    format!("must have at least {min} items"),
                );
            }
            (Self::MaxItems(max), Value::List(list)) if list.len() as u64 > *max => {
                found.report(
                    "repeated.max_items",
                    format!("must have at most {max} items"),
                );
            }
            (Self::Unique, Value::List(list)) if !unique(list) => {
                found.report(
                    "repeated.unique",
                    "must not have the same item twice".to_owned(),
                );
            }
            _ => {}
        }
    }
}

impl Format {
    fn check(&self, text: &str, found: &mut Found) {
        match self.empty {
            Some(id) if text.is_empty() => {
                found.report(id, format!("must not be empty: {}", self.message));
            }
            _ if !(self.check)(text) => found.report(self.id, self.message.to_owned()),
            _ => {}
        }
    }
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::I32(n) => Some(i64::from(*n)),
        Value::U32(n) => Some(i64::from(*n)),
        _ => None,
    }
}

/// Seconds and nanoseconds of a timestamp or duration.
fn time(value: &Value) -> Option<(i64, i32)> {
    let message = value.as_message()?;
    let seconds = message.get_field_by_name("seconds")?.as_i64()?;
    let nanos = message.get_field_by_name("nanos")?.as_i32()?;
    Some((seconds, nanos))
}

/// Only lists of texts and enums have this rule. Sorting keeps long lists cheap.
fn unique(list: &[Value]) -> bool {
    let mut texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    let mut numbers: Vec<i32> = list.iter().filter_map(Value::as_enum_number).collect();
    texts.sort_unstable();
    numbers.sort_unstable();
    texts.windows(2).all(|w| w[0] != w[1]) && numbers.windows(2).all(|w| w[0] != w[1])
}
