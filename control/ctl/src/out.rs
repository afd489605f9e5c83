//! The only writers of stdout and stderr.
//!
//! A closed pipe, as of `metalmesh get machine | head`, is not an error: the program ends at once
//! without a message. Any other failure to write a result is an error.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// Exit code after a write into a pipe without a reader, as shells report it: 128 + SIGPIPE.
const BROKEN_PIPE_EXIT: i32 = 141;

/// Writes a part of the results to stdout.
pub(crate) fn result(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_fmt(text) {
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
    let _unread = io::stderr().lock().write_fmt(text);
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
