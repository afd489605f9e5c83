//! Reads the rules of every message from the descriptors, once.

use std::collections::HashMap;

use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, OneofDescriptor,
    Value,
};

use super::known;
use super::respell::spelling;
use super::rule::{Range, Rule};
use crate::spelling::Spelling;

/// `IGNORE_IF_ZERO_VALUE`, the only other value of `ignore` that the contract uses.
const IGNORE_IF_ZERO: i32 = 1;

/// The rules of all messages.
#[derive(Debug)]
pub(super) struct Plans {
    plans: Vec<MessagePlan>,
    by_name: HashMap<String, usize>,
}

/// The rules of one message.
#[derive(Debug, Default)]
pub(super) struct MessagePlan {
    pub(super) fields: Vec<FieldPlan>,
    /// Those of which one field must be set.
    pub(super) oneofs: Vec<OneofDescriptor>,
}

/// The rules of one field.
#[derive(Debug)]
pub(super) struct FieldPlan {
    pub(super) field: FieldDescriptor,
    pub(super) required: bool,
    pub(super) ignore_zero: bool,
    /// For the field as a whole.
    pub(super) rules: Vec<Rule>,
    /// For each key of a map.
    pub(super) keys: Vec<Rule>,
    /// For each element of a list or value of a map.
    pub(super) items: Vec<Rule>,
    /// The plan of the message that the field, its elements or its values are.
    pub(super) nested: Option<usize>,
    /// Kind of its texts, or of its keys, if they can be spelled in several ways.
    pub(super) spelling: Option<Spelling>,
}

impl Plans {
    /// Fails on a rule that this module does not know.
    pub(super) fn compile(pool: &DescriptorPool) -> Result<Self, String> {
        let ours = |m: &MessageDescriptor| {
            !m.is_map_entry()
                && ["metalstack.", "metalmesh."]
                    .iter()
                    .any(|p| m.full_name().starts_with(p))
        };
        let messages: Vec<_> = pool.all_messages().filter(ours).collect();
        let by_name: HashMap<_, _> = messages
            .iter()
            .enumerate()
            .map(|(i, m)| (m.full_name().to_owned(), i))
            .collect();
        let plans = messages
            .iter()
            .map(|m| MessagePlan::compile(pool, m, &by_name))
            .collect::<Result<_, _>>()?;
        Ok(Self { plans, by_name })
    }

    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(super) fn get(&self, index: usize) -> &MessagePlan {
        &self.plans[index]
    }
}

impl MessagePlan {
    fn compile(
        pool: &DescriptorPool,
        message: &MessageDescriptor,
        by_name: &HashMap<String, usize>,
    ) -> Result<Self, String> {
        let mut plan = Self::default();
        if option(pool, &message.options(), "buf.validate.message").is_some() {
            return Err(format!(
                "{}: rules of whole messages are unknown",
                message.full_name()
            ));
        }
        for oneof in message.oneofs() {
            if let Some(rules) = option(pool, &oneof.options(), "buf.validate.oneof") {
                for (name, value) in entries(&rules) {
                    match (name.as_str(), value) {
                        ("required", Value::Bool(true)) => plan.oneofs.push(oneof.clone()),
                        _ => return Err(format!("{}: {name}", oneof.full_name())),
                    }
                }
            }
        }
        for field in message.fields() {
            let field = FieldPlan::compile(pool, field, by_name)?;
            if field.has_work() {
                plan.fields.push(field);
            }
        }
        Ok(plan)
    }
}

impl FieldPlan {
    fn compile(
        pool: &DescriptorPool,
        field: FieldDescriptor,
        by_name: &HashMap<String, usize>,
    ) -> Result<Self, String> {
        let kind = match field.kind() {
            Kind::Message(entry) if field.is_map() => entry.map_entry_value_field().kind(),
            kind => kind,
        };
        let nested = match &kind {
            Kind::Message(m) => by_name.get(m.full_name()).copied(),
            _ => None,
        };
        let options = option(pool, &field.options(), "buf.validate.field");
        let mut plan = Self {
            field,
            required: false,
            ignore_zero: false,
            rules: Vec::new(),
            keys: Vec::new(),
            items: Vec::new(),
            nested,
            spelling: None,
        };
        if let Some(rules) = options {
            plan.add(&rules, &kind).map_err(|rule| {
                format!("{}: the rule {rule} is unknown", plan.field.full_name())
            })?;
        }
        plan.spelling = spelling(&plan.field, &plan);
        Ok(plan)
    }

    fn has_work(&self) -> bool {
        self.required
            || self.spelling.is_some()
            || self.nested.is_some()
            || !(self.rules.is_empty() && self.keys.is_empty() && self.items.is_empty())
    }

    fn add(&mut self, rules: &DynamicMessage, kind: &Kind) -> Result<(), String> {
        for (name, value) in entries(rules) {
            match (name.as_str(), &value) {
                ("required", Value::Bool(yes)) => self.required = *yes,
                ("ignore", Value::EnumNumber(IGNORE_IF_ZERO)) => self.ignore_zero = true,
                ("repeated" | "map", Value::Message(container)) => {
                    for (name, value) in entries(container) {
                        self.add_container(&name, &value, kind)?;
                    }
                }
                _ => self.rules.extend(typed(&name, &value, kind)?),
            }
        }
        Ok(())
    }

    fn add_container(&mut self, name: &str, value: &Value, kind: &Kind) -> Result<(), String> {
        let each = |value: &Value, kind: &Kind| match value {
            Value::Message(rules) => {
                let mut all = Vec::new();
                for (name, value) in entries(rules) {
                    all.extend(typed(&name, &value, kind)?);
                }
                Ok(all)
            }
            _ => Err(name.to_owned()),
        };
        match (name, value) {
            ("items" | "values", value) => self.items = each(value, kind)?,
            ("keys", value) => self.keys = each(value, &Kind::String)?,
            ("min_items", Value::U64(n)) => self.rules.push(Rule::MinItems(*n)),
            ("max_items", Value::U64(n)) => self.rules.push(Rule::MaxItems(*n)),
            ("unique", Value::Bool(true)) => self.rules.push(Rule::Unique),
            (name, Value::Bool(true)) => {
                let rule = known::container(name).ok_or_else(|| name.to_owned())?;
                self.rules.push(rule);
            }
            _ => return Err(name.to_owned()),
        }
        Ok(())
    }
}

/// The rules for one value: `string { … }`, `enum { … }` and so on.
fn typed(name: &str, value: &Value, kind: &Kind) -> Result<Vec<Rule>, String> {
    let Value::Message(rules) = value else {
        return Err(name.to_owned());
    };
    let rules = entries(rules);
    match (name, kind) {
        ("string", Kind::String) => rules.iter().map(|(n, v)| text(n, v)).collect(),
        ("enum", Kind::Enum(of)) => match rules.as_slice() {
            [(name, Value::Bool(true))] if name == "defined_only" => {
                Ok(vec![Rule::Defined(of.clone())])
            }
            _ => Err(name.to_owned()),
        },
        ("int32", Kind::Int32) | ("uint32", Kind::Uint32) => {
            Ok(vec![Rule::Range(range(name, &rules, whole)?)])
        }
        ("duration", Kind::Message(_)) => Ok(vec![Rule::Duration(range(name, &rules, span)?)]),
        ("timestamp", Kind::Message(_)) => match rules.as_slice() {
            [(name, Value::Bool(true))] if name == "lt_now" => Ok(vec![Rule::Past]),
            _ => Err(name.to_owned()),
        },
        _ => Err(name.to_owned()),
    }
}

fn text(name: &str, value: &Value) -> Result<Rule, String> {
    match (name, value) {
        ("min_len", Value::U64(n)) => Ok(Rule::MinLen(*n)),
        ("max_len", Value::U64(n)) => Ok(Rule::MaxLen(*n)),
        ("pattern", Value::String(pattern)) => known::pattern(pattern)
            .map(Rule::Text)
            .ok_or_else(|| format!("pattern {pattern}")),
        (_, Value::Bool(true)) => known::text(name)
            .map(Rule::Text)
            .ok_or_else(|| name.to_owned()),
        _ => Err(name.to_owned()),
    }
}

/// Bounds from `gt`, `gte`, `lt`, `lte`; the rule's id names those that are there.
fn range<T: Copy>(
    kind: &str,
    rules: &[(String, Value)],
    read: fn(&Value) -> Option<(T, String)>,
) -> Result<Range<T>, String> {
    let (mut low, mut high) = (None, None);
    let (mut ids, mut words) = (Vec::new(), Vec::new());
    let order = ["gt", "gte", "lt", "lte"];
    for name in order {
        let Some((_, value)) = rules.iter().find(|(n, _)| n == name) else {
            continue;
        };
        let (bound, shown) = read(value).ok_or_else(|| format!("{kind}.{name}"))?;
        let (side, word) = match name {
            "gt" => (&mut low, "greater than"),
            "gte" => (&mut low, "at least"),
            "lt" => (&mut high, "less than"),
            _ => (&mut high, "at most"),
        };
        *side = Some((bound, name.ends_with('e')));
        ids.push(name);
        words.push(format!("{word} {shown}"));
    }
    let id = known::range(kind, &ids).ok_or_else(|| format!("{kind}.{}", ids.join("_")))?;
    if ids.len() != rules.len() {
        return Err(kind.to_owned());
    }
    Ok(Range {
        id,
        low,
        high,
        message: format!("must be {}", words.join(" and ")),
    })
}

fn whole(value: &Value) -> Option<(i64, String)> {
    let number = match value {
        Value::I32(n) => i64::from(*n),
        Value::U32(n) => i64::from(*n),
        _ => return None,
    };
    Some((number, number.to_string()))
}

fn span(value: &Value) -> Option<((i64, i32), String)> {
    let message = value.as_message()?;
    let seconds = message.get_field_by_name("seconds")?.as_i64()?;
    let nanos = message.get_field_by_name("nanos")?.as_i32()?;
    Some(((seconds, nanos), format!("{seconds}s")))
}

/// The value of an option that is a message, if it is set.
fn option(pool: &DescriptorPool, options: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
    let extension = pool.get_extension_by_name(name)?;
    if !options.has_extension(&extension) {
        return None;
    }
    options.get_extension(&extension).as_message().cloned()
}

/// The set fields of a message: fields by name, extensions by the last part of their name.
fn entries(message: &DynamicMessage) -> Vec<(String, Value)> {
    let fields = message
        .fields()
        .map(|(f, v)| (f.name().to_owned(), v.clone()));
    let extensions = message
        .extensions()
        .map(|(e, v)| (e.name().to_owned(), v.clone()));
    fields.chain(extensions).collect()
}
