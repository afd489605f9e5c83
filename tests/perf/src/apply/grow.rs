//! Grows a command to the largest that somebody takes: longer texts, longer lists and maps, each as
//! far as it goes.

use std::net::IpAddr;

use anyhow::{Context, Result};
use control_state::{Op, bounds};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The order of growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Lists first: many small entries.
    Many,
    /// Texts first, then lists of long entries.
    Long,
}

pub(super) const SHAPES: [Shape; 2] = [Shape::Many, Shape::Long];

/// The names of the entries that a list gets.
#[derive(Debug, Clone, Copy)]
enum Names {
    /// Something of their own each.
    Other,
    /// The same: words of an enumeration cannot be others.
    Same,
}

/// A command on its way.
#[derive(Debug, Clone)]
pub(super) struct Grown {
    pub(super) op: Op,
    /// Its length as JSON.
    pub(super) bytes: usize,
    tree: Value,
}

impl Grown {
    fn of(tree: Value) -> Option<Self> {
        let op: Op = serde_json::from_value(tree).ok()?;
        // As it is written again: what no field took is gone.
        let tree = serde_json::to_value(&op).ok()?;
        let bytes = serde_json::to_vec(&tree).ok()?.len();
        Some(Self { op, bytes, tree })
    }
}

/// A way down the tree.
type Path = Vec<Step>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// The largest command of a shape that is taken; at least the command itself.
///
/// # Errors
/// When the command cannot be written.
pub(super) fn grown(op: &Op, shape: Shape, takes: &mut dyn FnMut(&Grown) -> bool) -> Result<Grown> {
    let start = Grown::of(serde_json::to_value(op)?);
    let mut best = start.with_context(|| format!("{} is not read back", op.name()))?;
    let mut paths = Vec::new();
    walk(&best.tree, &mut Vec::new(), &mut paths);
    let is_text = |tree: &Value, path: &Path| at(tree, path).is_some_and(Value::is_string);
    let (texts, lists): (Vec<Path>, Vec<Path>) = paths
        .into_iter()
        .partition(|path| is_text(&best.tree, path));
    let order = match shape {
        Shape::Long => [texts, lists],
        Shape::Many => [lists, texts],
    };
    // Inner ones come first in each.
    for path in order.iter().flatten() {
        enlarge(&mut best, path, takes);
    }
    Ok(best)
}

/// Ways to every text, list and object, the innermost first.
fn walk(value: &Value, path: &mut Path, found: &mut Vec<Path>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Step::Index(index));
                walk(item, path, found);
                path.pop();
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                path.push(Step::Key(key.clone()));
                walk(field, path, found);
                path.pop();
            }
        }
        Value::String(_) => {}
        _ => return,
    }
    found.push(path.clone());
}

fn at<'a>(tree: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(tree, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

fn at_mut<'a>(tree: &'a mut Value, path: &[Step]) -> Option<&'a mut Value> {
    path.iter().try_fold(tree, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    })
}

/// The field that bounds a value: the nearest one around it.
fn field(path: &[Step]) -> &str {
    let keys = path.iter().rev().find_map(|step| match step {
        Step::Key(key) => Some(key.as_str()),
        Step::Index(_) => None,
    });
    keys.unwrap_or_default()
}

/// Makes one value as large as is taken, by halving what is too much.
fn enlarge(best: &mut Grown, path: &[Step], takes: &mut dyn FnMut(&Grown) -> bool) {
    let Some(value) = at(&best.tree, path).cloned() else {
        return;
    };
    let (have, max) = match &value {
        Value::String(text) => (text.len(), bounds::text_max(field(path))),
        Value::Array(items) => (items.len(), bounds::list_max(field(path))),
        Value::Object(fields) => (fields.len(), bounds::list_max(field(path))),
        _ => return,
    };
    // Objects that are no maps drop what they do not know: one more entry shows it.
    let named = (&value, Names::Other);
    if value.is_object() && !try_one(best, path, named, have + 1, takes) {
        return;
    }
    let mut wanted = max;
    while wanted > have {
        let names = [Names::Other, Names::Same];
        if names
            .into_iter()
            .any(|names| try_one(best, path, (&value, names), wanted, takes))
        {
            return;
        }
        wanted /= 2;
    }
}

fn try_one(
    best: &mut Grown,
    path: &[Step],
    (value, names): (&Value, Names),
    size: usize,
    takes: &mut dyn FnMut(&Grown) -> bool,
) -> bool {
    let larger = match value {
        Value::String(text) => longer(text, size),
        Value::Array(items) => more(items, size, names),
        Value::Object(fields) => more_fields(fields, size),
        _ => None,
    };
    let Some(larger) = larger else { return false };
    let mut tree = best.tree.clone();
    let Some(place) = at_mut(&mut tree, path) else {
        return false;
    };
    *place = larger;
    let Some(grown) = Grown::of(tree) else {
        return false;
    };
    let is_whole = at(&grown.tree, path).is_some_and(|value| match value {
        Value::Object(fields) => fields.len() == size,
        Value::Array(items) => items.len() > 1,
        _ => true,
    });
    if is_whole && takes(&grown) {
        *best = grown;
        return true;
    }
    false
}

fn longer(text: &str, size: usize) -> Option<Value> {
    let missing = size.checked_sub(text.len())?;
    Some(Value::String(format!("{text}{}", "a".repeat(missing))))
}

/// As many entries, like the last one.
fn more(items: &[Value], size: usize, names: Names) -> Option<Value> {
    let last = items.last()?;
    let mut all = items.to_vec();
    all.extend((items.len()..size).map(|number| match names {
        Names::Other => varied(last, number),
        Names::Same => last.clone(),
    }));
    Some(Value::Array(all))
}

fn more_fields(fields: &Map<String, Value>, size: usize) -> Option<Value> {
    let (key, value) = fields.iter().next_back()?;
    let mut all = fields.clone();
    for number in fields.len()..size {
        all.insert(varied_text(key, number), varied(value, number));
    }
    Some(Value::Object(all))
}

/// The same with other names in it.
fn varied(value: &Value, number: usize) -> Value {
    match value {
        Value::String(text) => Value::String(varied_text(text, number)),
        Value::Array(items) => items.iter().map(|item| varied(item, number)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(key, value)| (key.clone(), varied(value, number)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn varied_text(text: &str, number: usize) -> String {
    if let Ok(id) = text.parse::<Uuid>() {
        return Uuid::from_u128(id.as_u128() ^ ((number as u128 + 1) << 64)).to_string();
    }
    if let Ok(mac) = text.parse::<proto_types::MacAddr>() {
        let [.., a, b] = mac.0;
        let [c, d, e, f] = u32::try_from(number).unwrap_or(0).to_be_bytes();
        return proto_types::MacAddr([2, a ^ c, b ^ d, 1, e, f]).to_string();
    }
    if let Ok(IpAddr::V4(ip)) = text.parse::<IpAddr>() {
        return std::net::Ipv4Addr::from(u32::from(ip) ^ (number as u32 + 1)).to_string();
    }
    if text.parse::<proto_types::IpNet>().is_ok() {
        let number = number as u32;
        return format!("10.{}.{}.0/24", 130 + number / 256, number % 256);
    }
    let suffix = format!("-{number}");
    let kept = text.len().min(bounds::TEXT_MAX / 4 - suffix.len());
    format!("{}{suffix}", text.get(..kept).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_grows_as_far_as_it_is_taken() {
        let op = serde_json::json!({"CreateTenant": {
            "login": "acme", "name": "acme", "labels": {"a": "b"}, "description": "text",
        }});
        let op: Op = serde_json::from_value(op).unwrap();
        let grown_with = |bytes_max: usize| {
            let mut takes = |it: &Grown| it.bytes <= bytes_max && bounds::check(&it.op).is_ok();
            grown(&op, Shape::Long, &mut takes).unwrap()
        };
        let Op::CreateTenant(large) = grown_with(1 << 20).op else {
            panic!("the same command");
        };
        assert_eq!(large.description.len(), bounds::TEXT_MAX);
        assert_eq!(large.labels.len(), bounds::LABELS_MAX);
        let small = grown_with(2_000);
        assert!((1_000..=2_000).contains(&small.bytes), "{}", small.bytes);
    }
}
