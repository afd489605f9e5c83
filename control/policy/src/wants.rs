//! The parts of the input that a policy reads. Parts that no policy reads are not built.

use std::collections::BTreeMap;

use regorus::Value;

/// The wanted fields of each part of the input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) caller: WantedFields,
    pub(crate) relation: WantedFields,
    pub(crate) request: WantedFields,
    pub(crate) resource: WantedFields,
    pub(crate) roles: WantedFields,
    pub(crate) subject: WantedFields,
    pub(crate) table: WantedFields,
    pub(crate) time: WantedFields,
}

/// The wanted fields of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WantedFields {
    /// The fields with these names. The values are the names in the machine's form, so that a call
    /// does not convert them again.
    Named(BTreeMap<String, Value>),
    /// Every field.
    All,
}

impl Default for WantedFields {
    fn default() -> Self {
        Self::Named(BTreeMap::new())
    }
}

impl WantedFields {
    /// `true` if no field is wanted.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::Named(names) if names.is_empty())
    }

    /// The fields with these names.
    pub(crate) fn named(names: &[&str]) -> Self {
        let names = names.iter();
        Self::Named(
            names
                .map(|name| ((*name).to_owned(), Value::from(*name)))
                .collect(),
        )
    }

    /// Builds the part with those of the wanted fields that `value` has. `all` names every field.
    pub(crate) fn select(&self, all: &[&str], value: impl Fn(&str) -> Option<Value>) -> Value {
        let found: BTreeMap<Value, Value> = match self {
            Self::Named(names) => {
                let names = names.iter();
                names
                    .filter_map(|(name, key)| Some((key.clone(), value(name)?)))
                    .collect()
            }
            Self::All => {
                let names = all.iter();
                names
                    .filter_map(|name| Some((Value::from(*name), value(name)?)))
                    .collect()
            }
        };
        Value::from(found)
    }

    /// The wanted fields by the text that follows a part, such as `input.request`, in a source.
    fn of(rest: &str) -> Self {
        match word(rest).filter(|name| !name.is_empty()) {
            Some(name) => Self::named(&[name]),
            None => Self::All,
        }
    }

    /// Adds the fields of `other`.
    fn and(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Named(ours), Self::Named(others)) => ours.extend(others),
            (ours, _) => *ours = Self::All,
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The word after the dot that the text begins with. `None` means that it begins otherwise.
fn word(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('.')?;
    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// `true` if the input between the two texts is set and not read, as tests do with
/// `with input as {...}`.
fn is_set(before: &str, after: &str) -> bool {
    let (with, rest) = (before.trim_end(), after.trim_start());
    let parted = with.len() < before.len() && rest.len() < after.len();
    parted && with.ends_with("with") && rest.starts_with("as") && !rest[2..].starts_with(is_word)
}

impl Wants {
    pub(crate) const ALL: Self = Self {
        caller: WantedFields::All,
        relation: WantedFields::All,
        request: WantedFields::All,
        resource: WantedFields::All,
        roles: WantedFields::All,
        subject: WantedFields::All,
        table: WantedFields::All,
        time: WantedFields::All,
    };

    /// The parts that a source names. A source that uses the input as a whole, or a part by a computed
    /// name, wants all of it. Names in comments and strings count too, which costs time only.
    pub(crate) fn of(source: &str) -> Self {
        let mut wants = Self::default();
        for (at, input) in source.match_indices("input") {
            let (before, after) = (&source[..at], &source[at + input.len()..]);
            if before.ends_with(is_word) || after.starts_with(is_word) || is_set(before, after) {
                continue;
            }
            let Some(name) = word(after) else {
                return Self::ALL;
            };
            let part = match name {
                "method" => continue,
                "caller" => &mut wants.caller,
                "relation" => &mut wants.relation,
                "request" => &mut wants.request,
                "resource" => &mut wants.resource,
                "roles" => &mut wants.roles,
                "subject" => &mut wants.subject,
                "table" => &mut wants.table,
                "time" => &mut wants.time,
                _ => return Self::ALL,
            };
            part.and(WantedFields::of(&after[1 + name.len()..]));
        }
        wants
    }

    /// Adds the parts of `other`.
    pub(crate) fn and(&mut self, other: Self) {
        self.caller.and(other.caller);
        self.relation.and(other.relation);
        self.request.and(other.request);
        self.resource.and(other.resource);
        self.roles.and(other.roles);
        self.subject.and(other.subject);
        self.table.and(other.table);
        self.time.and(other.time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_name() {
        let none = Wants::default();
        let hour = Wants {
            time: WantedFields::named(&["hour"]),
            ..Wants::default()
        };
        let request = |names: &[&str]| Wants {
            request: WantedFields::named(names),
            ..Wants::default()
        };
        let whole = Wants {
            request: WantedFields::All,
            ..Wants::default()
        };
        for (source, wants) in [
            ("deny contains \"x\" if true", none.clone()),
            ("if input.method.name == \"Delete\"", none.clone()),
            ("if input.time.hour > 8", hour.clone()),
            (
                "if { input.time.hour > 8; inputs.caller; my_input.caller }",
                hour,
            ),
            (
                "x := input.request.size; input.roles.project == \"viewer\"",
                Wants {
                    roles: WantedFields::named(&["project"]),
                    ..request(&["size"])
                },
            ),
            (
                "not input.request.size; input.request.networks[_].network == \"a\"",
                request(&["networks", "size"]),
            ),
            ("input.request.size; f(input.request)", whole.clone()),
            ("input.request[\"size\"]", whole.clone()),
            ("some k; input.request[k]", whole.clone()),
            ("input.request.\nsize", whole),
            ("some k; input[k] == 1", Wants::ALL),
            ("input[\"time\"].hour", Wants::ALL),
            ("x := input", Wants::ALL),
            ("count(deny) == 0 with input as {\"a\": 1}", none.clone()),
            ("deny with input\n\tas asks(1)", none),
            ("deny with input as input", Wants::ALL),
            ("deny with input assigned", Wants::ALL),
            ("f(with, input as x)", Wants::ALL),
            ("walk(input, [path, value])", Wants::ALL),
            ("input\n.time", Wants::ALL),
            (
                "f(input.time)",
                Wants {
                    time: WantedFields::All,
                    ..Wants::default()
                },
            ),
        ] {
            assert_eq!(Wants::of(source), wants, "{source}");
        }
    }
}
