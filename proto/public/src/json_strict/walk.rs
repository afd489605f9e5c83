//! Where the pass is in the text.

use std::fmt::{self, Write as _};

use serde::de::Error;

use super::RefusedField;

/// Longest name from the text in a path, bytes.
const NAME_BYTES_MAX: usize = 64;
/// Longest path, bytes. A step that does not fit is left out.
const PATH_BYTES_MAX: usize = 512;

/// The state of the pass.
#[derive(Default)]
pub(super) struct Walk {
    path: String,
    /// Set when the pass has ended early.
    pub(super) refused: Option<RefusedField>,
}

impl Walk {
    /// Ends the pass at the current place.
    pub(super) fn refuse<T, E: Error>(&mut self, reason: String) -> Result<T, E> {
        let path = std::mem::take(&mut self.path);
        self.refused = Some(RefusedField { path, reason });
        Err(E::custom("refused"))
    }

    pub(super) fn is_at_root(&self) -> bool {
        self.path.is_empty()
    }

    /// Goes into a step of the path. Returns where to return to.
    pub(super) fn enter(&mut self, step: fmt::Arguments<'_>) -> usize {
        let outer = self.path.len();
        let full = self.path.write_fmt(step).is_err() || self.path.len() > PATH_BYTES_MAX;
        if full {
            self.path.truncate(outer);
        }
        outer
    }

    pub(super) fn enter_field(&mut self, name: &str) -> usize {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.enter(format_args!("{dot}{}", Printable(name)))
    }

    pub(super) fn leave(&mut self, outer: usize) {
        self.path.truncate(outer);
    }
}

/// A text of a caller: escaped, and cut after [`NAME_BYTES_MAX`].
pub(super) struct Printable<'a>(pub(super) &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut length = 0;
        for escaped in self.0.chars().map(char::escape_debug) {
            length += escaped.clone().map(char::len_utf8).sum::<usize>();
            if length > NAME_BYTES_MAX {
                return out.write_char('…');
            }
            write!(out, "{escaped}")?;
        }
        Ok(())
    }
}
