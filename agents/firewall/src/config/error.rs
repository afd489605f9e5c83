use std::path::PathBuf;

use proto_bounds::{NESTED_PROBLEM, NESTED_REMEDY};
use proto_firewall::printable;

use super::lines::nearest_line;

/// A reason why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The file is too large.
    #[error("{} is larger than {bytes_max} bytes; merge prefixes, or split the firewall", path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
        /// Largest size, bytes.
        bytes_max: u64,
    },
    /// A field is wrong.
    #[error("line {line}: {field}: {problem}; {remedy}")]
    Field {
        /// Line, from 1; 0 if it is not known.
        line: usize,
        /// Path of the field: `controllers.cwnp.source`.
        field: String,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
}

impl ConfigError {
    /// A text that is nested so deeply that the parser would take long.
    pub(super) fn nested() -> Self {
        Self::Field {
            line: 0,
            field: "the file".to_owned(),
            problem: NESTED_PROBLEM.to_owned(),
            remedy: NESTED_REMEDY.to_owned(),
        }
    }

    /// A network of the static source without which none of its objects can be used.
    pub(crate) fn of_networks(text: &str, field: String, problem: String, remedy: String) -> Self {
        Self::Field {
            line: nearest_line(text, &["sources", "static", "firewall", "networks"]),
            field,
            problem,
            remedy,
        }
    }

    /// The error of the YAML parser, with its line, the field and a remedy.
    pub(super) fn of_parser(error: &serde_norway::Error) -> Self {
        let whole = error.to_string();
        let line = error.location().map_or(0, |place| place.line());
        let message = whole
            .rsplit_once(" at line ")
            .map_or(whole.as_str(), |(message, _)| message);
        // The parser puts the path before its message, and our own messages may continue it; field
        // names have no spaces.
        let mut path: Vec<&str> = Vec::new();
        let mut message = message;
        while let Some((part, rest)) = message.split_once(": ")
            && !part.contains(' ')
        {
            path.push(part);
            message = rest;
        }
        if path.is_empty() {
            path.push("the file");
        }
        let (problem, remedy) = match message.split_once("; ") {
            Some((problem, remedy)) => (problem, remedy),
            None => (message, remedy(message)),
        };
        Self::Field {
            line,
            field: printable(&path.join(".")),
            problem: printable(problem),
            remedy: printable(remedy),
        }
    }
}

fn remedy(message: &str) -> &'static str {
    if message.starts_with("unknown field") {
        "correct its name, or remove it"
    } else if message.starts_with("missing field") {
        "add it"
    } else if message.starts_with("duplicate") {
        "keep one of them"
    } else if message.starts_with("invalid type") || message.starts_with("invalid value") {
        "write it as docs/reference/firewall.md shows it"
    } else {
        "correct the YAML there"
    }
}
