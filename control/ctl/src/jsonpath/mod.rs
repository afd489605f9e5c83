//! Templates that pick from JSON: text with paths in braces, `{.meta.labels['a/b']}`.

mod parser;

use std::str::FromStr;

use anyhow::{Result, ensure};
use serde_json::Value;

use parser::TemplateParser;

/// Longest template, bytes. A longer one is refused.
const TEMPLATE_BYTES_MAX: usize = 4096;

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathTemplate(Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Path(Vec<PathStep>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Field(String),
    /// Index into an array; a negative one counts from the end.
    Index(i64),
    /// All elements of an array, or all values of an object.
    Each,
}

impl PathTemplate {
    /// Fills the template with the values that its paths select. A path that selects nothing becomes
    /// empty text.
    pub(crate) fn fill(&self, value: &Value) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Path(steps) => {
                    let found = steps
                        .iter()
                        .fold(vec![value], |found, step| step.all(&found));
                    let texts: Vec<String> = found.into_iter().map(text).collect();
                    out.push_str(&texts.join(" "));
                }
            }
        }
        out
    }
}

impl PathStep {
    fn all<'a>(&self, from: &[&'a Value]) -> Vec<&'a Value> {
        from.iter().flat_map(|value| self.one(value)).collect()
    }

    fn one<'a>(&self, from: &'a Value) -> Vec<&'a Value> {
        match (self, from) {
            (Self::Field(name), Value::Object(fields)) => fields.get(name).into_iter().collect(),
            (Self::Index(at), Value::Array(all)) => {
                let from_end = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
                let at = if *at < 0 {
                    all.len().checked_sub(from_end)
                } else {
                    Some(from_end)
                };
                at.and_then(|at| all.get(at)).into_iter().collect()
            }
            (Self::Each, Value::Array(all)) => all.iter().collect(),
            (Self::Each, Value::Object(fields)) => fields.values().collect(),
            _ => Vec::new(),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

impl FromStr for PathTemplate {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        ensure!(
            text.len() <= TEMPLATE_BYTES_MAX,
            "a template has at most {TEMPLATE_BYTES_MAX} bytes"
        );
        let mut parser = TemplateParser { text, at: 0 };
        if text.contains('{') {
            return parser.template();
        }
        let path = parser.path()?;
        match parser.peek() {
            None => Ok(Self(vec![TemplatePart::Path(path)])),
            Some(_) => parser.fail(parser.at, "a closing brace has no opening brace"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn picks() {
        let value = json!({
            "uuid": "u1", "on": true, "none": null, "meta": { "labels": { "a.b/c": "x}y" } },
            "networks": [{ "ips": ["10.0.0.1", "fd::1"] }, { "ips": ["10.0.0.2"] }],
        });
        for (template, filled) in [
            ("{.uuid}", "u1"),
            (".uuid", "u1"),
            ("{$.uuid}: {.on}!", "u1: true!"),
            ("{.uuid}{\"\\t\"}{.uuid}", "u1\tu1"),
            ("{.networks[*].ips[0]}", "10.0.0.1 10.0.0.2"),
            ("{.networks[-1].ips[*]}", "10.0.0.2"),
            ("{.networks[0].ips}", "[\"10.0.0.1\",\"fd::1\"]"),
            ("{.meta.labels['a.b/c']}", "x}y"),
            ("<{.none}{.missing.too}{.networks[9]}>", "<>"),
            ("{.meta.*}", "{\"a.b/c\":\"x}y\"}"),
            ("{ .uuid }-{[\"uuid\"]}", "u1-u1"),
            ("{.meta.labels['no ] } here']}!", "!"),
            ("a } b{\"{\"}", "a } b{"),
        ] {
            let parsed: PathTemplate = template.parse().unwrap();
            assert_eq!(parsed.fill(&value), filled, "{template}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (template, position, word) in [
            ("{.uuid", 1, "closing brace"),
            ("{.on} and {.uuid", 11, "closing brace"),
            ("{uuid}", 2, "begin with a dot"),
            ("uuid", 1, "begin with a dot"),
            ("{.a[x]}", 4, "[x]"),
            ("{.a[0}", 4, "closing bracket"),
            ("{.a['b}", 5, "closing quote"),
            ("{\"b}", 2, "closing quote"),
            ("{.a..b}", 4, "no name follows the dot"),
            ("{.a.}", 4, "no name follows the dot"),
            ("{.a[0]b}", 7, "continues with a dot"),
            ("{.a b}", 5, "closing brace is expected"),
            (".a}", 3, "has no opening brace"),
            ("\u{e4}\u{f6}{.\u{fc}[}", 6, "[]"),
        ] {
            let error = template.parse::<PathTemplate>().unwrap_err().to_string();
            assert!(error.contains(word), "{template}: {error}");
            let place = format!("at position {position} of {template}: ");
            assert!(error.starts_with(&place), "{template}: {error}");
        }
        assert!(
            "x".repeat(TEMPLATE_BYTES_MAX + 1)
                .parse::<PathTemplate>()
                .is_err()
        );
    }
}
