//! Aggregates audit records of refused calls: the first ones of a caller in a minute are recorded
//! as they are, the rest as one record with their number.
//!
//! Otherwise a caller without any rights could fill the trail, at one write to the log per call.

use std::collections::BTreeMap;
use std::sync::Arc;

use control_authz::AuditedCall;
use control_state::AuditEntry;
use proto_types::Timestamp;

use crate::call_end::CallEnd;
use crate::tables::entry;

/// Most refused calls of a caller that are recorded as they are, per minute; all of different
/// methods or results. Further ones are counted.
const WHOLE_MAX: usize = 4;
/// Most methods that a record of counted calls names. Further ones are counted as `others`.
const METHODS_MAX: usize = 8;
/// Most callers that are counted at the same time, so that memory is bounded. Calls of further ones
/// are recorded as they are.
const CALLERS_MAX: usize = 10_000;

/// Refused calls of one caller since the minute began.
#[derive(Debug, Default)]
struct CallerRefusals {
    /// Method and result of the calls that were recorded as they are.
    whole: Vec<(String, i32)>,
    /// The first counted call, and its result.
    first: Option<(Arc<AuditedCall>, i32)>,
    /// Time at which the last counted call ended.
    last: Timestamp,
    /// Number of counted calls.
    count: u32,
    by_method: BTreeMap<String, u32>,
}

/// The refused calls of a minute, by caller.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    callers: BTreeMap<String, CallerRefusals>,
}

impl Refusals {
    /// Counts a refused call and returns `None`, or returns the call to be recorded as it is.
    pub(crate) fn count(&mut self, end: CallEnd) -> Option<CallEnd> {
        // A call that succeeded or changed something is always recorded as it is.
        if end.code == 0 || end.call.recorded.get() {
            return Some(end);
        }
        let user = &end.call.user;
        if self.callers.len() >= CALLERS_MAX && !self.callers.contains_key(user) {
            return Some(end);
        }
        let caller = self.callers.entry(user.clone()).or_default();
        let method = &end.call.method;
        // The same method with the same result says nothing new, and uses up none of the few
        // records.
        let is_known = caller
            .whole
            .iter()
            .any(|(name, code)| name == method && *code == end.code);
        if !is_known && caller.whole.len() < WHOLE_MAX {
            caller.whole.push((method.clone(), end.code));
            return Some(end);
        }
        caller.count = caller.count.saturating_add(1);
        caller.last = caller.last.max(end.time);
        let is_full = caller.by_method.len() >= METHODS_MAX;
        let name = match is_full && !caller.by_method.contains_key(method) {
            true => "others",
            false => method,
        };
        *caller.by_method.entry(name.to_owned()).or_default() += 1;
        caller.first.get_or_insert((end.call, end.code));
        None
    }

    /// Ends the minute: returns one record per caller with counted calls.
    pub(crate) fn take(&mut self) -> Vec<AuditEntry> {
        let callers = std::mem::take(&mut self.callers).into_values();
        callers.filter_map(CallerRefusals::record).collect()
    }
}

impl CallerRefusals {
    fn record(self) -> Option<AuditEntry> {
        let (call, code) = self.first?;
        let numbers = self.by_method.iter();
        let numbers = numbers.map(|(method, count)| format!("\"{method}\":{count}"));
        let numbers: Vec<String> = numbers.collect();
        Some(AuditEntry {
            ended: Some(self.last),
            // The counted calls may be of several tenants. With the tenant of the first one, that
            // tenant would see the others' calls in its trail.
            tenant: String::new(),
            project: None,
            body: Some(format!("{{\"refused\":{{{}}}}}", numbers.join(","))),
            result_code: Some(code),
            count: Some(self.count),
            rule: None,
            ..entry(&call)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_authz::Recorded;

    fn refused(user: &str, method: &str, code: i32) -> CallEnd {
        let call = AuditedCall {
            id: "0192".to_owned(),
            time_ms: 1,
            user: user.to_owned(),
            tenant: "acme".to_owned(),
            project: None,
            method: method.to_owned(),
            body: None,
            rule: None,
            source_ip: String::new(),
            recorded: Recorded::default(),
        };
        CallEnd {
            call: Arc::new(call),
            code,
            reason: None,
            time: Timestamp::from_ms(2),
        }
    }

    #[test]
    fn refused_calls_of_a_minute_are_few_records() {
        let mut refusals = Refusals::default();
        let mut whole = 0;
        for number in 0..10_400 {
            let method = format!("/s/M{}", number % 20);
            whole += usize::from(refusals.count(refused("eve", &method, 7)).is_some());
        }
        assert!(refusals.count(refused("ada", "/s/M", 7)).is_some());
        assert!(refusals.count(refused("ada", "/s/M", 0)).is_some());
        assert!(
            refusals.count(refused("ada", "/s/M", 0)).is_some(),
            "not refused"
        );
        let rest = refusals.take();
        assert_eq!(whole, WHOLE_MAX);
        let [rest] = &rest[..] else {
            panic!("{rest:?}");
        };
        assert_eq!(rest.user, "eve");
        assert_eq!(rest.count, Some(10_400 - 4));
        assert_eq!(rest.tenant, "");
        let body: serde_json::Value = serde_json::from_str(rest.body.as_ref().unwrap()).unwrap();
        let told = body["refused"].as_object().unwrap();
        assert_eq!(told.len(), METHODS_MAX + 1);
        let sum: u64 = told.values().filter_map(serde_json::Value::as_u64).sum();
        assert_eq!(sum, 10_396);
        assert!(
            refusals.count(refused("eve", "/s/M1", 7)).is_some(),
            "a new minute"
        );
    }
}
