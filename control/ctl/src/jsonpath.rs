//! Templates that pick from JSON: text with paths in braces, `{.meta.labels['a/b']}`.

use std::str::FromStr;

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
        let mut parser = Parser { text, at: 0 };
        if text.contains('{') {
            return parser.template();
        }
        let path = parser.path()?;
        match parser.peek() {
            None => Ok(Self(vec![Part::Path(path)])),
            Some(_) => parser.fail(parser.at, "there is a brace without its beginning"),
        }
    }
}

/// Reads a template from left to right.
struct Parser<'a> {
    text: &'a str,
    /// Bytes that were read.
    at: usize,
}

impl Parser<'_> {
    fn template(&mut self) -> Result<Template> {
        let mut parts = Vec::new();
        while self.peek().is_some() {
            let text = self.until(|c| c == '{');
            if !text.is_empty() {
                parts.push(Part::Text(text));
            }
            if self.take('{') {
                parts.push(self.braced()?);
            }
        }
        Ok(Template(parts))
    }

    /// A path, or text in double quotes with `\n` and `\t`, up to the closing brace.
    fn braced(&mut self) -> Result<Part> {
        let begin = self.at.saturating_sub(1);
        self.until(|c| !c.is_whitespace());
        let part = if self.peek() == Some('"') {
            let text = self.quoted()?;
            Part::Text(text.replace("\\n", "\n").replace("\\t", "\t"))
        } else {
            Part::Path(self.path()?)
        };
        self.until(|c| !c.is_whitespace());
        match self.peek() {
            Some('}') => self.at += 1,
            Some(_) => return self.fail(self.at, "a closing brace is due here"),
            None => return self.fail(begin, "the brace has no closing brace"),
        }
        Ok(part)
    }

    /// Steps up to the closing brace or the end.
    fn path(&mut self) -> Result<Vec<Step>> {
        self.until(|c| !c.is_whitespace());
        self.take('$');
        let mut steps = Vec::new();
        loop {
            let begin = self.at;
            match self.peek() {
                Some('.') => {
                    self.at += 1;
                    let name = self.until(|c| matches!(c, '.' | '[' | '}') || c.is_whitespace());
                    let ends = !matches!(self.peek(), Some('.' | '['));
                    match name.as_str() {
                        "" if steps.is_empty() && ends => {}
                        "" => return self.fail(begin, "the dot has no name behind it"),
                        "*" => steps.push(Step::Each),
                        _ => steps.push(Step::Field(name)),
                    }
                }
                Some('[') => steps.push(self.bracketed()?),
                None | Some('}') => return Ok(steps),
                Some(c) if c.is_whitespace() => return Ok(steps),
                Some(_) if steps.is_empty() => {
                    return self.fail(begin, "a path must begin with a dot, like {.uuid}");
                }
                Some(_) => return self.fail(begin, "a path goes on with a dot or a bracket"),
            }
        }
    }

    fn bracketed(&mut self) -> Result<Step> {
        let begin = self.at;
        self.at += 1;
        let step = match self.peek() {
            Some('\'' | '"') => Step::Field(self.quoted()?),
            _ => {
                let inner = self.until(|c| matches!(c, ']' | '}'));
                match (inner.as_str(), inner.parse()) {
                    ("*", _) => Step::Each,
                    (_, Ok(at)) => Step::Index(at),
                    _ => {
                        let what = format!("[{inner}] is neither a number, * nor a 'name'");
                        return self.fail(begin, &what);
                    }
                }
            }
        };
        if !self.take(']') {
            return self.fail(begin, "the bracket has no closing bracket");
        }
        Ok(step)
    }

    /// Text in quotes; the quote is next.
    fn quoted(&mut self) -> Result<String> {
        let begin = self.at;
        let quote = self.peek().unwrap_or_default();
        self.at += quote.len_utf8();
        let text = self.until(|c| c == quote);
        if !self.take(quote) {
            return self.fail(begin, "the quote has no closing quote");
        }
        Ok(text)
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Reads this character if it is the next one.
    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.at += wanted.len_utf8();
        }
        is_next
    }

    /// Reads up to such a character or the end.
    fn until(&mut self, stop: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let text = rest.split(stop).next().unwrap_or_default().to_owned();
        self.at += text.len();
        text
    }

    /// The error of what stands at a byte. Positions are characters, from 1.
    fn fail<T>(&self, at: usize, what: &str) -> Result<T> {
        let before = self.text.get(..at).unwrap_or_default();
        let position = before.chars().count() + 1;
        bail!("at position {position} of {}: {what}", self.text)
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
            let parsed: Template = template.parse().unwrap();
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
            ("{.a..b}", 4, "no name behind it"),
            ("{.a.}", 4, "no name behind it"),
            ("{.a[0]b}", 7, "goes on with a dot"),
            ("{.a b}", 5, "closing brace is due"),
            (".a}", 3, "without its beginning"),
            ("\u{e4}\u{f6}{.\u{fc}[}", 6, "[]"),
        ] {
            let error = template.parse::<Template>().unwrap_err().to_string();
            assert!(error.contains(word), "{template}: {error}");
            let place = format!("at position {position} of {template}: ");
            assert!(error.starts_with(&place), "{template}: {error}");
        }
        assert!(
            "x".repeat(TEMPLATE_BYTES_MAX + 1)
                .parse::<Template>()
                .is_err()
        );
    }
}
