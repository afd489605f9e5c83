//! Converts between the contract's messages and the state's objects, both ways.
//!
//! Invariants:
//! - conversions are pure functions: they read tables and use neither clock nor network;
//! - text that cannot be parsed is `invalid_argument` with the name of its field, never a default;
//! - UNSPECIFIED is refused where a request must choose ([`chosen`]), and does not filter in a query
//!   ([`is_choice`]);
//! - a [`Viewer`](machine_history::Viewer) that is a tenant sees no event from before its
//!   allocation.

pub mod audit;
pub mod catalog;
pub mod claim;
pub mod claim_spec;
pub mod component;
pub mod enums;
pub mod fabric;
pub mod firewall;
mod firewall_content;
pub mod firewall_status;
pub mod invite;
pub mod join;
pub mod layout;
pub mod lease;
pub mod machine;
mod machine_allocation;
mod machine_bmc;
pub mod machine_history;
pub mod machine_query;
pub mod network;
pub mod node_allocation;
pub mod policy;
pub mod pool;
pub mod quota;
pub mod reservation;
pub mod ssh_key;
pub mod switch;
pub mod task;
pub mod tenancy;
pub mod token;
pub mod vpn_key;

use std::fmt::{self, Display, Write as _};
use std::str::FromStr;

use control_gate::refusal::invalid;
use control_state::{self as state, Labels, LabelsUpdate, Lock};
use proto_public::api::v2;
use proto_public::api::v2::update_labels::Strategy;
use proto_types::Timestamp;
use tonic::Status;

/// Parses a field.
///
/// # Errors
/// `invalid_argument` with the field's name and rule.
pub fn parse<T>(field: &str, text: &str) -> Result<T, Status>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    text.parse()
        .map_err(|error| invalid(field, format!("{text:?} cannot be used: {error}")))
}

/// Parses an optional field.
///
/// # Errors
/// As [`parse`].
pub fn parse_opt<T>(field: &str, text: Option<&String>) -> Result<Option<T>, Status>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    text.map(|text| parse(field, text)).transpose()
}

/// Parses every text of a repeated field.
///
/// # Errors
/// As [`parse`].
pub fn parse_all<T, C>(field: &str, texts: &[String]) -> Result<C, Status>
where
    T: FromStr,
    T::Err: std::fmt::Display,
    C: FromIterator<T>,
{
    texts.iter().map(|text| parse(field, text)).collect()
}

/// A mandatory field of a request.
///
/// # Errors
/// `invalid_argument`.
pub fn required<T>(field: &str, value: Option<T>) -> Result<T, Status> {
    value.ok_or_else(|| invalid(field, "is missing"))
}

/// An optional choice of a request.
///
/// # Errors
/// `invalid_argument` for UNSPECIFIED.
pub fn chosen<T>(
    field: &str,
    number: Option<i32>,
    from: impl Fn(i32) -> Option<T>,
) -> Result<Option<T>, Status> {
    number
        .map(|number| from(number).ok_or_else(|| invalid(field, "is unspecified: leave it out")))
        .transpose()
}

/// Time for the wire; `None` means "never".
pub fn time(at: Timestamp) -> Option<prost_types::Timestamp> {
    (at != Timestamp::ZERO).then(|| stamp(at))
}

fn stamp(at: Timestamp) -> prost_types::Timestamp {
    let (seconds, ms) = (at.ms() / 1000, at.ms() % 1000);
    prost_types::Timestamp {
        seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
        nanos: i32::try_from(ms * 1_000_000).unwrap_or(0),
    }
}

/// Time from the wire; times before 1970 become 1970.
pub fn from_time(at: &prost_types::Timestamp) -> Timestamp {
    let seconds = u64::try_from(at.seconds).unwrap_or(0);
    let ms = u64::try_from(at.nanos / 1_000_000).unwrap_or(0);
    Timestamp::from_ms(seconds.saturating_mul(1000).saturating_add(ms))
}

/// Milliseconds as a duration.
pub fn duration(ms: u64) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
        nanos: i32::try_from(ms % 1000 * 1_000_000).unwrap_or(0),
    }
}

/// Labels for the wire.
pub fn labels(labels: &Labels) -> v2::Labels {
    let pairs = labels
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()));
    v2::Labels {
        labels: pairs.collect(),
    }
}

/// Labels from the wire.
pub fn from_labels(labels: Option<v2::Labels>) -> Labels {
    labels
        .map(|labels| labels.labels.into_iter().collect())
        .unwrap_or_default()
}

/// The metadata of an object for the wire.
pub fn meta(meta: &state::Meta) -> Option<v2::Meta> {
    Some(v2::Meta {
        labels: Some(labels(&meta.labels)),
        created_at: Some(stamp(meta.created_at)),
        updated_at: Some(stamp(meta.updated_at)),
        generation: meta.generation,
        deletion_task_id: None,
    })
}

/// The metadata of a new object. Only the labels of the request count.
pub fn new_meta(meta: Option<v2::Meta>) -> state::Meta {
    state::Meta::labelled(from_labels(meta.and_then(|meta| meta.labels)))
}

/// The optimistic lock of an update.
///
/// # Errors
/// `invalid_argument` if the client requests the lock without the `updated_at` that it read.
pub fn lock(meta: Option<v2::UpdateMeta>) -> Result<Lock, Status> {
    let meta = meta.unwrap_or_default();
    if meta.locking_strategy() == v2::OptimisticLockingStrategy::Server {
        return Ok(Lock::Server);
    }
    let seen = meta.updated_at.ok_or_else(|| {
        let rule = "is missing: give the time that you saw, or lock by the server";
        invalid("update_meta.updated_at", rule)
    })?;
    Ok(Lock::Client(from_time(&seen)))
}

/// A change of labels.
pub fn labels_update(update: Option<v2::UpdateLabels>) -> Option<LabelsUpdate> {
    Some(match update?.strategy? {
        Strategy::Replace(labels) => LabelsUpdate::Replace(from_labels(Some(labels))),
        Strategy::Patch(patch) => LabelsUpdate::Patch {
            update: from_labels(patch.update),
            remove: patch.remove,
        },
    })
}

/// `true` if an object has all wanted labels.
pub fn has_labels(labels: &Labels, wanted: Option<&v2::Labels>) -> bool {
    wanted.is_none_or(|wanted| {
        wanted
            .labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
    })
}

/// `true` if an object has all of these labels.
pub fn has_all(labels: &Labels, wanted: &Labels) -> bool {
    let mut wanted = wanted.iter();
    wanted.all(|(key, value)| labels.get(key) == Some(value))
}

/// `true` if the query does not filter by this enum, or names this value. UNSPECIFIED does not
/// filter, as in the reference implementation.
pub fn is_choice(wanted: Option<i32>, own: i32) -> bool {
    wanted.is_none_or(|wanted| wanted == 0 || wanted == own)
}

/// `true` if the query does not filter by this field, or names this text.
pub fn is(wanted: Option<&String>, text: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == text)
}

/// The same for a field that may be absent.
pub fn is_opt<T: Display>(wanted: Option<&String>, value: Option<&T>) -> bool {
    wanted.is_none_or(|wanted| value.is_some_and(|value| reads_as(value, wanted)))
}

/// `true` if `value` displays as `wanted`. Does not allocate: list queries call it for every
/// object.
fn reads_as(value: &impl Display, wanted: &str) -> bool {
    struct Rest<'a>(&'a str);
    impl fmt::Write for Rest<'_> {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    let mut rest = Rest(wanted);
    write!(rest, "{value}").is_ok() && rest.0.is_empty()
}

/// `None` for an empty list. In such updates an empty list means unchanged.
pub fn unless_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_way_there_and_back() {
        for ms in [1, 999, 1000, 1_700_000_000_123] {
            let at = Timestamp::from_ms(ms);
            assert_eq!(from_time(&time(at).unwrap()), at);
        }
        assert_eq!(time(Timestamp::ZERO), None);
        let before = prost_types::Timestamp {
            seconds: -5,
            nanos: 0,
        };
        assert_eq!(from_time(&before), Timestamp::ZERO);
    }

    #[test]
    fn a_client_must_say_what_it_saw() {
        assert!(lock(None).is_err());
        assert!(lock(Some(v2::UpdateMeta::default())).is_err());
        let seen = v2::UpdateMeta {
            updated_at: time(Timestamp::from_ms(5)),
            locking_strategy: 0,
        };
        assert_eq!(
            lock(Some(seen)).unwrap(),
            Lock::Client(Timestamp::from_ms(5))
        );
        let server = v2::UpdateMeta {
            updated_at: None,
            locking_strategy: 2,
        };
        assert_eq!(lock(Some(server)).unwrap(), Lock::Server);
    }
}
