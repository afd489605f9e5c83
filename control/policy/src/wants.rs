//! Which parts of the input a policy looks at: what none looks at is not made.

use std::collections::BTreeMap;

use regorus::Value;

/// Parts of the input by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) caller: Fields,
    pub(crate) relation: Fields,
    pub(crate) request: Fields,
    pub(crate) resource: Fields,
    pub(crate) roles: Fields,
    pub(crate) subject: Fields,
    pub(crate) table: Fields,
    pub(crate) time: Fields,
}

/// How much of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fields {
    /// Those of these names, with the names as the machine has them.
    Named(BTreeMap<String, Value>),
    All,
}

impl Default for Fields {
    fn default() -> Self {
        Self::Named(BTreeMap::new())
    }
}

impl Fields {
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::Named(names) if names.is_empty())
    }

    pub(crate) fn named(names: &[&str]) -> Self {
        let names = names.iter();
        Self::Named(
            names
                .map(|name| ((*name).to_owned(), Value::from(*name)))
                .collect(),
        )
    }

    /// What follows a part, such as `input.request`, in a source.
    fn of(rest: &str) -> Self {
        match word(rest).filter(|name| !name.is_empty()) {
            Some(name) => Self::named(&[name]),
            None => Self::All,
        }
    }

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

/// The word behind the dot that a text begins with.
fn word(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('.')?;
    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// Whether what stands between is not read but set, as in `with input as {...}`: so do tests.
fn is_set(before: &str, after: &str) -> bool {
    let (with, rest) = (before.trim_end(), after.trim_start());
    let parted = with.len() < before.len() && rest.len() < after.len();
    parted && with.ends_with("with") && rest.starts_with("as") && !rest[2..].starts_with(is_word)
}

impl Wants {
    pub(crate) const ALL: Self = Self {
        caller: Fields::All,
        relation: Fields::All,
        request: Fields::All,
        resource: Fields::All,
        roles: Fields::All,
        subject: Fields::All,
        table: Fields::All,
        time: Fields::All,
    };

    /// What a source names. One that takes the input as a whole, or a part by a name that is not
    /// written there, wants all of it. Comments and texts count, which costs time and nothing else.
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
            part.and(Fields::of(&after[1 + name.len()..]));
        }
        wants
    }

    /// What either looks at.
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
            time: Fields::named(&["hour"]),
            ..Wants::default()
        };
        let request = |names: &[&str]| Wants {
            request: Fields::named(names),
            ..Wants::default()
        };
        let whole = Wants {
            request: Fields::All,
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
                    roles: Fields::named(&["project"]),
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
                    time: Fields::All,
                    ..Wants::default()
                },
            ),
        ] {
            assert_eq!(Wants::of(source), wants, "{source}");
        }
    }
}
