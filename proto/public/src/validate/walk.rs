//! Walks a message along its plan and collects violations with their paths.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use prost_reflect::{DynamicMessage, MapKey, Value};

use super::Violation;
use super::plan::{FieldPlan, Plans};
use super::rule::Rule;

/// The violations found so far and the position of the walk.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) violations: Vec<Violation>,
    path: String,
    max: usize,
    now: (i64, i32),
}

impl Found {
    pub(super) fn new(max: usize, now: SystemTime) -> Self {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        // Below 10^9, so the sign bit is never set.
        let nanos = since.subsec_nanos().cast_signed();
        Self {
            violations: Vec::new(),
            path: String::new(),
            max,
            now: (seconds, nanos),
        }
    }

    /// Seconds and nanoseconds since 1970.
    pub(super) fn now(&self) -> (i64, i32) {
        self.now
    }

    pub(super) fn report(&mut self, rule: &'static str, message: String) {
        if !self.full() {
            self.violations.push(Violation {
                field: self.path.clone(),
                rule,
                message,
            });
        }
    }

    fn full(&self) -> bool {
        self.violations.len() >= self.max
    }

    /// Runs `step` with the path extended.
    fn below(&mut self, part: std::fmt::Arguments<'_>, step: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        // Writing to a String cannot fail.
        self.path.write_fmt(part).unwrap_or_default();
        step(self);
        self.path.truncate(length);
    }

    fn in_field(&mut self, name: &str, step: impl FnOnce(&mut Self)) {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.below(format_args!("{dot}{name}"), step);
    }
}

impl Plans {
    /// Checks a message by its full name. A message outside the contract has no rules.
    pub(super) fn check(&self, name: &str, message: &DynamicMessage, found: &mut Found) {
        if let Some(index) = self.index(name) {
            self.check_at(index, message, found);
        }
    }

    fn check_at(&self, index: usize, message: &DynamicMessage, found: &mut Found) {
        let plan = self.get(index);
        for oneof in &plan.oneofs {
            if !oneof.fields().any(|field| message.has_field(&field)) {
                found.in_field(oneof.name(), |found| {
                    found.report(
                        "required",
                        "exactly one of its fields is required".to_owned(),
                    );
                });
            }
        }
        for field in &plan.fields {
            if found.full() {
                return;
            }
            self.field(field, message, found);
        }
    }

    fn field(&self, plan: &FieldPlan, message: &DynamicMessage, found: &mut Found) {
        let set = message.has_field(&plan.field);
        if !set && plan.required {
            found.in_field(plan.field.name(), |found| {
                found.report("required", "value is required".to_owned());
            });
            return;
        }
        if !set && (plan.ignore_zero || plan.field.supports_presence()) {
            return;
        }
        let value = message.get_field(&plan.field);
        found.in_field(plan.field.name(), |found| {
            plan.rules.iter().for_each(|rule| rule.check(&value, found));
            match value.as_ref() {
                Value::List(list) => {
                    for (i, item) in list.iter().enumerate() {
                        found.below(format_args!("[{i}]"), |found| {
                            self.value(plan, &plan.items, item, found);
                        });
                    }
                }
                Value::Map(map) => {
                    // Maps iterate in random order. Sorted, so that the same request gets the same
                    // answer.
                    let mut entries: Vec<_> = map.iter().collect();
                    entries.sort_by(|(a, _), (b, _)| a.as_str().cmp(&b.as_str()));
                    for (key, item) in entries {
                        found.below(format_args!("[{}]", shown(key)), |found| {
                            self.entry(plan, key, item, found);
                        });
                    }
                }
                single => self.value(plan, &[], single, found),
            }
        });
    }

    fn entry(&self, plan: &FieldPlan, key: &MapKey, item: &Value, found: &mut Found) {
        let key = Value::from(key.clone());
        plan.keys.iter().for_each(|rule| rule.check(&key, found));
        self.value(plan, &plan.items, item, found);
    }

    fn value(&self, plan: &FieldPlan, rules: &[Rule], value: &Value, found: &mut Found) {
        rules.iter().for_each(|rule| rule.check(value, found));
        if let (Some(index), Value::Message(message)) = (plan.nested, value) {
            self.check_at(index, message, found);
        }
    }
}

/// A key as it stands in a path: texts as in JSON.
fn shown(key: &MapKey) -> String {
    match key {
        MapKey::Bool(b) => b.to_string(),
        MapKey::I32(n) => n.to_string(),
        MapKey::I64(n) => n.to_string(),
        MapKey::U32(n) => n.to_string(),
        MapKey::U64(n) => n.to_string(),
        MapKey::String(text) => serde_json::Value::from(text.as_str()).to_string(),
    }
}
