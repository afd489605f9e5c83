//! Which parts of the input a policy looks at: what none looks at is not made.

/// Parts of the input by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) caller: bool,
    pub(crate) relation: bool,
    pub(crate) request: bool,
    pub(crate) resource: bool,
    pub(crate) roles: bool,
    pub(crate) subject: bool,
    pub(crate) table: bool,
    pub(crate) time: bool,
}

impl Wants {
    pub(crate) const ALL: Self = Self {
        caller: true,
        relation: true,
        request: true,
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
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        for (at, word) in source.match_indices("input") {
            let (before, after) = (&source[..at], &source[at + word.len()..]);
            if before.ends_with(is_word) || after.starts_with(is_word) {
                continue;
            }
            let name = after.strip_prefix('.').map(|rest| {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                &rest[..end]
            });
            match name {
                Some("method") => {}
                Some("caller") => wants.caller = true,
                Some("relation") => wants.relation = true,
                Some("request") => wants.request = true,
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
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            caller: self.caller || other.caller,
            relation: self.relation || other.relation,
            request: self.request || other.request,
            resource: self.resource || other.resource,
            roles: self.roles || other.roles,
            subject: self.subject || other.subject,
            table: self.table || other.table,
            time: self.time || other.time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_name() {
        let none = Wants::default();
        let time = Wants { time: true, ..none };
        for (source, wants) in [
            ("deny contains \"x\" if true", none),
            ("if input.method.name == \"Delete\"", none),
            ("if input.time.hour > 8", time),
            (
                "if { input.time.hour > 8; inputs.caller; my_input.caller }",
                time,
            ),
            (
                "x := input.request.size; input.roles.project == \"viewer\"",
                Wants {
                    request: true,
                    roles: true,
                    ..none
                },
            ),
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
