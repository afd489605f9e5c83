//! The parser of templates.

use anyhow::{Result, bail};

use super::{PathStep, PathTemplate, TemplatePart};

/// A recursive-descent parser of one template.
pub(super) struct TemplateParser<'a> {
    pub(super) text: &'a str,
    /// Position of the next byte to read.
    pub(super) at: usize,
}

impl TemplateParser<'_> {
    pub(super) fn template(&mut self) -> Result<PathTemplate> {
        let mut parts = Vec::new();
        while self.peek().is_some() {
            let text = self.until(|c| c == '{');
            if !text.is_empty() {
                parts.push(TemplatePart::Text(text));
            }
            if self.take('{') {
                parts.push(self.braced()?);
            }
        }
        Ok(PathTemplate(parts))
    }

    /// Parses a path, or text in double quotes with `\n` and `\t`, up to the closing brace.
    fn braced(&mut self) -> Result<TemplatePart> {
        let begin = self.at.saturating_sub(1);
        self.until(|c| !c.is_whitespace());
        let part = if self.peek() == Some('"') {
            let text = self.quoted()?;
            TemplatePart::Text(text.replace("\\n", "\n").replace("\\t", "\t"))
        } else {
            TemplatePart::Path(self.path()?)
        };
        self.until(|c| !c.is_whitespace());
        match self.peek() {
            Some('}') => self.at += 1,
            Some(_) => return self.fail(self.at, "a closing brace is expected here"),
            None => return self.fail(begin, "the brace has no closing brace"),
        }
        Ok(part)
    }

    /// Parses the steps of a path, up to the closing brace or the end.
    pub(super) fn path(&mut self) -> Result<Vec<PathStep>> {
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
                        "" => return self.fail(begin, "no name follows the dot"),
                        "*" => steps.push(PathStep::Each),
                        _ => steps.push(PathStep::Field(name)),
                    }
                }
                Some('[') => steps.push(self.bracketed()?),
                None | Some('}') => return Ok(steps),
                Some(c) if c.is_whitespace() => return Ok(steps),
                Some(_) if steps.is_empty() => {
                    return self.fail(begin, "a path must begin with a dot, like {.uuid}");
                }
                Some(_) => return self.fail(begin, "a path continues with a dot or a bracket"),
            }
        }
    }

    fn bracketed(&mut self) -> Result<PathStep> {
        let begin = self.at;
        self.at += 1;
        let step = match self.peek() {
            Some('\'' | '"') => PathStep::Field(self.quoted()?),
            _ => {
                let inner = self.until(|c| matches!(c, ']' | '}'));
                match (inner.as_str(), inner.parse()) {
                    ("*", _) => PathStep::Each,
                    (_, Ok(at)) => PathStep::Index(at),
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

    /// Parses text in quotes. The next character must be the opening quote.
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

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Consumes the next character if it is `wanted`.
    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.at += wanted.len_utf8();
        }
        is_next
    }

    /// Consumes text up to the first character that `stop` accepts, or to the end.
    fn until(&mut self, stop: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let text = rest.split(stop).next().unwrap_or_default().to_owned();
        self.at += text.len();
        text
    }

    /// The error at a byte offset. The message counts characters, from 1.
    pub(super) fn fail<T>(&self, at: usize, what: &str) -> Result<T> {
        let before = self.text.get(..at).unwrap_or_default();
        let position = before.chars().count() + 1;
        bail!("at position {position} of {}: {what}", self.text)
    }
}
