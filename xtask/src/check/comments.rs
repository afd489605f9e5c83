//! Reads the comments of a Rust file and tells lines of code from the others.
//!
//! The parser drops plain comments, so this reads the text itself. It knows only as much of the
//! language as it takes not to see a comment in a string or in a character.

use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommentKind {
    /// `///` and `/** */`: says what the next item is.
    OuterDoc,
    /// `//!` and `/*! */`: says what the file or the block is.
    InnerDoc,
    /// Every other comment.
    Plain,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) kind: CommentKind,
    /// First line, counted from 1.
    pub(crate) line: usize,
    /// Last line; differs from the first one for block comments only.
    pub(crate) last_line: usize,
    /// Text without the marks that begin and end it.
    pub(crate) text: String,
}

/// Comments and lines of code of one file.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) comments: Vec<Comment>,
    /// Lines that have more than comments and white space, counted from 1.
    pub(crate) code: BTreeSet<usize>,
}

/// Reads a whole file.
pub(crate) fn read(text: &str) -> Lines {
    let mut reader = Reader {
        rest: text,
        line: 1,
        lines: Lines::default(),
    };
    while !reader.rest.is_empty() {
        reader.step();
    }
    reader.lines
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    lines: Lines,
}

impl Reader<'_> {
    /// Reads the comment, the literal or the character that comes next.
    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            self.comment(length, line_comment(&rest[..length]));
        } else if rest.starts_with("/*") {
            let length = block_length(rest);
            self.comment(length, block_comment(&rest[..length]));
        } else {
            self.code(token_length(rest));
        }
    }

    fn comment(&mut self, length: usize, (kind, text): (CommentKind, &str)) {
        let line = self.line;
        let text = text.to_owned();
        self.line += self.rest[..length].matches('\n').count();
        self.lines.comments.push(Comment {
            kind,
            line,
            last_line: self.line,
            text,
        });
        self.rest = &self.rest[length..];
    }

    fn code(&mut self, length: usize) {
        for sign in self.rest[..length].chars() {
            if sign == '\n' {
                self.line += 1;
            } else if !sign.is_whitespace() {
                self.lines.code.insert(self.line);
            }
        }
        self.rest = &self.rest[length..];
    }
}

fn line_comment(comment: &str) -> (CommentKind, &str) {
    if let Some(text) = comment.strip_prefix("//!") {
        (CommentKind::InnerDoc, text)
    } else if let Some(text) = comment.strip_prefix("///").filter(|t| !t.starts_with('/')) {
        (CommentKind::OuterDoc, text)
    } else {
        (CommentKind::Plain, comment.trim_start_matches('/'))
    }
}

fn block_comment(comment: &str) -> (CommentKind, &str) {
    let kind = if comment.starts_with("/*!") {
        CommentKind::InnerDoc
    } else if comment.starts_with("/**") && !comment.starts_with("/***") && comment.len() > 4 {
        CommentKind::OuterDoc
    } else {
        CommentKind::Plain
    };
    let text = comment.trim_start_matches(['/', '*', '!']);
    (kind, text.trim_end_matches(['/', '*']))
}

/// Bytes of the block comment that the text begins with; block comments nest.
fn block_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Bytes of the literal or the character that the text begins with.
fn token_length(text: &str) -> usize {
    if text.starts_with('"') {
        return quoted_length(text, '"');
    }
    if let Some(length) = raw_string_length(text) {
        return length;
    }
    if let Some(after) = text.strip_prefix('\'') {
        let mut signs = after.chars();
        let first = signs.next();
        let is_character = first == Some('\\') || signs.next() == Some('\'');
        return if is_character {
            quoted_length(text, '\'')
        } else {
            1
        };
    }
    let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
    match text.chars().next() {
        // A word is read whole, so that the `r` at its end begins no raw string.
        Some(sign) if is_word(sign) => text.find(|sign| !is_word(sign)).unwrap_or(text.len()),
        Some(sign) => sign.len_utf8(),
        None => 0,
    }
}

/// Bytes of a literal with escapes, its two quotes included.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if sign == '\\' {
            is_escaped = true;
        } else if sign == quote {
            return at + 1;
        }
    }
    text.len()
}

/// Bytes of the raw string that the text begins with. `None` if there is none.
fn raw_string_length(text: &str) -> Option<usize> {
    let after = ["br", "cr", "r"]
        .iter()
        .find_map(|mark| text.strip_prefix(mark))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = text.len() - body.len();
    Some(
        body.find(&end)
            .map_or(text.len(), |at| begin + at + end.len()),
    )
}

#[cfg(test)]
mod tests {
    use super::{CommentKind, read};

    #[test]
    fn comments_of_texts() {
        use CommentKind::{InnerDoc, OuterDoc, Plain};
        for (text, expected) in [
            ("// a", vec![(Plain, 1, 1, " a")]),
            (
                "/// a\n//! b",
                vec![(OuterDoc, 1, 1, " a"), (InnerDoc, 2, 2, " b")],
            ),
            ("//// a", vec![(Plain, 1, 1, " a")]),
            ("x; // a", vec![(Plain, 1, 1, " a")]),
            (
                "/* a\n/* b */ c */ d",
                vec![(Plain, 1, 2, " a\n/* b */ c ")],
            ),
            ("/** a */", vec![(OuterDoc, 1, 1, " a ")]),
            ("\"// a\" // b", vec![(Plain, 1, 1, " b")]),
            ("\"\\\"// a\" // b", vec![(Plain, 1, 1, " b")]),
            ("r#\"\"// a\"# // b", vec![(Plain, 1, 1, " b")]),
            ("br\"// a\\\" // b", vec![(Plain, 1, 1, " b")]),
            ("'\"' // a", vec![(Plain, 1, 1, " a")]),
            ("'\\'' // a", vec![(Plain, 1, 1, " a")]),
            ("&'a str // b", vec![(Plain, 1, 1, " b")]),
            ("r#type // a", vec![(Plain, 1, 1, " a")]),
            ("for\"// a\"", vec![]),
        ] {
            let found: Vec<_> = read(text)
                .comments
                .into_iter()
                .map(|found| (found.kind, found.line, found.last_line, found.text))
                .collect();
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(kind, line, last, text)| (kind, line, last, text.to_owned()))
                .collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn lines_of_code() {
        let text = "//! a\n\nfn a() { // b\n    // c\n    \"d\n    e\"\n}\n";
        let code: Vec<usize> = read(text).code.into_iter().collect();
        assert_eq!(code, [3, 5, 6, 7]);
    }
}
