//! Rules about names and shapes that the compiler and its lints do not know.
//!
//! A rule is a pure function over parsed files. `./dev check` refuses every hit; `./dev measure`
//! counts them, crate by crate.

pub(crate) mod circles;
mod comment_starts;
mod it_closures;
mod lost_conversions;
mod many_types;
mod missing_docs;
pub(crate) mod one_word_types;
mod tuple_parameters;
mod type_names;
mod types;

use super::source::Source;

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) krate: String,
    pub(crate) path: String,
    pub(crate) line: usize,
    /// Name or text that breaks the rule.
    pub(crate) what: String,
}

impl Hit {
    fn new(source: &Source, line: usize, what: impl Into<String>) -> Self {
        Self {
            krate: source.krate.clone(),
            path: source.path.clone(),
            line,
            what: what.into(),
        }
    }
}

/// A rule that no file may break.
pub(crate) struct Rule {
    /// Name in findings and in `./dev measure --list`.
    pub(crate) name: &'static str,
    /// Head of its column in the table of `./dev measure`.
    pub(crate) head: &'static str,
    /// Says what to do about a hit.
    pub(crate) advice: &'static str,
    pub(crate) find: fn(&[Source]) -> Vec<Hit>,
}

/// Every rule that `./dev check` proves.
pub(crate) const RULES: [Rule; 8] = [
    Rule {
        name: "type-names",
        head: "names",
        advice: "control/ has another type of that name; say the role in the name",
        find: type_names::find,
    },
    Rule {
        name: "tuple-parameters",
        head: "tuples",
        advice: "two values that always go together are a struct, others are two parameters",
        find: tuple_parameters::find,
    },
    Rule {
        name: "it-closures",
        head: "|it|",
        advice: "name the argument after the thing: |machine| machine.id",
        find: it_closures::find,
    },
    Rule {
        name: "lost-conversions",
        head: "lost",
        advice: "a failed conversion becomes a default here; report it",
        find: lost_conversions::find,
    },
    Rule {
        name: "missing-docs",
        head: "docs",
        advice: "a public item has a doc comment",
        find: missing_docs::find,
    },
    Rule {
        name: "many-types",
        head: "types",
        advice: "a file has at most 3 top-level types; split it",
        find: many_types::find,
    },
    Rule {
        name: "comment-starts",
        head: "starts",
        advice: "a comment begins with its subject, not with Who, What, Whether, Such or None",
        find: comment_starts::find,
    },
    Rule {
        name: "circles",
        head: "circles",
        advice: "top-level modules of a crate depend on each other in one direction, audiences not at all",
        find: circles::find,
    },
];

/// Parses files of one crate for tests of rules: path from `src`, and text.
#[cfg(test)]
fn sources(krate: &str, files: &[(&str, &str)]) -> Vec<Source> {
    files
        .iter()
        .map(|(path, text)| {
            let stem = path.trim_end_matches(".rs").trim_end_matches("/mod");
            let module: Vec<&str> = stem.split('/').filter(|name| *name != "lib").collect();
            let mut source = Source::parse(krate, path, &module, text).expect("it parses");
            source.tree = "lib.rs".to_owned();
            source
        })
        .collect()
}

/// Hits of a rule in one file, as `line what`, for tests of rules.
#[cfg(test)]
fn hits(find: fn(&[Source]) -> Vec<Hit>, text: &str) -> Vec<String> {
    find(&sources("control-a", &[("a.rs", text)]))
        .iter()
        .map(|hit| format!("{} {}", hit.line, hit.what))
        .collect()
}
