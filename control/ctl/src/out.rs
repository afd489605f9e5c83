//! The only writers of stdout and stderr.
//!
//! A closed pipe, as of `metalmesh get machine | head`, is not an error: the program ends at once
//! without a message. Any other failure to write a result is an error.
//!
//! Names and messages are written by tenants, machines and switches: no control character of theirs
//! reaches a terminal.

use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Exit code after a write into a pipe without a reader, as shells report it: 128 + SIGPIPE.
const BROKEN_PIPE_EXIT: i32 = 141;

/// Text without characters that steer a terminal, which are escaped. Lines and tabs stay.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// `true` for control characters, and for those that change the direction of the text around them
/// (Unicode annex 9).
fn steers(c: char) -> bool {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    turns || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Writes a part of the results to stdout. A program that reads them gets them as they are.
pub(crate) fn result(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    let written = if out.is_terminal() {
        out.write_all(printable(&text.to_string()).as_bytes())
    } else {
        out.write_fmt(text)
    };
    if let Err(error) = written {
        stop(&error);
    }
}

/// Flushes stdout. Every command ends with it, so that a full disk is reported.
pub(crate) fn finish() {
    if let Err(error) = io::stdout().lock().flush() {
        stop(&error);
    }
}

/// Writes a hint, a warning or an error to stderr.
pub(crate) fn note(text: Arguments<'_>) {
    // A closed stderr leaves no way to report the failure.
    let _unread = io::stderr()
        .lock()
        .write_all(printable(&text.to_string()).as_bytes());
}

fn stop(error: &io::Error) -> ! {
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(BROKEN_PIPE_EXIT);
    }
    note(format_args!("error: cannot write to stdout: {error}\n"));
    std::process::exit(1);
}

/// `print!` that ends the program when stdout is closed.
macro_rules! out {
    ($($text:tt)*) => { crate::out::result(format_args!($($text)*)) };
}

/// `println!` that ends the program when stdout is closed.
macro_rules! outln {
    () => { crate::out::result(format_args!("\n")) };
    ($($text:tt)*) => { crate::out::result(format_args!("{}\n", format_args!($($text)*))) };
}

/// `eprintln!` that ignores a closed stderr.
macro_rules! noteln {
    ($($text:tt)*) => { crate::out::note(format_args!("{}\n", format_args!($($text)*))) };
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn texts_do_not_steer_a_terminal() {
        for (text, expected) in [
            ("web\tä\n", "web\tä\n"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("\u{61c}", "\\u{61c}"),
            ("\u{2066}\r", "\\u{2066}\\u{d}"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }
}
