//! Templates that pick from JSON: text with paths in braces, `{.meta.labels['a/b']}`.

use std::str::{Chars, FromStr};

use anyhow::{Result, bail, ensure};
use serde_json::Value;

/// Longest template, bytes.
const TEMPLATE_BYTES_MAX: usize = 4096;

/// A template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Path(Vec<Step>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    /// From the end when it is negative.
    Index(i64),
    Each,
}

impl Template {
    /// The template with what its paths find; what is not there leaves nothing.
    pub(crate) fn fill(&self, value: &Value) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Path(steps) => {
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

impl Step {
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

impl FromStr for Template {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        ensure!(
            text.len() <= TEMPLATE_BYTES_MAX,
            "a template has at most {TEMPLATE_BYTES_MAX} bytes"
        );
        if !text.contains('{') {
            return Ok(Self(vec![Part::Path(path(text)?)]));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let end = closing(after);
            let Some((inner, after)) = end.and_then(|end| after.split_at_checked(end)) else {
                bail!("the path {{{after} has no closing brace");
            };
            parts.push(braced(inner)?);
            rest = after.strip_prefix('}').unwrap_or(after);
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self(parts))
    }
}

/// Where the closing brace is; braces in quotes are text.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '}') => return Some(at),
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

/// A path, or text in double quotes with `\n` and `\t`.
fn braced(inner: &str) -> Result<Part> {
    let quoted = inner
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    match quoted {
        Some(text) => Ok(Part::Text(text.replace("\\n", "\n").replace("\\t", "\t"))),
        None => Ok(Part::Path(path(inner)?)),
    }
}

fn path(text: &str) -> Result<Vec<Step>> {
    let trimmed = text.trim();
    let mut rest = trimmed.strip_prefix('$').unwrap_or(trimmed).chars();
    let mut steps = Vec::new();
    while let Some(c) = rest.next() {
        match c {
            '.' => {
                let name = word(&mut rest);
                match name.as_str() {
                    "" if steps.is_empty() && rest.as_str().is_empty() => {}
                    "" => bail!("the path {text:?} has a dot without a name behind it"),
                    "*" => steps.push(Step::Each),
                    _ => steps.push(Step::Field(name)),
                }
            }
            '[' => {
                let Some((inner, after)) = rest.as_str().split_once(']') else {
                    bail!("the path {text:?} has no closing bracket");
                };
                steps.push(bracketed(inner, text)?);
                rest = after.chars();
            }
            _ => bail!("the path {text:?} does not begin with a dot, like {{.uuid}}"),
        }
    }
    Ok(steps)
}

/// A field's name, up to the next dot or bracket.
fn word(rest: &mut Chars<'_>) -> String {
    let text = rest.as_str();
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    *rest = after.chars();
    name.to_owned()
}

fn bracketed(inner: &str, text: &str) -> Result<Step> {
    let quoted = |quote: char| {
        inner
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    };
    if let Some(name) = quoted('\'').or_else(|| quoted('"')) {
        return Ok(Step::Field(name.to_owned()));
    }
    if inner == "*" {
        return Ok(Step::Each);
    }
    match inner.parse() {
        Ok(at) => Ok(Step::Index(at)),
        Err(_) => bail!("[{inner}] in the path {text:?} is neither a number, * nor a 'name'"),
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
        ] {
            let parsed: Template = template.parse().unwrap();
            assert_eq!(parsed.fill(&value), filled, "{template}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (template, word) in [
            ("{.uuid", "closing brace"),
            ("{uuid}", "begin with a dot"),
            ("{.a[x]}", "[x]"),
            ("{.a[0}", "closing bracket"),
            ("{.a..b}", "without a name"),
        ] {
            let error = template.parse::<Template>().unwrap_err().to_string();
            assert!(error.contains(word), "{template}: {error}");
        }
        assert!(
            "x".repeat(TEMPLATE_BYTES_MAX + 1)
                .parse::<Template>()
                .is_err()
        );
    }
}
