//! Which parts of the input a policy looks at: what none looks at is not made.

use std::collections::BTreeMap;

use regorus::Value;

/// Parts of the input by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) caller: bool,
    pub(crate) relation: bool,
    pub(crate) request: Fields,
    pub(crate) resource: bool,
    pub(crate) roles: bool,
    pub(crate) subject: bool,
    pub(crate) table: bool,
    pub(crate) time: bool,
}

/// How much of the request.
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

    /// What follows `input.request` in a source.
    fn of(rest: &str) -> Self {
        match word(rest).filter(|name| !name.is_empty()) {
            Some(name) => Self::Named([(name.to_owned(), Value::from(name))].into()),
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

impl Wants {
    pub(crate) const ALL: Self = Self {
        caller: true,
        relation: true,
        request: Fields::All,
        resource: true,
        roles: true,
        subject: true,
        table: true,
        time: true,
    };

    /// What a source names. One that takes the input as a whole, or a part by a name that is not
    /// written there, wants all of it. Comments and texts count, which costs time and nothing else.
    pub(crate) fn of(source: &str) -> Self {
        let mut wants = Self::default();
        for (at, input) in source.match_indices("input") {
            let (before, after) = (&source[..at], &source[at + input.len()..]);
            if before.ends_with(is_word) || after.starts_with(is_word) {
                continue;
            }
            match word(after) {
                Some("method") => {}
                Some("caller") => wants.caller = true,
                Some("relation") => wants.relation = true,
                Some(name @ "request") => wants.request.and(Fields::of(&after[1 + name.len()..])),
                Some("resource") => wants.resource = true,
                Some("roles") => wants.roles = true,
                Some("subject") => wants.subject = true,
                Some("table") => wants.table = true,
                Some("time") => wants.time = true,
                _ => return Self::ALL,
            }
        }
        wants
    }

    /// What either looks at.
    pub(crate) fn and(&mut self, other: Self) {
        self.caller |= other.caller;
        self.relation |= other.relation;
        self.request.and(other.request);
        self.resource |= other.resource;
        self.roles |= other.roles;
        self.subject |= other.subject;
        self.table |= other.table;
        self.time |= other.time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_name() {
        let none = Wants::default();
        let time = Wants {
            time: true,
            ..Wants::default()
        };
        let request = |names: &[&str]| Wants {
            request: Fields::Named(
                names
                    .iter()
                    .map(|name| ((*name).to_owned(), Value::from(*name)))
                    .collect(),
            ),
            ..Wants::default()
        };
        let whole = Wants {
            request: Fields::All,
            ..Wants::default()
        };
        for (source, wants) in [
            ("deny contains \"x\" if true", none.clone()),
            ("if input.method.name == \"Delete\"", none),
            ("if input.time.hour > 8", time.clone()),
            (
                "if { input.time.hour > 8; inputs.caller; my_input.caller }",
                time.clone(),
            ),
            (
                "x := input.request.size; input.roles.project == \"viewer\"",
                Wants {
                    roles: true,
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
            ("walk(input, [path, value])", Wants::ALL),
            ("input\n.time", Wants::ALL),
            ("f(input.time)", time),
        ] {
            assert_eq!(Wants::of(source), wants, "{source}");
        }
    }
}
