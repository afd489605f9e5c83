//! Faults that keep a policy from being put in force, with their place in the source.

/// A place in the source of a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourcePosition {
    /// Line, from 1. 0 means the whole policy.
    pub(crate) line: u32,
    /// Column, from 1. 0 means the whole line.
    pub(crate) column: u32,
}

/// A fault of a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(file, *line, *column))]
pub struct Invalid {
    /// Name of the policy.
    pub file: String,
    /// Line, from 1. 0 means the whole policy.
    pub line: u32,
    /// Column, from 1. 0 means the whole line.
    pub column: u32,
    /// The fault, and how to correct it.
    pub message: String,
}

fn place(file: &str, line: u32, column: u32) -> String {
    match (line, column) {
        (0, _) => format!("{file}: "),
        (line, 0) => format!("{file}:{line}: "),
        (line, column) => format!("{file}:{line}:{column}: "),
    }
}

impl Invalid {
    /// A fault of the whole policy.
    pub(crate) fn whole(file: &str, message: impl Into<String>) -> Self {
        Self::at(file, SourcePosition::default(), message)
    }

    /// A fault at a position.
    pub(crate) fn at(file: &str, at: SourcePosition, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            message: message.into(),
        }
    }

    /// A fault from an error text of the engine, which has several lines and an arrow to the place.
    pub(crate) fn of_engine(file: &str, error: &str) -> Self {
        let place = error.lines().find_map(|line| {
            let place = line.trim().strip_prefix("--> ")?;
            let mut parts = place.rsplit(':');
            let column = parts.next()?.parse().ok()?;
            let line = parts.next()?.parse().ok()?;
            Some(SourcePosition { line, column })
        });
        let said = error.lines().rev().find_map(|line| {
            let said = line.trim().strip_prefix("error: ")?;
            Some(said.trim_end_matches('.').to_owned())
        });
        let first = || error.lines().map(str::trim).find(|line| !line.is_empty());
        let message = said.or_else(|| first().map(str::to_owned));
        Self::at(
            file,
            place.unwrap_or_default(),
            message.unwrap_or_else(|| "it cannot be read".to_owned()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_words_become_one_line() {
        let said =
            "\n--> night:3:35\n  |\n3 | deny if { x == }\n  |   ^\nerror: expecting expression";
        let invalid = Invalid::of_engine("night", said);
        assert_eq!(invalid.to_string(), "night:3:35: expecting expression");
        let invalid = Invalid::of_engine("night", "not a valid rule path");
        assert_eq!(invalid.to_string(), "night: not a valid rule path");
        assert_eq!(
            Invalid::of_engine("night", "").to_string(),
            "night: it cannot be read"
        );
    }
}
