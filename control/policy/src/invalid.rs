//! Why a policy cannot be put in force, and where in it.

/// A fault of a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(file, *line, *column))]
pub struct Invalid {
    /// As the policy is called.
    pub file: String,
    /// From 1; 0 when it is about the whole policy.
    pub line: u32,
    /// From 1; 0 when it is about the whole line.
    pub column: u32,
    /// What is wrong, and what would be right.
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
    /// About the whole policy.
    pub(crate) fn whole(file: &str, message: impl Into<String>) -> Self {
        Self::at(file, (0, 0), message)
    }

    /// At a line and column.
    pub(crate) fn at(file: &str, (line, column): (u32, u32), message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            column,
            message: message.into(),
        }
    }

    /// Out of the engine's words, which are several lines with an arrow to the place.
    pub(crate) fn of_engine(file: &str, error: &str) -> Self {
        let place = error.lines().find_map(|line| {
            let place = line.trim().strip_prefix("--> ")?;
            let mut parts = place.rsplit(':');
            let column = parts.next()?.parse().ok()?;
            Some((parts.next()?.parse().ok()?, column))
        });
        let said = error.lines().rev().find_map(|line| {
            let said = line.trim().strip_prefix("error: ")?;
            Some(said.trim_end_matches('.').to_owned())
        });
        let first = || error.lines().map(str::trim).find(|it| !it.is_empty());
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
