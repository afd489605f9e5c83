//! The one door to stdout and stderr.
//!
//! Who pipes into `head` has seen enough and made no mistake: when nobody reads stdout any more
//! the program ends at once and says nothing. Anything else that keeps a result from being
//! written is an error.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// What a shell reports of a program that wrote into a pipe without a reader: 128 + SIGPIPE.
const UNREAD: i32 = 141;

/// Writes a part of the results.
pub(crate) fn result(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_fmt(text) {
        stop(&error);
    }
}

/// Writes what stdout still holds; the last thing that a command does.
pub(crate) fn finish() {
    if let Err(error) = io::stdout().lock().flush() {
        stop(&error);
    }
}

/// Writes a hint, a warning or an error to stderr.
pub(crate) fn note(text: Arguments<'_>) {
    // When nobody reads stderr there is nobody left to be told.
    let _unread = io::stderr().lock().write_fmt(text);
}

fn stop(error: &io::Error) -> ! {
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(UNREAD);
    }
    note(format_args!("error: cannot write to stdout: {error}\n"));
    std::process::exit(1);
}

/// `print!` through the door.
macro_rules! out {
    ($($text:tt)*) => { crate::out::result(format_args!($($text)*)) };
}

/// `println!` through the door.
macro_rules! outln {
    () => { crate::out::result(format_args!("\n")) };
    ($($text:tt)*) => { crate::out::result(format_args!("{}\n", format_args!($($text)*))) };
}

/// `eprintln!` through the door.
macro_rules! noteln {
    ($($text:tt)*) => { crate::out::note(format_args!("{}\n", format_args!($($text)*))) };
}
